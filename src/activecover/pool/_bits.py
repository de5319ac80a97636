"""Rows of bits, such as molecular fingerprints, packed 64 to a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError
from activecover.pool._matrix import (
    BitVectors,
    Matrix,
    VectorsLike,
    as_matrix,
    bit_vectors,
    blocks,
    check_table,
    place_of,
)
from activecover.pool._sparse import as_csr

if TYPE_CHECKING:
    from activecover.pool._pool import Pool

#: Up to this many bits, different fractions of common bits are different float64 numbers, so the order is exact.
MOST_BITS = 2**26


@dataclass(frozen=True, slots=True)
class PackedBits:
    """Rows of bits packed by ``numpy.packbits(rows, axis=1)``, and the number of bits per row.

    Examples
    --------
    >>> rows = np.array([[1, 0, 1], [0, 1, 1]], bool)
    >>> PackedBits(np.packbits(rows, axis=1), 3).packed
    array([[160],
           [ 96]], dtype=uint8)
    """

    packed: npt.NDArray[np.uint8]
    dimensions: int


class BitMatrix(Matrix[BitVectors]):
    """Rows of 64-bit words; a memory map of packed bits that fills whole words is used as it is.

    Bytes keep the order they have in the packed rows, so the bytes of the words are the same on every machine.
    """

    kind = "bits"

    def __init__(self, given: Any, columns: Sequence[str] | None) -> None:
        self._columns = columns
        if not isinstance(given, PackedBits) and not sparse.issparse(given):
            given = as_matrix(given)
        self.dimensions = given.dimensions if isinstance(given, PackedBits) else int(given.shape[-1])
        if not isinstance(self.dimensions, int | np.integer) or not 1 <= self.dimensions <= MOST_BITS:
            raise InputError(f"{self.dimensions!r} bits per row: give a number from 1 to {MOST_BITS:,}")
        self.dimensions = int(self.dimensions)
        # Bits have no origin to be centred on.
        self.origin = np.zeros(0, np.float32)
        self._words = self.encode(given)

    @classmethod
    def restored(cls, words: npt.NDArray[np.uint64], dimensions: int, columns: Sequence[str] | None) -> Self:
        """Use stored words as they are."""
        matrix = object.__new__(cls)
        matrix._columns, matrix.dimensions = columns, dimensions
        matrix.origin, matrix._words = np.zeros(0, np.float32), words
        return matrix

    def __len__(self) -> int:
        return len(self._words)

    @property
    def vectors(self) -> npt.NDArray[np.uint64]:
        view = self._words.view()
        view.flags.writeable = False
        return view

    def take(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        return np.asarray(self._words[rows])

    def encode(self, given: VectorsLike) -> npt.NDArray[np.uint64]:
        if isinstance(given, PackedBits):
            self._check_width(given.dimensions)
            return _words_of(_checked(given))
        if sparse.issparse(given):
            csr = as_csr(given, self._columns)
            self._check_width(csr.shape[1])
            return self._packed(csr, csr.shape[0])
        matrix = as_matrix(given)
        self._check_width(matrix.shape[1])
        return self._packed(matrix, len(matrix))

    def append(self, encoded: npt.NDArray[np.uint64]) -> None:
        self._words = np.concatenate([self._words, encoded])

    def erase(self, rows: npt.NDArray[np.int64]) -> None:
        if not self._words.flags.writeable or isinstance(self._words, np.memmap):
            self._words = np.array(self._words)
        self._words[rows] = 0

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._words = np.array(self._words)
        return twin

    def part(self, rows: npt.NDArray[np.int64]) -> Self:
        return self.restored(self.take(rows), self.dimensions, self._columns)

    def chunks(self, vectors: npt.NDArray[np.uint64], count: int) -> Iterator[bytes]:
        for block in blocks(count, vectors.shape[1] * 8):
            yield np.ascontiguousarray(vectors[block]).tobytes()

    def _packed(self, rows: npt.NDArray[Any] | sparse.csr_array, count: int) -> npt.NDArray[np.uint64]:
        packed = np.empty((count, -(-self.dimensions // 8)), np.uint8)
        for block in blocks(count, self.dimensions * 8):
            part = rows[block] if isinstance(rows, np.ndarray) else rows[block].toarray()
            bad = (part != 0) & (part != 1)
            if bad.any():
                row, column = np.argwhere(bad)[0]
                where = place_of(block.start + row, column, float(part[row, column]), self._columns)
                raise InputError(f"{where} is neither 0 nor 1; for packed bits give their number (PackedBits, --bits)")
            packed[block] = np.packbits(part != 0, axis=1)
        return _words_of(packed)


def bits_set(words: npt.NDArray[np.uint64], dimensions: int) -> npt.NDArray[np.int64]:
    """Positions of the bits that are set in one stored row.

    Examples
    --------
    >>> bits_set(BitMatrix([[0, 1, 1, 0]], None).vectors[0], 4)
    array([1, 2])
    """
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(words).view(np.uint8), count=dimensions))


def _checked(bits: PackedBits) -> npt.NDArray[np.uint8]:
    packed = bits.packed if isinstance(bits.packed, np.ndarray) else np.asarray(bits.packed)
    if packed.dtype != np.uint8:
        raise InputError(f"packed bits of type {packed.dtype}: give uint8, as numpy.packbits does")
    check_table(packed.dtype, packed.shape)
    width, spare = -(-bits.dimensions // 8), -bits.dimensions % 8
    if packed.shape[1] != width:
        raise InputError(f"{bits.dimensions} bits take {width} bytes a row, not {packed.shape[1]}: pack rows (axis=1)")
    beyond = packed[:, -1] & np.uint8((1 << spare) - 1)
    if beyond.any():
        row = int(np.flatnonzero(beyond)[0])
        raise InputError(f"row {row} has bits beyond the {bits.dimensions} stated: pack with bitorder='big'")
    return packed


def _words_of(packed: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Bytes as 64-bit words, padded with zeros; a copy, unless a memory map already fills whole words."""
    if packed.shape[1] % 8 == 0 and isinstance(packed, np.memmap) and packed.flags.c_contiguous:
        words = packed.view(np.uint64)
        if words.flags.aligned:
            return words
    filled = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), np.uint8)
    filled[:, : packed.shape[1]] = packed
    return filled.view(np.uint64)


def unpacked(pool: Pool, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Some rows of a pool of bits as zeros and ones."""
    words = np.ascontiguousarray(bit_vectors(pool.take(rows)))
    return np.unpackbits(words.view(np.uint8), axis=1, count=pool.dimensions).astype(np.float32)
