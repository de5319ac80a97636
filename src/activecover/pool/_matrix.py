"""The interface of the matrix that holds a pool's vectors, whatever its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError

if TYPE_CHECKING:
    from activecover.pool._bits import PackedBits

#: What a pool stores; ``sharded`` is dense, in the memory of a cluster.
Kind = Literal["dense", "sparse", "bits", "sharded"]
#: Vectors of a dense pool.
DenseVectors: TypeAlias = npt.NDArray[np.float32]
#: Vectors of a pool of bits, 64 to a word.
BitVectors: TypeAlias = npt.NDArray[np.uint64]
#: Vectors as a pool stores them: a float32 array, an array of packed 64-bit words, or a CSR array.
Vectors: TypeAlias = DenseVectors | BitVectors | sparse.csr_array
#: Vectors as a caller passes them.
VectorsLike: TypeAlias = "npt.ArrayLike | sparse.sparray | sparse.spmatrix | PackedBits"

#: Squares and sums of values up to this size stay far inside float32's range in every filter.
LARGEST_VALUE = 1e15
_BLOCK_BYTES = 1 << 21


#: The type of the vectors that a matrix stores.
Stored = TypeVar("Stored", bound=Vectors)


class Matrix(ABC, Generic[Stored]):
    """The stored vectors of a pool; one subclass per kind.

    Rows are added at the end and erased in place, never renumbered. ``encode`` turns outside vectors into what the
    matrix would store for them, so that one definition of distance serves both.
    """

    kind: ClassVar[Kind]
    dimensions: int
    origin: npt.NDArray[np.float32]

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def vectors(self) -> Stored:
        """The stored vectors, read-only."""

    @abstractmethod
    def take(self, rows: npt.NDArray[np.int64]) -> Stored:
        """Some rows, in the form that a frontier takes."""

    @abstractmethod
    def encode(self, given: VectorsLike) -> Stored:
        """What would be stored for these vectors; errors name the row and column of a bad value."""

    @abstractmethod
    def append(self, encoded: Stored) -> None:
        """Add encoded rows at the end."""

    @abstractmethod
    def erase(self, rows: npt.NDArray[np.int64]) -> None:
        """Overwrite the values of rows; a file they were read from is not changed."""

    @abstractmethod
    def copy(self) -> Self:
        """An independent copy."""

    @abstractmethod
    def part(self, rows: npt.NDArray[np.int64]) -> Matrix[Stored]:
        """A matrix of some of the rows, as stored."""

    @abstractmethod
    def chunks(self, vectors: Stored, count: int) -> Iterator[bytes]:
        """The first ``count`` rows of stored or encoded vectors as bytes, the same on every machine."""

    def _check_width(self, columns: int) -> None:
        if columns != self.dimensions:
            raise InputError(f"vectors have {columns} columns, the pool has {self.dimensions}")


def blocks(count: int, row_bytes: int, block_bytes: int = _BLOCK_BYTES) -> Iterator[slice]:
    """Slices of rows that are small enough to process at once."""
    step = max(1, block_bytes // max(1, row_bytes))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


#: A matrix of any kind.
AnyMatrix: TypeAlias = Matrix[Any]


def dense_vectors(vectors: Vectors) -> DenseVectors:
    """Narrow vectors to those of a dense pool; other kinds are refused.

    Examples
    --------
    >>> dense_vectors(np.zeros((1, 2), np.uint64))
    Traceback (most recent call last):
    activecover.errors.InputError: dense vectors are needed here, not packed bits
    """
    if sparse.issparse(vectors) or vectors.dtype == np.uint64:
        raise InputError(f"dense vectors are needed here, not {_described(vectors)}")
    return np.asarray(vectors, np.float32)


def sparse_vectors(vectors: Vectors) -> sparse.csr_array:
    """Narrow vectors to those of a sparse pool; other kinds are refused."""
    if not isinstance(vectors, sparse.csr_array):
        raise InputError(f"a CSR array is needed here, not {_described(vectors)}")
    return vectors


def bit_vectors(vectors: Vectors) -> BitVectors:
    """Narrow vectors to those of a pool of bits; other kinds are refused."""
    if sparse.issparse(vectors) or vectors.dtype != np.uint64:
        raise InputError(f"packed bits are needed here, not {_described(vectors)}")
    return np.asarray(vectors, np.uint64)


def _described(vectors: Vectors) -> str:
    if sparse.issparse(vectors):
        return "a sparse array"
    return "packed bits" if vectors.dtype == np.uint64 else "a dense array"


def as_matrix(vectors: VectorsLike) -> npt.NDArray[Any]:
    """A two-dimensional array of real numbers with at least one row and one column."""
    try:
        matrix = vectors if isinstance(vectors, np.ndarray) else np.asarray(vectors)
    except ValueError as wrong:
        raise InputError("vectors have rows of different lengths: give one value per row and column") from wrong
    check_table(matrix.dtype, matrix.shape)
    return matrix


def check_table(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Refuse anything but a table of real numbers."""
    if dtype.kind not in "fiub":
        raise InputError(f"vectors of type {dtype} are not real numbers: convert them to float32")
    if len(shape) != 2:
        raise InputError(f"vectors have {len(shape)} dimension(s): give a table of rows and columns")
    if shape[0] == 0 or shape[1] == 0:
        raise InputError(f"the pool is empty: {shape[0]} rows, {shape[1]} vector columns")


def refuse_value(row: int, column: int, value: float, columns: Sequence[str] | None) -> None:
    """Raise for a value that is not finite, or too large."""
    where = place_of(row, column, value, columns)
    if np.isfinite(value):
        raise InputError(f"{where} is beyond ±{LARGEST_VALUE:g}; rescale the column")
    raise InputError(f"{where} is not a finite number; fill it in or drop the row")


def place_of(row: int, column: int, value: float, columns: Sequence[str] | None) -> str:
    """Row, column and value, for messages."""
    name = repr(columns[column]) if columns is not None else str(column)
    return f"row {row}, column {name}: {value:g}"


def longer(array: npt.NDArray[Any], added: npt.NDArray[Any], axis: int = 0) -> npt.NDArray[Any]:
    """An array with more appended; an empty one is replaced, so that a large pool is never in memory twice."""
    return np.concatenate([array, added], axis=axis) if array.shape[axis] else added
