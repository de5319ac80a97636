"""The approximate backend: each step examines only neighbours found by a FAISS index."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError, check_count
from activecover.frontier import _faiss_kernel as kernel
from activecover.frontier._base import Frontier, Nearest, Rows, RowsLike, check_kind, known_keys, new_keys
from activecover.frontier._exact import ExactFrontier
from activecover.frontier._faiss_index import STRUCTURES, FaissIndex, adopt_index, build_index
from activecover.frontier._locked import one_at_a_time
from activecover.frontier._scan import ArrayPositives
from activecover.frontier.distance import summation_plan
from activecover.pool import Pool, Vectors, dense_vectors

#: Neighbours searched for when a positive is added; doubled whenever they are used up.
FIRST_NEIGHBOURS = 32
REACH = 1024
_PER_LIST = ("start", "length", "stages", "ends", "far", "through", "keys")


class FaissFrontier(Frontier):
    """Rows near positives, found by an approximate index; the distances returned are exact.

    Every positive has a list of its neighbours in the index, with distances from the shared kernel, and one heap
    over all lists yields the nearest open row. When a list is used up and nothing nearer is left elsewhere, twice as
    many neighbours are searched for. A step thus costs one or two searches, whatever the size of the pool. When all
    lists are exhausted, the remaining rows are scanned exactly, so every open row is reached.

    Only two things are approximate: which neighbours the index finds, and that at most ``reach`` neighbours of a
    positive are examined. The result depends only on the sets of positives and open rows, not on the order of calls;
    searches are cached.

    Parameters
    ----------
    pool : Pool
        The rows; withdrawn ones are left out.
    structure : {"hnsw", "ivf"}
        A graph (slow to build, fast to search) or cells (fast to build, slower to search).
    index : faiss.Index or path, optional
        An existing index with one vector per row, whose ids are the row numbers. Rows added to the pool are added to
        it too. An erased row is never proposed, but it stays in your index.
    reach : int
        Most neighbours of a positive to examine.
    deterministic : bool
        Build on one thread; only then does FAISS always build the same index.

    Notes
    -----
    An index that grows with its pool differs from one built on the grown pool, and may find other neighbours. After
    rows are added, restored or erased, the neighbours of all positives are searched for again.

    Examples
    --------
    >>> frontier = FaissFrontier(Pool([[0.0], [1.0], [5.0], [6.5]]))
    >>> frontier.add([0], np.array([[0.0]], dtype=np.float32))
    >>> frontier.retire([0])
    >>> frontier.nearest(2).rows
    array([1, 2])
    """

    exact: ClassVar[bool] = False

    def __init__(
        self,
        pool: Pool,
        structure: str = "hnsw",
        *,
        index: FaissIndex | str | Path | None = None,
        reach: int = REACH,
        deterministic: bool = True,
    ) -> None:
        if structure not in STRUCTURES:
            raise InputError(f"unknown structure {structure!r}: choose one of {', '.join(STRUCTURES)}")
        check_kind(self.kind, pool, f"faiss-{structure}")
        check_count("reach", reach)
        self._lock = threading.RLock()
        self._pool = pool
        self._erasures = pool.erasures
        self._plan = summation_plan(pool.dimensions)
        self._index = (
            build_index(pool, structure, deterministic=deterministic) if index is None else adopt_index(pool, index)
        )
        self._reach = reach
        self._open = ~pool.withdrawn
        #: The same, but rows taken during a call count as closed.
        self._free = self._open.copy()
        self._known = ArrayPositives(dense_vectors(pool.take([])))
        self._rest: _Rest | None = None
        self._clear()

    @property
    def positives(self) -> int:
        self._close_erased()
        return len(self._known)

    @one_at_a_time
    def add(self, keys: RowsLike, vectors: Vectors) -> None:
        new = new_keys(keys, self._known)
        self._close_erased()
        first = len(self._known)
        self._known.add(new, np.asarray(vectors, np.float32).reshape(len(new), self._pool.dimensions))
        self._search(first)

    @one_at_a_time
    def remove(self, keys: RowsLike) -> None:
        self._close_erased()
        self._drop(known_keys(keys, self._known))

    @one_at_a_time
    def retire(self, rows: RowsLike) -> None:
        chosen = np.asarray(rows, np.int64)
        self._open[chosen] = self._free[chosen] = False

    @one_at_a_time
    def restore(self, rows: RowsLike) -> None:
        chosen = np.asarray(rows, np.int64)
        chosen = chosen[~self._open[chosen] & ~self._pool.withdrawn[chosen]]
        if len(chosen):
            self._open[chosen] = self._free[chosen] = True
            # Closed rows are left out of the lists, and their vectors are not read.
            self._begin_anew()

    @one_at_a_time
    def extend(self) -> None:
        self._close_erased()
        first, total = len(self._open), len(self._pool)
        if first == total:
            return
        self._open = np.concatenate([self._open, ~self._pool.withdrawn[first:]])
        self._free = self._open.copy()
        rows = first + np.flatnonzero(self._open[first:])
        self._index.add(rows, dense_vectors(self._pool.take(rows)))
        self._rest = None
        self._begin_anew()

    @one_at_a_time
    def nearest(self, k: int, without: RowsLike = ()) -> Nearest:
        self._close_erased()
        k = max(0, min(k, len(self._open))) if len(self._known) else 0
        held = np.asarray(without, np.int64)
        rows, squared, keys = np.empty(k, np.int64), np.empty(k), np.empty(k, np.int64)
        # Rows closed permanently need not be read again by the next call; the rest works on a copy.
        while k and (needy := kernel.first_open(self._heap, self._lists, self._open)) >= 0:
            self._widen(needy)
        heap = _copied(self._heap)
        count = 0
        self._free[held] = False
        try:
            while True:
                count, needy = kernel.collect(heap, self._lists, self._free, count, k, rows, squared, keys)
                if needy < 0:
                    break
                self._widen(needy)
        finally:
            for touched in (held, rows[:count]):
                self._free[touched] = self._open[touched]
        found = Nearest(rows[:count], np.sqrt(squared[:count]), keys[:count])
        return found if count == k else self._and_the_rest(found, k, held)

    def _and_the_rest(self, found: Nearest, k: int, held: Rows) -> Nearest:
        """All lists are exhausted: return the remaining rows in exact order."""
        if self._rest is None:
            self._rest = _Rest(self._pool)
        self._rest.catch_up(self._known, self._open)
        more = self._rest.frontier.nearest(k - len(found.rows), without=np.union1d(held, found.rows))
        return Nearest(
            np.concatenate([found.rows, more.rows]),
            np.concatenate([found.distances, more.distances]),
            np.concatenate([found.sources, more.sources]),
        )

    def _clear(self) -> None:
        """Empty lists, with space for a few."""
        stages = 1 + max(0, math.ceil(math.log2(self._reach / FIRST_NEIGHBOURS)))
        self._lists = kernel.Lists(
            rows=np.empty(1 << 12, np.int32), squared=np.empty(1 << 12), start=np.zeros(8, np.int64),
            length=np.zeros(8, np.int64), stages=np.zeros(8, np.int64), ends=np.zeros((8, stages), np.int64),
            far=np.zeros((8, stages)), through=np.zeros(8, bool), keys=np.zeros(8, np.int64),
        )  # fmt: skip
        self._asked = np.zeros(8, np.int64)
        self._end = 0
        self._heap = _heap(8)

    def _begin_anew(self) -> None:
        self._clear()
        self._search(0)

    def _search(self, first: int) -> None:
        """Fill the lists of the positives from ``first`` on, in one search."""
        total = len(self._known)
        while len(self._asked) < total:
            self._asked = _doubled(self._asked)
            longer = {name: _doubled(getattr(self._lists, name)) for name in _PER_LIST}
            self._lists = self._lists._replace(**longer)
            self._heap = _copied(self._heap, _doubled)._replace(size=self._heap.size)
        self._lists.keys[first:total] = self._known.keys[first:]
        self._lists.length[first:total] = self._lists.stages[first:total] = 0
        self._lists.ends[first:total] = 0
        self._asked[first:total] = min(FIRST_NEIGHBOURS, self._reach)
        self._lists.through[first:total] = not len(self._index)
        if first == total or not len(self._index):
            return
        found, far = self._index.search(self._known.vectors[first:], int(self._asked[first]))
        for place in range(first, total):
            self._lengthen(place, found[place - first], far[place - first])
        kernel.push_all(self._heap, self._lists, first, total)

    def _widen(self, one: int) -> None:
        """Search for twice as many neighbours of one positive."""
        self._asked[one] = min(2 * self._asked[one], self._reach)
        found, far = self._index.search(self._known.vectors[one : one + 1], int(self._asked[one]))
        self._lengthen(one, found[0], far[0])

    def _lengthen(self, one: int, found: Rows, far: float) -> None:
        """Append the newly found rows to a list as its next stage, by distance."""
        lists = self._lists
        before = slice(int(lists.start[one]), int(lists.start[one] + lists.length[one]))
        found = found[(found >= 0) & (found < len(self._open))]
        fresh = np.setdiff1d(found[self._open[found]], lists.rows[before])
        squared = np.empty((1, len(fresh)))
        kernel.settle_rows(
            np.asarray(self._pool.vectors), fresh[None], self._known.vectors[one : one + 1], self._plan, squared
        )
        order = np.lexsort((fresh, squared[0]))
        rows = np.concatenate([lists.rows[before], fresh[order].astype(np.int32)])
        distances = np.concatenate([lists.squared[before], squared[0][order]])
        self._lists.through[one] = self._asked[one] >= min(self._reach, len(self._index))
        self._make_room(len(rows), one)
        place = slice(self._end, self._end + len(rows))
        self._lists.rows[place], self._lists.squared[place] = rows, distances
        self._lists.start[one], self._lists.length[one] = self._end, len(rows)
        self._end += len(rows)
        stage = int(self._lists.stages[one])
        self._lists.ends[one, stage], self._lists.far[one, stage] = len(rows), far
        self._lists.stages[one] = stage + 1

    def _make_room(self, wanted: int, moving: int) -> None:
        """Compact the lists, or double the space, until a list of ``wanted`` rows fits."""
        lists = self._lists
        if self._end + wanted <= len(lists.rows):
            return
        lists.length[moving] = 0
        used = int(lists.length.sum())
        rows = np.empty(max(len(lists.rows), 2 * (used + wanted)), np.int32)
        squared = np.empty(len(rows))
        end = 0
        for one in np.flatnonzero(lists.length).tolist():
            old = slice(int(lists.start[one]), int(lists.start[one] + lists.length[one]))
            new = slice(end, end + int(lists.length[one]))
            rows[new], squared[new] = lists.rows[old], lists.squared[old]
            lists.start[one], end = end, new.stop
        self._lists, self._end = lists._replace(rows=rows, squared=squared), end

    def _close_erased(self) -> None:
        """Close rows erased since the last check, and drop positives among them."""
        if self._erasures == self._pool.erasures:
            return
        with self._lock:
            self._erasures = self._pool.erasures
            erased = np.flatnonzero(self._open & self._pool.withdrawn[: len(self._open)])
            inside = self._known.keys[self._known.keys >= 0]
            gone = inside[self._pool.withdrawn[inside]]
            self.retire(erased)
            self._known.drop(gone)
            self._rest = None
            self._index.wipe(np.union1d(erased, gone))
            self._begin_anew()

    def _drop(self, gone: Rows) -> None:
        """Forget positives and their lists; their rows are in other lists, or are scanned at the end."""
        kept = np.flatnonzero(~np.isin(self._known.keys, gone))
        self._known.drop(gone)
        self._rest = None
        for part in (*(getattr(self._lists, name) for name in _PER_LIST), self._asked):
            part[: len(kept)] = part[kept]
            part[len(kept) :] = 0
        self._heap = _heap(len(self._asked))
        kernel.push_all(self._heap, self._lists, 0, len(kept))


class _Rest:
    """An exact frontier that is updated only when needed."""

    def __init__(self, pool: Pool) -> None:
        self.frontier = ExactFrontier(pool)
        self._keys: set[int] = set()
        self._open = ~pool.withdrawn

    def catch_up(self, known: ArrayPositives, is_open: npt.NDArray[np.bool_]) -> None:
        """Apply the changes since the last call; positives can only have been added."""
        self.frontier.retire(np.flatnonzero(self._open & ~is_open))
        new = np.array([place for place, key in enumerate(known.keys.tolist()) if key not in self._keys], np.int64)
        self.frontier.add(known.keys[new], known.vectors[new])
        self.frontier.restore(np.flatnonzero(is_open & ~self._open))
        self._open = is_open.copy()
        self._keys.update(known.keys.tolist())


def _heap(room: int) -> kernel.Heap:
    return kernel.Heap(
        np.zeros(room), np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64),
        np.zeros(room, np.int64), np.zeros(1, np.int64),
    )  # fmt: skip


def _copied(heap: kernel.Heap, copy: Callable[[npt.NDArray[Any]], npt.NDArray[Any]] = np.copy) -> kernel.Heap:
    return kernel.Heap(*(copy(part) for part in heap))


def _doubled(part: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate([part, np.zeros_like(part)])
