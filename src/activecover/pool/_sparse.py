"""Sparse vectors, such as those of text: float32 in compressed rows, checked and normalised once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError
from activecover.pool._matrix import LARGEST_VALUE, Matrix, VectorsLike, as_matrix, blocks, check_table, refuse_value

#: A frontier stores positives by column: a table with more columns than this would not fit in memory.
_MOST_COLUMNS = 2**27
#: Rows per block of a fingerprint: part of its definition.
_HASHED_ROWS = 4096


class SparseMatrix(Matrix[sparse.csr_array]):
    """A float32 CSR array with ascending, unique columns in each row and no stored zeros.

    Never centred (the origin is zero), as a sparse matrix has to stay sparse.
    """

    kind = "sparse"

    def __init__(self, given: Any, metric: str, columns: Sequence[str] | None) -> None:
        self._metric, self._columns = metric, columns
        self.dimensions = int(given.shape[-1])
        self._keep(self.encode(given))
        self.origin = np.zeros(self.dimensions, np.float32)

    @classmethod
    def restored(cls, rows: sparse.csr_array, metric: str, columns: Sequence[str] | None) -> Self:
        """Use stored rows as they are."""
        matrix = object.__new__(cls)
        matrix._metric, matrix._columns = metric, columns
        matrix.dimensions = int(rows.shape[1])
        matrix.origin = np.zeros(matrix.dimensions, np.float32)
        matrix._keep(rows)
        return matrix

    def __len__(self) -> int:
        return int(self._rows.shape[0])

    @property
    def vectors(self) -> sparse.csr_array:
        return self._view

    def take(self, rows: npt.NDArray[np.int64]) -> sparse.csr_array:
        return self._rows[rows]

    def encode(self, given: VectorsLike) -> sparse.csr_array:
        csr = as_csr(given, self._columns)
        self._check_width(csr.shape[1])
        if self._metric == "cosine":
            _normalise(csr)
        csr.data = csr.data.astype(np.float32)
        # Values that float32 rounds to zero are not stored.
        csr.eliminate_zeros()
        return _narrow(csr)

    def append(self, encoded: sparse.csr_array) -> None:
        mine, total = self._rows, len(self) + encoded.shape[0]
        ends = np.concatenate([mine.indptr, mine.indptr[-1] + encoded.indptr[1:].astype(np.int64)])
        columns = np.concatenate([mine.indices, encoded.indices])
        values = np.concatenate([mine.data, encoded.data])
        self._keep(_narrow(sparse.csr_array((values, columns, ends), shape=(total, self.dimensions))))

    def erase(self, rows: npt.NDArray[np.int64]) -> None:
        if not self._rows.data.flags.writeable:
            self._keep(self._rows.copy())
        for row in rows.tolist():
            place = slice(self._rows.indptr[row], self._rows.indptr[row + 1])
            self._rows.data[place] = np.nan
            self._rows.indices[place] = 0

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._keep(self._rows.copy())
        return twin

    def part(self, rows: npt.NDArray[np.int64]) -> Self:
        return self.restored(self.take(rows), self._metric, self._columns)

    def chunks(self, vectors: sparse.csr_array, count: int) -> Iterator[bytes]:
        for start in range(0, count, _HASHED_ROWS):
            ends = vectors.indptr[start : min(start + _HASHED_ROWS, count) + 1]
            inside = slice(ends[0], ends[-1])
            # SciPy chooses the index width by the number of entries; a fingerprint must not depend on it.
            yield np.diff(ends).astype("<i8").tobytes()
            yield vectors.indices[inside].astype("<i8").tobytes()
            yield vectors.data[inside].astype("<f4").tobytes()

    def _keep(self, rows: sparse.csr_array) -> None:
        self._rows = rows
        parts = [part.view() for part in (rows.data, rows.indices, rows.indptr)]
        for part in parts:
            part.flags.writeable = False
        self._view = sparse.csr_array(tuple(parts), shape=rows.shape, copy=False)


def _narrow(csr: sparse.csr_array) -> sparse.csr_array:
    """Use 32-bit indices if they suffice: every scan then reads half as much memory."""
    width = np.int32 if csr.nnz < 2**31 else np.int64
    parts = (csr.data, csr.indices.astype(width, copy=False), csr.indptr.astype(width, copy=False))
    return sparse.csr_array(parts, shape=csr.shape)


def as_csr(given: Any, columns: Sequence[str] | None = None) -> sparse.csr_array:
    """A CSR copy with checked values: columns ascending, duplicates summed, zeros dropped.

    Its values are float32 if the input is float32 and repeats no column, otherwise float64.
    """
    if not sparse.issparse(given):
        with np.errstate(over="ignore"):
            given = sparse.csr_array(as_matrix(given).astype(np.float64))
    check_table(given.dtype, given.shape)
    if given.shape[1] > _MOST_COLUMNS:
        raise InputError(f"{given.shape[1]:,} vector columns are more than {_MOST_COLUMNS:,}: hash them to fewer")
    try:
        # SciPy and the compiled kernels would follow indices that point outside.
        if hasattr(given, "check_format"):
            given.check_format(full_check=True)
        csr = _in_rows(given)
    except (ValueError, IndexError) as wrong:
        raise InputError(f"the sparse matrix is damaged: {str(wrong).splitlines()[0]}") from wrong
    _check_values(csr, columns)
    csr.eliminate_zeros()
    return csr


def _in_rows(given: Any) -> sparse.csr_array:
    if given.format == "csr":
        # Rebuilt, so that the matrix's own flags (sorted, no duplicates) are not trusted.
        given = sparse.csr_array((given.data, given.indices, given.indptr), shape=given.shape)
        if given.dtype == np.float32 and given.has_canonical_format:
            return sparse.csr_array(given, copy=True)
    with np.errstate(over="ignore"):
        csr = sparse.csr_array(given.astype(np.float64, copy=True))
    csr.sum_duplicates()
    return csr


def _check_values(csr: sparse.csr_array, columns: Sequence[str] | None) -> None:
    for block in blocks(csr.nnz, 8):
        bad = ~(np.abs(csr.data[block]) <= LARGEST_VALUE)
        if bad.any():
            place = block.start + int(np.argmax(bad))
            refuse_value(row_of(csr, place), int(csr.indices[place]), float(csr.data[place]), columns)


def row_of(csr: sparse.csr_array, place: int) -> int:
    """The row of a stored value."""
    return int(np.searchsorted(csr.indptr, place, side="right")) - 1


def _normalise(csr: sparse.csr_array) -> None:
    """Scale every row to length one, in float64, as dense rows are."""
    lengths = np.diff(csr.indptr)
    if not lengths.all():
        row = int(np.flatnonzero(lengths == 0)[0])
        raise InputError(f"row {row} is all zeros: cosine needs a direction; drop it or use euclidean")
    starts = csr.indptr[:-1]
    values = csr.data.astype(np.float64)
    values /= np.repeat(np.maximum.reduceat(np.abs(values), starts), lengths)
    values /= np.repeat(np.sqrt(np.add.reduceat(values**2, starts)), lengths)
    csr.data = values
