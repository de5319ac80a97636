"""Dense vectors: float32, centred or normalised once, checked once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError
from activecover.pool._matrix import LARGEST_VALUE, DenseVectors, Matrix, VectorsLike, as_matrix, blocks, refuse_value


class DenseMatrix(Matrix[DenseVectors]):
    """A float32 array; a memory map that needs no change is used as it is."""

    kind = "dense"

    def __init__(self, given: VectorsLike, metric: str, columns: Sequence[str] | None) -> None:
        matrix = as_matrix(given)
        self._metric, self._columns = metric, columns
        self.dimensions = int(matrix.shape[1])
        low, high = value_range(matrix, columns)
        self.origin = origin_of(low, high) if metric == "euclidean" else np.zeros(self.dimensions, np.float32)
        self._values = self._stored(matrix)

    @classmethod
    def restored(
        cls,
        values: npt.NDArray[np.float32],
        origin: npt.NDArray[np.float32],
        metric: str,
        columns: Sequence[str] | None,
    ) -> Self:
        """Use stored values as they are."""
        matrix = object.__new__(cls)
        matrix._metric, matrix._columns, matrix.origin = metric, columns, origin
        matrix.dimensions, matrix._values = int(values.shape[1]), values
        return matrix

    def __len__(self) -> int:
        return len(self._values)

    @property
    def vectors(self) -> npt.NDArray[np.float32]:
        view = self._values.view()
        view.flags.writeable = False
        return view

    def take(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        return np.asarray(self._values[rows])

    def encode(self, given: VectorsLike) -> npt.NDArray[np.float32]:
        if sparse.issparse(given):
            raise InputError("a sparse matrix, but the pool holds dense vectors: give an array (toarray)")
        matrix = as_matrix(given)
        self._check_width(matrix.shape[1])
        value_range(matrix, self._columns)
        return self._stored(matrix)

    def append(self, encoded: npt.NDArray[np.float32]) -> None:
        self._values = np.concatenate([self._values, encoded])

    def erase(self, rows: npt.NDArray[np.int64]) -> None:
        if not self._values.flags.writeable or isinstance(self._values, np.memmap):
            self._values = np.array(self._values)
        self._values[rows] = np.nan

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._values = np.array(self._values)
        return twin

    def part(self, rows: npt.NDArray[np.int64]) -> Self:
        return self.restored(self.take(rows), self.origin, self._metric, self._columns)

    def chunks(self, vectors: npt.NDArray[np.float32], count: int) -> Iterator[bytes]:
        for block in blocks(count, self.dimensions * 4):
            yield np.ascontiguousarray(vectors[block]).tobytes()

    def _stored(self, matrix: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        if self._metric == "cosine":
            return _normalised(matrix)
        if matrix.dtype == np.float32 and not self.origin.any():
            # A copy, unless it is a memory map: a file is read in place.
            return matrix if isinstance(matrix, np.memmap) else np.array(matrix, order="C")
        stored = np.empty(matrix.shape, np.float32)
        for block in blocks(len(matrix), matrix.shape[1] * 8):
            stored[block] = np.asarray(matrix[block], np.float64) - self.origin
        return stored


def value_range(
    matrix: npt.NDArray[Any], columns: Sequence[str] | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Smallest and largest value of each column; the first bad value is named by row and column."""
    low = np.full(matrix.shape[1], np.inf)
    high = np.full(matrix.shape[1], -np.inf)
    for block in blocks(len(matrix), matrix.shape[1] * 8):
        with np.errstate(over="ignore"):
            part = np.asarray(matrix[block], np.float64)
        bad = ~(np.abs(part) <= LARGEST_VALUE)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            refuse_value(block.start + row, column, part[row, column], columns)
        np.minimum(low, part.min(axis=0), out=low)
        np.maximum(high, part.max(axis=0), out=high)
    return low, high


def origin_of(low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """The point to centre on: 0 in each column, except those that lie far from 0.

    A column is shifted by its midpoint only if all its values lie within an eighth of it. Subtracting the midpoint
    is then exact for float32 values (Sterbenz), so no difference between two rows and no tie changes, and the
    products used as filters lose no digits to a common offset.
    """
    middle = ((low + high) / 2).astype(np.float32)
    far = (middle != 0) & ((high - low) <= np.abs(middle) / 4)
    return np.where(far, middle, np.float32(0))


def _normalised(matrix: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    stored = np.empty(matrix.shape, np.float32)
    for block in blocks(len(matrix), matrix.shape[1] * 8):
        part = np.asarray(matrix[block], np.float64)
        # Scaling by the largest value first keeps tiny and huge rows from under- or overflowing.
        largest = np.abs(part).max(axis=1, keepdims=True)
        if not largest.all():
            row = block.start + int(np.flatnonzero(largest[:, 0] == 0)[0])
            raise InputError(f"row {row} is all zeros: cosine needs a direction; drop it or use euclidean")
        part = part / largest
        stored[block] = part / np.sqrt((part**2).sum(axis=1, keepdims=True))
    return stored
