"""The reference backend: a distance per row, kept up to date by filtered products."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.frontier import _kernel
from activecover.frontier._base import NO_KEY, Frontier, Nearest, Rows, RowsLike
from activecover.parallel import for_each
from activecover.pool import Pool

_PRODUCT_BYTES = 1 << 23
_BLOCK_ROWS = 4096


class ExactFrontier(Frontier):
    """Distance to the nearest positive of every open row, and which positive that is.

    A new positive is compared with all open rows by blocked float32 matrix products; their error is
    bounded, and only pairs that can matter are settled by the exact kernel. Retired rows are left out.

    Parameters
    ----------
    pool : Pool
        The rows; those that were withdrawn are closed from the start.

    Examples
    --------
    >>> import numpy as np
    >>> frontier = ExactFrontier(Pool([[0.0], [1.0], [5.0], [6.5]]))
    >>> frontier.add([0], np.array([[0.0]], dtype=np.float32))
    >>> frontier.retire([0])
    >>> found = frontier.nearest(2)
    >>> found.rows, found.distances, found.sources
    (array([1, 2]), array([1., 5.]), array([0, 0]))
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._erasures = pool.erasures
        self._slack = _kernel.slack_of(pool.dimensions)
        self._plan = _kernel.summation_plan(pool.dimensions)
        self._open = np.zeros(0, bool)
        self._squares = np.zeros(0)
        self._squared = np.zeros(0)
        self._sources = np.zeros(0, np.int64)
        self._keys = np.zeros(0, np.int64)
        self._positives = np.zeros((0, pool.dimensions), np.float32)
        self._positive_squares = np.zeros(0)
        self.extend()

    @property
    def positives(self) -> int:
        self._close_erased()
        return len(self._keys)

    def add(self, keys: RowsLike, vectors: npt.NDArray[np.float32]) -> None:
        new = np.asarray(keys, np.int64)
        matrix = np.ascontiguousarray(vectors, np.float32).reshape(len(new), self._pool.dimensions)
        if len(np.unique(new)) != len(new) or np.isin(new, self._keys).any():
            raise InputError("a positive can be added once only: remove it before adding it again")
        first = len(self._keys)
        self._keys = np.concatenate([self._keys, new])
        self._positives = np.concatenate([self._positives, matrix])
        self._positive_squares = np.concatenate([self._positive_squares, _kernel.squares(matrix)])
        self._improve(self._open_rows(), slice(first, None))

    def remove(self, keys: RowsLike) -> None:
        self._close_erased()
        gone = np.asarray(keys, np.int64)
        known = np.isin(gone, self._keys)
        if not known.all():
            raise InputError(f"positive {gone[~known][0]} is not known here")
        self._drop(gone)

    def retire(self, rows: RowsLike) -> None:
        chosen = np.asarray(rows, np.int64)
        self._open[chosen] = False
        self._squared[chosen] = np.inf
        self._sources[chosen] = NO_KEY

    def restore(self, rows: RowsLike) -> None:
        chosen = np.unique(np.asarray(rows, np.int64))
        chosen = chosen[~self._open[chosen] & ~self._pool.withdrawn[chosen]]
        self._open[chosen] = True
        self._squares[chosen] = _kernel.squares(self._pool.vectors[chosen])
        self._recompute(chosen)

    def extend(self) -> None:
        self._close_erased()
        first, total = len(self._open), len(self._pool)
        added = total - first
        self._open = np.concatenate([self._open, ~self._pool.withdrawn[first:]])
        self._squares = np.concatenate([self._squares, np.empty(added)])
        for start in range(first, total, _BLOCK_ROWS):
            block = slice(start, min(start + _BLOCK_ROWS, total))
            self._squares[block] = _kernel.squares(self._pool.vectors[block])
        self._squared = np.concatenate([self._squared, np.full(added, np.inf)])
        self._sources = np.concatenate([self._sources, np.full(added, NO_KEY)])
        self._improve(first + np.flatnonzero(self._open[first:]), slice(None))

    def nearest(self, k: int, without: RowsLike = ()) -> Nearest:
        self._close_erased()
        left_out = np.asarray(without, np.int64)
        # Asking for as many more as are left out keeps this free of copies and of side effects.
        rows = _smallest(self._squared, k + len(left_out))
        if len(left_out):
            rows = rows[~np.isin(rows, left_out)][:k]
        return Nearest(rows, np.sqrt(self._squared[rows]), self._sources[rows])

    def _open_rows(self) -> Rows:
        self._close_erased()
        return np.flatnonzero(self._open)

    def _close_erased(self) -> None:
        """Close rows that were erased since this was last looked at."""
        if self._erasures != self._pool.erasures:
            self._erasures = self._pool.erasures
            self.retire(np.flatnonzero(self._open & self._pool.withdrawn[: len(self._open)]))
            inside = self._keys[self._keys >= 0]
            self._drop(inside[self._pool.withdrawn[inside]])

    def _drop(self, gone: Rows) -> None:
        """Forget positives, and find the nearest of the others for the rows that they were nearest to."""
        if not len(gone):
            return
        keep = ~np.isin(self._keys, gone)
        self._keys, self._positives = self._keys[keep], self._positives[keep]
        self._positive_squares = self._positive_squares[keep]
        rows = np.flatnonzero(self._open)
        self._recompute(rows[np.isin(self._sources[rows], gone)])

    def _recompute(self, rows: Rows) -> None:
        self._squared[rows] = np.inf
        self._sources[rows] = NO_KEY
        self._improve(rows, slice(None))

    def _improve(self, rows: Rows, new: slice) -> None:
        """Compare rows with some of the positives and keep what is nearer."""
        keys = self._keys[new]
        if not len(keys) or not len(rows):
            return
        step = max(64, min(_BLOCK_ROWS, _PRODUCT_BYTES // (4 * len(keys))))
        parts = [rows[start : start + step] for start in range(0, len(rows), step)]
        positives, squares = self._positives[new], self._positive_squares[new]

        def work(part: Rows) -> None:
            vectors = self._gather(part)
            products = vectors @ positives.T
            _kernel.settle(
                vectors, part, products, self._squares, positives, squares, keys,
                self._slack, self._plan, self._squared, self._sources,
            )  # fmt: skip

        for_each(work, parts)

    def _gather(self, rows: Rows) -> npt.NDArray[np.float32]:
        """The vectors of ascending rows: a view where they lie side by side, else a copy."""
        if rows[-1] - rows[0] + 1 == len(rows):
            return np.asarray(self._pool.vectors[rows[0] : rows[-1] + 1])
        return np.asarray(self._pool.vectors[rows])


def _smallest(values: npt.NDArray[np.float64], k: int) -> Rows:
    """Places of the ``k`` smallest finite values, ascending, ties by the lower place."""
    if k < 1:
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
