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


class _Positives:
    """Keys, vectors and squared lengths of the positives, in arrays that grow in place."""

    def __init__(self, dimensions: int) -> None:
        self._places: dict[int, None] = {}
        self._keys = np.zeros(8, np.int64)
        self._vectors = np.zeros((8, dimensions), np.float32)
        self._squares = np.zeros(8)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: int) -> bool:
        return key in self._places

    @property
    def keys(self) -> npt.NDArray[np.int64]:
        return self._keys[: len(self)]

    @property
    def vectors(self) -> npt.NDArray[np.float32]:
        return self._vectors[: len(self)]

    @property
    def squares(self) -> npt.NDArray[np.float64]:
        return self._squares[: len(self)]

    def add(self, keys: Rows, vectors: npt.NDArray[np.float32]) -> None:
        first, total = len(self), len(self) + len(keys)
        while len(self._keys) < total:
            self._keys = np.concatenate([self._keys, np.zeros_like(self._keys)])
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
            self._squares = np.concatenate([self._squares, np.zeros_like(self._squares)])
        self._keys[first:total], self._vectors[first:total] = keys, vectors
        self._squares[first:total] = _kernel.squares(vectors)
        self._places.update(dict.fromkeys(keys.tolist()))

    def drop(self, keys: Rows) -> None:
        kept = np.flatnonzero(~np.isin(self.keys, keys))
        self._keys[: len(kept)], self._vectors[: len(kept)] = self._keys[kept], self._vectors[kept]
        self._squares[: len(kept)] = self._squares[kept]
        for key in keys.tolist():
            del self._places[key]


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
        self._known = _Positives(pool.dimensions)
        self.extend()

    @property
    def positives(self) -> int:
        self._close_erased()
        return len(self._known)

    def add(self, keys: RowsLike, vectors: npt.NDArray[np.float32]) -> None:
        new = np.asarray(keys, np.int64)
        matrix = np.ascontiguousarray(vectors, np.float32).reshape(len(new), self._pool.dimensions)
        if len(set(new.tolist())) != len(new) or any(key in self._known for key in new.tolist()):
            raise InputError("a positive can be added once only: remove it before adding it again")
        first = len(self._known)
        self._known.add(new, matrix)
        self._improve(self._open_rows(), slice(first, None))

    def remove(self, keys: RowsLike) -> None:
        self._close_erased()
        gone = np.asarray(keys, np.int64)
        for key in gone.tolist():
            if key not in self._known:
                raise InputError(f"positive {key} is not known here")
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
            inside = self._known.keys[self._known.keys >= 0]
            self._drop(inside[self._pool.withdrawn[inside]])

    def _drop(self, gone: Rows) -> None:
        """Forget positives, and find the nearest of the others for the rows that they were nearest to."""
        if not len(gone):
            return
        self._known.drop(gone)
        rows = np.flatnonzero(self._open)
        self._recompute(rows[np.isin(self._sources[rows], gone)])

    def _recompute(self, rows: Rows) -> None:
        self._squared[rows] = np.inf
        self._sources[rows] = NO_KEY
        self._improve(rows, slice(None))

    def _improve(self, rows: Rows, new: slice) -> None:
        """Compare rows with some of the positives and keep what is nearer."""
        keys = self._known.keys[new]
        if not len(keys) or not len(rows):
            return
        step = max(64, min(_BLOCK_ROWS, _PRODUCT_BYTES // (4 * len(keys))))
        parts = [rows[start : start + step] for start in range(0, len(rows), step)]
        positives, squares = self._known.vectors[new], self._known.squares[new]

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
