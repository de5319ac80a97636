"""The backend for sparse pools: one pass over the stored values per group of positives."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.frontier import _sparse_kernel as kernel
from activecover.frontier._base import Rows
from activecover.frontier._scan import Positives, ScanFrontier, row_blocks, rows_of
from activecover.parallel import for_each
from activecover.pool import Pool, Vectors, sparse_vectors

_BLOCK_ROWS = 4096


class SparsePositives(Positives):
    """Keys of the positives and their values in compressed rows, in arrays that grow in place."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._clear()

    def _clear(self) -> None:
        self._places = {}
        self._keys = np.zeros(8, np.int64)
        self._ends = np.zeros(9, np.int64)
        self._columns = np.zeros(256, np.int32)
        self._values = np.zeros(256, np.float32)

    @property
    def ends(self) -> npt.NDArray[np.int64]:
        """Offsets at which each positive's values end and the next ones begin; the first is 0."""
        return self._ends[: len(self) + 1]

    @property
    def columns(self) -> npt.NDArray[np.int32]:
        """The columns of all positives, concatenated."""
        return self._columns[: self._ends[len(self)]]

    @property
    def values(self) -> npt.NDArray[np.float32]:
        """The values of those columns."""
        return self._values[: self._ends[len(self)]]

    @property
    def vectors(self) -> sparse.csr_array:
        """The vectors of all positives, in the order of their keys."""
        return sparse.csr_array((self.values, self.columns, self.ends), shape=(len(self), self._dimensions))

    def add(self, keys: Rows, vectors: Vectors) -> None:
        first, total = len(self), len(self) + len(keys)
        added, start = sparse_vectors(vectors), int(self._ends[first])
        end = start + int(added.indptr[-1])
        self._keys, self._ends = _room(self._keys, total), _room(self._ends, total + 1)
        self._columns, self._values = _room(self._columns, end), _room(self._values, end)
        self._keys[first:total] = keys
        self._ends[first + 1 : total + 1] = start + added.indptr[1:].astype(np.int64)
        self._columns[start:end], self._values[start:end] = added.indices, added.data
        self._places.update(dict.fromkeys(keys.tolist()))

    def drop(self, keys: Rows) -> None:
        kept = np.flatnonzero(~np.isin(self.keys, keys))
        kept_keys, vectors = self.keys[kept], self.vectors[kept]
        # Dropped vectors must not stay in memory: they may have been erased.
        self._clear()
        self.add(kept_keys, vectors)


def _room(values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """The array, or a copy that is at least twice as long if it is too short."""
    if size <= len(values):
        return values
    return np.concatenate([values, np.zeros(max(size, 2 * len(values)) - len(values), values.dtype)])


class SparseFrontier(ScanFrontier):
    """The exact frontier for sparse pools.

    New positives are stored by column, a few at a time, and every open row is multiplied with them in one pass over
    its values, in float64. Only pairs that can matter within the products' error are compared exactly, by merging the
    columns of both rows.

    Parameters
    ----------
    pool : Pool
        A sparse pool; withdrawn rows are closed from the start.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> pool = Pool(csr_array([[1.0, 0, 0], [0, 0, 3.0], [1.0, 1.0, 0]]))
    >>> frontier = SparseFrontier(pool)
    >>> frontier.add([0], pool.take([0]))
    >>> frontier.retire([0])
    >>> frontier.nearest(2).rows
    array([2, 1])
    """

    kind: ClassVar[str] = "sparse"
    _known: SparsePositives

    def __init__(self, pool: Pool) -> None:
        self._squares = np.zeros(0)
        super().__init__(pool)

    def _no_positives(self) -> Positives:
        return SparsePositives(self._pool.dimensions)

    def _distances(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.sqrt(values)

    def _take_in(self, first: int, total: int) -> None:
        added, stored = np.empty(total - first), sparse_vectors(self._pool.vectors)
        kernel.squares(stored.indptr, stored.data, first, added)
        self._squares = np.concatenate([self._squares, added])

    def _improve(self, rows: Rows | None, new: slice) -> None:
        known, stored = self._known, sparse_vectors(self._pool.vectors)
        start, stop, _ = new.indices(len(known))
        if start == stop or (rows is not None and not len(rows)):
            return
        squares = np.empty(stop)
        kernel.squares(known.ends, known.values, 0, squares)
        parts = row_blocks(rows, self._open, _BLOCK_ROWS)
        table = np.zeros((self._pool.dimensions, 1 if stop - start == 1 else kernel.GROUP), np.float32)
        for first in range(start, stop, kernel.GROUP):
            last = min(first + kernel.GROUP, stop)
            kernel.scatter(known.columns, known.values, known.ends, first, last, table)

            def work(block: tuple[int, int, Rows | None], first: int = first, last: int = last) -> None:
                kernel.refine(
                    stored.indptr, stored.indices, stored.data, rows_of(block, self._open), self._squares,
                    known.ends, known.columns, known.values, squares, known.keys,
                    first, last, table, self._values, self._sources,
                )  # fmt: skip

            for_each(work, parts, blas=False)
            kernel.wipe(known.columns, known.ends, first, last, table)
