"""The backend for pools of bits, which counts common bits word by word."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from activecover.frontier import _bits_kernel as kernel
from activecover.frontier._base import Rows
from activecover.frontier._scan import ArrayPositives, Positives, ScanFrontier, row_blocks, rows_of
from activecover.parallel import for_each
from activecover.pool import Pool, bit_vectors

_BLOCK_ROWS = 8192


class BitFrontier(ScanFrontier):
    """The exact frontier for pools of bits, by Jaccard distance: one minus the fraction of common bits.

    A row is skipped if its number of bits alone shows that another positive is nearer. Two rows with no bits set
    are at distance 0.

    Parameters
    ----------
    pool : Pool
        A pool of bits; withdrawn rows are closed from the start.

    Examples
    --------
    >>> pool = Pool([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0]], metric="jaccard")
    >>> frontier = BitFrontier(pool)
    >>> frontier.add([0], pool.take([0]))
    >>> frontier.retire([0])
    >>> found = frontier.nearest(2)
    >>> found.rows, found.distances.round(3)
    (array([2, 1]), array([0.333, 1.   ]))
    """

    kind: ClassVar[str] = "bits"

    _known: ArrayPositives

    def __init__(self, pool: Pool) -> None:
        self._ones = np.zeros(0, np.int64)
        super().__init__(pool)

    def _no_positives(self) -> Positives:
        return ArrayPositives(bit_vectors(self._pool.take([])))

    def _take_in(self, first: int, total: int) -> None:
        added = np.empty(total - first, np.int64)
        kernel.count_ones(self._pool.vectors, first, added)
        self._ones = np.concatenate([self._ones, added])

    def _improve(self, rows: Rows | None, new: slice) -> None:
        keys, positives = self._known.keys[new], self._known.vectors[new]
        if not len(keys) or (rows is not None and not len(rows)):
            return
        words, ones = bit_vectors(self._pool.vectors), np.empty(len(keys), np.int64)
        kernel.count_ones(positives, 0, ones)

        def work(block: tuple[int, int, Rows | None]) -> None:
            kernel.refine(
                words, rows_of(block, self._open), self._ones, positives, ones, keys, self._values, self._sources
            )

        for_each(work, row_blocks(rows, self._open, _BLOCK_ROWS), blas=False)
