"""The backend for few dimensions: a k-d tree in which each step touches only nearby rows."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from activecover.frontier import _tree_kernel as kernel
from activecover.frontier import distance
from activecover.frontier._base import NO_KEY, Frontier, Nearest, Rows, RowsLike, known_keys, new_keys
from activecover.frontier._locked import one_at_a_time
from activecover.pool import Pool, Vectors

_LEAF_ROWS = 16
_NEIGHBOURS = 16
_SAMPLES = 32


class TreeFrontier(Frontier):
    """The exact frontier for pools of few dimensions, or of low intrinsic dimension.

    Parameters
    ----------
    pool : Pool
        The rows; withdrawn ones are left out.

    Examples
    --------
    >>> import numpy as np
    >>> frontier = TreeFrontier(Pool([[0.0], [1.0], [5.0], [6.5]]))
    >>> frontier.add([0], np.array([[0.0]], dtype=np.float32))
    >>> frontier.retire([0])
    >>> frontier.nearest(2).rows
    array([1, 2])
    """

    def __init__(self, pool: Pool) -> None:
        self._lock = threading.RLock()
        self._pool = pool
        self._erasures = pool.erasures
        self._plan = distance.summation_plan(pool.dimensions)
        self._known: dict[int, None] = {}
        self._outside_keys = np.zeros(0, np.int64)
        self._outside = np.zeros((0, pool.dimensions), np.float32)
        self._plant(~pool.withdrawn)

    @property
    def positives(self) -> int:
        self._close_erased()
        return len(self._known)

    @one_at_a_time
    def add(self, keys: RowsLike, vectors: Vectors) -> None:
        new = new_keys(keys, self._known)
        matrix = np.ascontiguousarray(vectors, np.float32).reshape(len(new), self._pool.dimensions)
        self._known.update(dict.fromkeys(new.tolist()))
        inside = new >= 0
        self._close_erased()
        kernel.add_all(self._tree, new[inside], self._stack, self._sums)
        if not inside.all():
            self._set_outside(
                np.concatenate([self._outside_keys, new[~inside]]), np.concatenate([self._outside, matrix[~inside]])
            )
            for place in range(len(self._outside) - int((~inside).sum()), len(self._outside)):
                key = int(self._outside_keys[place])
                kernel.spread(self._tree, self._outside, place, key, self._stack, self._sums)

    @one_at_a_time
    def remove(self, keys: RowsLike) -> None:
        self._close_erased()
        self._drop(known_keys(keys, self._known))

    @one_at_a_time
    def retire(self, rows: RowsLike) -> None:
        kernel.close_all(self._tree, np.asarray(rows, np.int64))

    @one_at_a_time
    def restore(self, rows: RowsLike) -> None:
        chosen = np.unique(np.asarray(rows, np.int64))
        chosen = chosen[~self._tree.is_open[chosen] & ~self._pool.withdrawn[chosen]]
        for row in chosen:
            self._tree.is_open[row] = True
            kernel._count(self._tree.opened, self._tree.leaf[row], 1)
        self._search(chosen)

    @one_at_a_time
    def extend(self) -> None:
        self._close_erased()
        old = len(self._tree.is_open)
        opened = np.concatenate([self._tree.is_open, ~self._pool.withdrawn[old:]]) & ~self._pool.withdrawn
        self._plant(opened)

    @one_at_a_time
    def nearest(self, k: int, without: RowsLike = ()) -> Nearest:
        self._close_erased()
        tree = self._tree
        left_out = np.unique(np.asarray(without, np.int64))
        k = max(0, min(k, int(tree.opened[0])))
        found = np.empty(k, np.int64)
        count = kernel.collect(tree, k, left_out, found)
        # Too few rows within the horizon, and more beyond it: widen it.
        while count < k and self._known and kernel.widen(tree, k - count, self._stack, self._bounds, self._sums):
            count = kernel.collect(tree, k, left_out, found)
        rows = found[:count]
        return Nearest(rows, np.sqrt(tree.squared[rows]), tree.sources[rows])

    @one_at_a_time
    def follow(self, truth: npt.NDArray[np.bool_], to_find: int, most: int | None = None) -> Rows:
        """Simulate a whole run: ask for the nearest row and reveal its label until all positives are found.

        The order is that of a loop over ``nearest(1)``, ``retire`` and ``add``, without the cost of Python calls.
        """
        order = np.empty(int(self._tree.opened[0]) if most is None else most, np.int64)
        asked = kernel.follow(
            self._tree, np.asarray(truth, bool), order, to_find, self._stack, self._bounds, self._sums
        )
        self._known.update(dict.fromkeys(order[:asked][truth[order[:asked]]].tolist()))
        return order[:asked]

    def _plant(self, opened: npt.NDArray[np.bool_]) -> None:
        """Build the tree of all rows that are not erased, with the positives known so far."""
        vectors = np.ascontiguousarray(self._pool.vectors)
        rows = np.flatnonzero(~self._pool.withdrawn)
        depth = kernel.depth_of(max(1, len(rows)), _LEAF_ROWS)
        nodes, dimensions = (2 << depth) - 1, self._pool.dimensions
        low, high = np.empty((nodes, dimensions)), np.empty((nodes, dimensions))
        start, end = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        leaf = np.full(len(vectors), -1, np.int64)
        kernel.build(vectors, rows, start, end, low, high, leaf)
        horizon = kernel.first_horizon(vectors, rows, _NEIGHBOURS, _SAMPLES) if len(rows) else np.ones(2)
        self._tree = kernel.Tree(
            vectors=vectors, plan=self._plan, index=rows, leaf=leaf, start=start, end=end, low=low, high=high,
            opened=np.zeros(nodes, np.int64), positives=np.zeros(nodes, np.int64),
            best=np.full(nodes, np.inf), best_row=np.full(nodes, -1, np.int64), worst=np.full(nodes, np.inf),
            is_open=opened.copy(), is_positive=np.zeros(len(vectors), bool),
            squared=np.full(len(vectors), np.inf), sources=np.full(len(vectors), NO_KEY),
            horizon=horizon, outside_keys=self._outside_keys, outside=self._outside,
        )  # fmt: skip
        self._stack = np.empty(2 * depth + 8, np.int64)
        self._bounds = np.empty(2 * depth + 8)
        self._sums = np.empty(len(self._plan))
        for counts, members in ((self._tree.opened, opened), (self._tree.positives, self._positive_mask())):
            inside = leaf[members & (leaf >= 0)]
            counts[:] = np.bincount(inside, minlength=nodes)
            for node in range(nodes - 1, 0, -1):
                counts[(node - 1) // 2] += counts[node]
        self._tree.is_positive[:] = self._positive_mask()
        self._search(np.flatnonzero(opened))

    def _positive_mask(self) -> npt.NDArray[np.bool_]:
        mask = np.zeros(len(self._pool), bool)
        mask[[key for key in self._known if key >= 0]] = True
        return mask

    def _set_outside(self, keys: npt.NDArray[np.int64], vectors: npt.NDArray[np.float32]) -> None:
        self._outside_keys, self._outside = keys, np.ascontiguousarray(vectors)
        self._tree = self._tree._replace(outside_keys=self._outside_keys, outside=self._outside)

    def _search(self, rows: Rows) -> None:
        self._tree.squared[rows] = np.inf
        self._tree.sources[rows] = NO_KEY
        kernel.search_all(self._tree, rows, self._stack, self._bounds, self._sums)

    def _close_erased(self) -> None:
        """Close rows erased since the last check, and drop positives among them."""
        if self._erasures == self._pool.erasures:
            return
        self._erasures = self._pool.erasures
        is_open = self._tree.is_open
        self.retire(np.flatnonzero(is_open & self._pool.withdrawn[: len(is_open)]))
        self._drop(np.array([key for key in self._known if key >= 0 and self._pool.withdrawn[key]], np.int64))

    def _drop(self, gone: Rows) -> None:
        """Forget positives, and recompute the rows that were nearest to them."""
        if not len(gone):
            return
        for key in gone.tolist():
            del self._known[key]
        for row in gone[gone >= 0]:
            self._tree.is_positive[row] = False
            kernel._count(self._tree.positives, self._tree.leaf[row], -1)
        keep = ~np.isin(self._outside_keys, gone)
        self._set_outside(self._outside_keys[keep], self._outside[keep])
        self._search(np.flatnonzero(self._tree.is_open & np.isin(self._tree.sources, gone)))
