"""The reference backend: a distance per row, kept up to date by filtered products."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from activecover.frontier import distance
from activecover.frontier._base import Rows
from activecover.frontier._scan import ArrayPositives, Positives, ScanFrontier, row_blocks, rows_of
from activecover.parallel import for_each
from activecover.pool import Pool, blocks, dense_vectors, longer

#: Products of one block; smaller blocks cost more calls than a faster cache saves.
PRODUCT_BYTES = 1 << 23
_BLOCK_ROWS = 4096
#: With few positives a block is done so quickly that handing it to a thread would take as long.
_LONG_BLOCK_ROWS = 1 << 15
_SQUARE_BYTES = 1 << 20
#: With up to so many positives, rows that lie up to so many times apart are not copied together.
_FEW = 16
_LOOSE = 4


class _Scratch(threading.local):
    """Arrays to work in, each thread's own: fresh memory for every block would cost as much as the product."""

    def __init__(self) -> None:
        self._buffers: dict[str, npt.NDArray[np.float32]] = {}

    def array(self, name: str, rows: int, columns: int) -> npt.NDArray[np.float32]:
        """An array of a shape, with anything in it."""
        size = rows * columns
        if name not in self._buffers or self._buffers[name].size < size:
            self._buffers[name] = np.empty(size, np.float32)
        return self._buffers[name][:size].reshape(rows, columns)


class ExactFrontier(ScanFrontier):
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

    _known: ArrayPositives

    def __init__(self, pool: Pool) -> None:
        self._slack = distance.slack_of(pool.dimensions)
        self._plan = distance.summation_plan(pool.dimensions)
        self._squares = np.zeros(0)
        self._scratch = _Scratch()
        super().__init__(pool)

    def _no_positives(self) -> Positives:
        return ArrayPositives(dense_vectors(self._pool.take([])))

    def _distances(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.sqrt(values)

    def _take_in(self, first: int, total: int) -> None:
        self._squares = longer(self._squares, np.empty(total - first))
        for block in blocks(total - first, self._pool.dimensions * 8, _SQUARE_BYTES):
            rows = slice(first + block.start, first + block.stop)
            self._squares[rows] = distance.squares(dense_vectors(self._pool.vectors)[rows])

    def _improve(self, rows: Rows | None, new: slice) -> None:
        keys = self._known.keys[new]
        if not len(keys) or (rows is not None and not len(rows)):
            return
        most = _BLOCK_ROWS if len(keys) > _FEW else _LONG_BLOCK_ROWS
        step = max(64, min(most, PRODUCT_BYTES // (4 * len(keys))))
        positives = self._known.vectors[new]
        doubled = np.ascontiguousarray(2 * positives.T)
        squares = distance.squares(positives)

        def work(block: tuple[int, int, Rows | None]) -> None:
            part = rows_of(block, self._open)
            if not len(part):
                return
            vectors, places = self._gather(part, spare=len(keys) <= _FEW)
            products = self._scratch.array("products", len(vectors), len(keys))
            np.matmul(vectors, doubled, out=products)
            distance.refine(
                vectors, places, part, products, self._squares_of(part, vectors, places), positives, squares, keys,
                self._slack, self._plan, self._values, self._sources,
            )  # fmt: skip

        for_each(work, row_blocks(rows, self._open, step))

    def _squares_of(self, rows: Rows, vectors: npt.NDArray[np.float32], places: Rows) -> npt.NDArray[np.float64]:
        """Squared lengths of some rows."""
        return self._squares[rows]

    def _gather(self, rows: Rows, *, spare: bool) -> tuple[npt.NDArray[np.float32], Rows]:
        """The vectors of ascending rows, and which of those that come back are theirs.

        A view where they lie side by side. Else a copy, or, to ``spare`` it (with few positives it takes
        longer than the products), a view of all rows from the first to the last.
        """
        stored, span = dense_vectors(self._pool.vectors), int(rows[-1] - rows[0]) + 1
        if span == len(rows) or (spare and span <= _LOOSE * len(rows)):
            return stored[rows[0] : rows[-1] + 1], rows - rows[0]
        copy = self._scratch.array("rows", len(rows), self._pool.dimensions)
        return np.take(stored, rows, axis=0, out=copy, mode="clip"), np.arange(len(rows))
