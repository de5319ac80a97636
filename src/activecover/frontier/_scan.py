"""Base of all scanning frontiers: one value per row, smaller if nearer, kept up to date with the positives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.frontier._base import NO_KEY, Frontier, Nearest, Rows, RowsLike, check_kind, known_keys, new_keys
from activecover.pool import Pool, Vectors, longer


class Positives(ABC):
    """Keys and vectors of the positives, in arrays that grow in place."""

    _places: dict[int, None]
    _keys: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    @property
    def keys(self) -> npt.NDArray[np.int64]:
        return self._keys[: len(self)]

    @abstractmethod
    def add(self, keys: Rows, vectors: Vectors) -> None:
        """Add positives; none of the keys is known yet."""

    @abstractmethod
    def drop(self, keys: Rows) -> None:
        """Forget positives, and their vectors with them."""


class ArrayPositives(Positives):
    """Positives whose vectors are rows of an array: dense vectors, or packed bits."""

    def __init__(self, empty: npt.NDArray[Any]) -> None:
        self._places = {}
        self._keys = np.zeros(8, np.int64)
        self._vectors = np.zeros((8, *empty.shape[1:]), empty.dtype)

    @property
    def vectors(self) -> npt.NDArray[Any]:
        """The vectors of all positives, in the order of their keys."""
        return self._vectors[: len(self)]

    def add(self, keys: Rows, vectors: Vectors) -> None:
        first, total = len(self), len(self) + len(keys)
        while len(self._keys) < total:
            self._keys = np.concatenate([self._keys, np.zeros_like(self._keys)])
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
        self._keys[first:total], self._vectors[first:total] = keys, np.asarray(vectors)
        self._places.update(dict.fromkeys(keys.tolist()))

    def drop(self, keys: Rows) -> None:
        kept = np.flatnonzero(~np.isin(self.keys, keys))
        self._keys[: len(kept)], self._vectors[: len(kept)] = self._keys[kept], self._vectors[kept]
        for key in keys.tolist():
            del self._places[key]


class ScanFrontier(Frontier):
    """Base of the frontiers that keep, for every row, its nearest positive and a value for the distance to it.

    A subclass implements ``_improve`` (compare rows with some positives) and ``_no_positives``, and may override
    ``_distances`` (convert values to distances) and ``_take_in`` (precompute what is needed of new rows).
    """

    def __init__(self, pool: Pool) -> None:
        check_kind(self.kind, pool, type(self).__name__)
        self._pool = pool
        self._erasures = pool.erasures
        self._open = np.zeros(0, bool)
        self._values = np.zeros(0)
        self._sources = np.zeros(0, np.int64)
        self._known = self._no_positives()
        self.extend()

    @property
    def positives(self) -> int:
        self._close_erased()
        return len(self._known)

    def add(self, keys: RowsLike, vectors: Vectors) -> None:
        new = new_keys(keys, self._known)
        self._close_erased()
        first = len(self._known)
        self._known.add(new, vectors)
        self._improve(None, slice(first, None))

    def remove(self, keys: RowsLike) -> None:
        self._close_erased()
        self._drop(known_keys(keys, self._known))

    def retire(self, rows: RowsLike) -> None:
        chosen = np.asarray(rows, np.int64)
        self._open[chosen] = False
        self._values[chosen] = np.inf
        self._sources[chosen] = NO_KEY

    def restore(self, rows: RowsLike) -> None:
        chosen = np.unique(np.asarray(rows, np.int64))
        chosen = chosen[~self._open[chosen] & ~self._pool.withdrawn[chosen]]
        self._open[chosen] = True
        self._recompute(chosen)

    def extend(self) -> None:
        self._close_erased()
        first, total = len(self._open), len(self._pool)
        self._open = longer(self._open, ~self._pool.withdrawn[first:])
        self._values = longer(self._values, np.full(total - first, np.inf))
        self._sources = longer(self._sources, np.full(total - first, NO_KEY))
        self._take_in(first, total)
        self._improve(first + np.flatnonzero(self._open[first:]), slice(None))

    def nearest(self, k: int, without: RowsLike = ()) -> Nearest:
        self._close_erased()
        left_out = np.asarray(without, np.int64)
        # Asking for that many more avoids copies and side effects.
        rows = smallest(self._values, k + len(left_out))
        if len(left_out):
            rows = rows[~np.isin(rows, left_out)][:k]
        return Nearest(rows, self._distances(self._values[rows]), self._sources[rows])

    def look_up(self, rows: RowsLike) -> Nearest:
        """Distances and nearest positives of some rows, in the given order (infinite if closed).

        Not available in backends that compare rows lazily.
        """
        self._close_erased()
        chosen = np.asarray(rows, np.int64)
        return Nearest(chosen, self._distances(self._values[chosen]), self._sources[chosen])

    @abstractmethod
    def _improve(self, rows: Rows | None, new: slice) -> None:
        """Compare rows (ascending; None for all open ones) with some positives, and keep the nearest."""

    @abstractmethod
    def _no_positives(self) -> Positives:
        """An empty container for positives."""

    def _distances(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Convert values to distances."""
        return values

    def _take_in(self, first: int, total: int) -> None:
        """Precompute what is needed of the new rows ``first`` to ``total``."""

    def _close_erased(self) -> None:
        """Close rows erased since the last check."""
        if self._erasures != self._pool.erasures:
            self._erasures = self._pool.erasures
            self.retire(np.flatnonzero(self._open & self._pool.withdrawn[: len(self._open)]))
            inside = self._known.keys[self._known.keys >= 0]
            self._drop(inside[self._pool.withdrawn[inside]])

    def _drop(self, gone: Rows) -> None:
        """Forget positives, and recompute the rows that were nearest to them."""
        if not len(gone):
            return
        self._known.drop(gone)
        self._recompute(np.flatnonzero(np.isin(self._sources, gone)))

    def _recompute(self, rows: Rows) -> None:
        self._values[rows] = np.inf
        self._sources[rows] = NO_KEY
        self._improve(rows, slice(None))


def row_blocks(rows: Rows | None, is_open: npt.NDArray[np.bool_], step: int) -> list[tuple[int, int, Rows | None]]:
    """Rows in blocks of at most ``step``: the first, the last + 1, and the rows, unless all in between are meant.

    ``rows=None`` stands for all open rows. :func:`rows_of` looks them up when a block is processed, so that no array
    as long as the pool is created.
    """
    if rows is None:
        return [(start, min(start + step, len(is_open)), None) for start in range(0, len(is_open), step)]
    return [
        (int(part[0]), int(part[-1]) + 1, part)
        for part in (rows[start : start + step] for start in range(0, len(rows), step))
    ]


def rows_of(block: tuple[int, int, Rows | None], is_open: npt.NDArray[np.bool_]) -> Rows:
    """The rows of a block."""
    start, stop, rows = block
    return start + np.flatnonzero(is_open[start:stop]) if rows is None else rows


def smallest(values: npt.NDArray[np.float64], k: int) -> Rows:
    """Positions of the ``k`` smallest finite values, in ascending order, ties by the lower position."""
    if k < 1 or not len(values):
        return np.zeros(0, np.int64)
    if k == 1:
        place = int(values.argmin())
        return np.array([place] if np.isfinite(values[place]) else [], np.int64)
    k = min(k, len(values))
    largest = np.partition(values, k - 1)[k - 1]
    below = np.flatnonzero(values < largest)
    tied = np.flatnonzero(values == largest)[: k - len(below)] if np.isfinite(largest) else below[:0]
    places = np.concatenate([below, tied])
    order = np.lexsort((places, values[places]))
    chosen: Rows = places[order]
    return chosen
