"""Sums over rows, and products of rows with one vector, read where they are stored.

A rule that follows a direction looks at every row at every label. To make numbers of the rows first would take
longer than the sums.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.compiling import compiled
from activecover.pool import Pool, Vectors, blocks, sparse_vectors, unpacked

Rows = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Stored = npt.NDArray[np.float32] | npt.NDArray[np.float64]
#: Vectors as numbers to calculate with: float64, sparse where the pool is.
Values: TypeAlias = Any


def vectors_of(pool: Pool, rows: Rows) -> Values:
    """Some rows as numbers to calculate with: float64, sparse where the pool is."""
    return unpacked(pool, rows).astype(np.float64) if pool.kind == "bits" else pool.take(rows).astype(np.float64)


def outside_vectors(pool: Pool, encoded: Vectors) -> Values:
    """The same for encoded vectors from outside the pool."""
    if pool.kind == "bits":
        return np.unpackbits(np.ascontiguousarray(encoded).view(np.uint8), axis=1, count=pool.dimensions).astype(float)
    return encoded.astype(np.float64)


def in_blocks(pool: Pool, rows: Rows) -> list[Rows]:
    """Rows in parts of which the vectors fit into memory as numbers."""
    width = pool.dimensions if pool.kind != "sparse" else 2 * sparse_vectors(pool.vectors).nnz // max(1, len(pool)) + 1
    return [rows[block] for block in blocks(len(rows), 8 * width)]


def projected(pool: Pool, rows: Rows, weights: Numbers) -> Numbers:
    """The product of some rows' vectors with one vector.

    Examples
    --------
    >>> projected(Pool([[1.0, 0.0], [0.5, 2.0]]), np.array([1]), np.array([2.0, 3.0]))
    array([7.])
    """
    result = np.empty(len(rows))
    if pool.kind == "sparse":
        stored = sparse_vectors(pool.vectors)
        _project_sparse(stored.indptr, stored.indices, stored.data, rows, weights, result)
    elif pool.kind == "bits":
        _project_bits(_bytes(pool.vectors), rows, weights, result)
    else:
        parts = [np.asarray(vectors_of(pool, part) @ weights, np.float64) for part in in_blocks(pool, rows)]
        result = np.concatenate(parts) if parts else result
    return result


def summed(pool: Pool, rows: Rows) -> Numbers:
    """The sum of some rows' vectors, one after the other.

    Examples
    --------
    >>> summed(Pool([[1.0, 0.0], [0.5, 2.0]]), np.array([0, 1]))
    array([1.5, 2. ])
    """
    total = np.zeros(pool.dimensions)
    if pool.kind == "sparse":
        stored = sparse_vectors(pool.vectors)
        _sum_sparse(stored.indptr, stored.indices, stored.data, rows, total)
    elif pool.kind == "bits":
        _sum_bits(_bytes(pool.vectors), rows, total)
    else:
        for part in in_blocks(pool, rows):
            total += vectors_of(pool, part).sum(axis=0)
    return total


def compressed(vectors: Values) -> sparse.csr_matrix:
    """Numbers in compressed rows, as every version of scikit-learn takes them."""
    return sparse.csr_matrix(vectors)


def compressed_bits(pool: Pool, rows: Rows) -> sparse.csr_matrix:
    """Some rows of a pool of bits as ones in compressed rows: fingerprints are mostly zeros.

    Examples
    --------
    >>> compressed_bits(Pool([[1, 0, 1], [0, 1, 0]], metric="jaccard"), np.array([0])).toarray()
    array([[1., 0., 1.]])
    """
    stored = _bytes(pool.vectors)
    ends = np.zeros(len(rows) + 1, np.int32)
    columns = _set_bits(stored, rows, ends)
    return sparse.csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(rows), pool.dimensions))


def _bytes(words: Vectors) -> Bytes:
    """Bits as they are counted: the first column is the highest bit of the first byte."""
    return np.ascontiguousarray(words).view(np.uint8)


@compiled()
def _project_sparse(
    ends: Indices, columns: Indices, values: Stored, rows: Rows, weights: Numbers, result: Numbers
) -> None:
    for place in range(rows.shape[0]):
        total = 0.0
        for t in range(ends[rows[place]], ends[rows[place] + 1]):
            total += np.float64(values[t]) * weights[columns[t]]
        result[place] = total


@compiled()
def _sum_sparse(ends: Indices, columns: Indices, values: Stored, rows: Rows, total: Numbers) -> None:
    for row in rows:
        for t in range(ends[row], ends[row + 1]):
            total[columns[t]] += np.float64(values[t])


@compiled()
def _project_bits(stored: Bytes, rows: Rows, weights: Numbers, result: Numbers) -> None:
    for place in range(rows.shape[0]):
        total = 0.0
        for at in range(stored.shape[1]):
            byte = np.int64(stored[rows[place], at])
            column = 8 * at
            while byte:
                if byte & 128:
                    total += weights[column]
                byte = (byte << 1) & 255
                column += 1
        result[place] = total


@compiled()
def _sum_bits(stored: Bytes, rows: Rows, total: Numbers) -> None:
    for row in rows:
        for at in range(stored.shape[1]):
            byte = np.int64(stored[row, at])
            column = 8 * at
            while byte:
                if byte & 128:
                    total[column] += 1.0
                byte = (byte << 1) & 255
                column += 1


@compiled()
def _set_bits(stored: Bytes, rows: Rows, ends: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The columns whose bits are set, row by row; ``ends`` says where each row's end."""
    columns = np.empty(8 * stored.shape[1] * rows.shape[0], np.int32)
    found = 0
    for place in range(rows.shape[0]):
        for at in range(stored.shape[1]):
            byte = np.int64(stored[rows[place], at])
            column = 8 * at
            while byte:
                if byte & 128:
                    columns[found] = column
                    found += 1
                byte = (byte << 1) & 255
                column += 1
        ends[place + 1] = found
    return columns[:found].copy()
