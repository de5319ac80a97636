"""The reference backend: one distance per row, updated by filtered products."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from activecover.frontier import distance
from activecover.frontier._base import Rows
from activecover.frontier._scan import ArrayPositives, Positives, ScanFrontier, row_blocks, rows_of
from activecover.parallel import for_each
from activecover.pool import Pool, blocks, dense_vectors, longer

#: Size of one block of products; with smaller blocks, extra calls cost more than the faster cache saves.
PRODUCT_BYTES = 1 << 23
_BLOCK_ROWS = 4096
#: With few positives a block takes no longer than handing it to a thread.
_LONG_BLOCK_ROWS = 1 << 15
_SQUARE_BYTES = 1 << 20
#: With at most ``_FEW`` positives, rows spread over at most ``_LOOSE`` times their number are not copied.
_FEW = 16
_LOOSE = 4


class _Scratch(threading.local):
    """Scratch arrays of each thread: allocating them for every block would cost as much as the product."""

    def __init__(self) -> None:
        self._buffers: dict[str, npt.NDArray[np.float32]] = {}

    def array(self, name: str, rows: int, columns: int) -> npt.NDArray[np.float32]:
        """An uninitialised array of the given shape."""
        size = rows * columns
        if name not in self._buffers or self._buffers[name].size < size:
            self._buffers[name] = np.empty(size, np.float32)
        return self._buffers[name][:size].reshape(rows, columns)


class ExactFrontier(ScanFrontier):
    """Keeps the distance of every open row to its nearest positive, and which positive that is.

    A new positive is compared with all open rows by blocked float32 matrix products. Their error is bounded, and
    only pairs that can matter go to the exact kernel. Retired rows are skipped.

    Parameters
    ----------
    pool : Pool
        The rows; withdrawn ones are closed from the start.

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
        """Vectors that include those of some ascending rows, and the positions of the rows among them.

        A view if the rows are contiguous, otherwise a copy. With ``spare`` the copy is avoided by a view of all rows
        from the first to the last, since with few positives the copy takes longer than the products.
        """
        stored, span = dense_vectors(self._pool.vectors), int(rows[-1] - rows[0]) + 1
        if span == len(rows) or (spare and span <= _LOOSE * len(rows)):
            return stored[rows[0] : rows[-1] + 1], rows - rows[0]
        copy = self._scratch.array("rows", len(rows), self._pool.dimensions)
        return np.take(stored, rows, axis=0, out=copy, mode="clip"), np.arange(len(rows))
