"""The pool: rows with stable ids, one matrix, one metric, and contents to show a person."""

from activecover.pool._bits import PackedBits, bits_set, unpacked
from activecover.pool._checking import PoolLimits, check_pool_folder
from activecover.pool._column import Unread
from activecover.pool._dense import DenseMatrix, origin_of, value_range
from activecover.pool._duplicates import Duplicates, duplicate_groups, plain_text
from activecover.pool._folder import PoolFolder
from activecover.pool._matrix import (
    DenseVectors,
    Kind,
    Matrix,
    Vectors,
    VectorsLike,
    as_matrix,
    bit_vectors,
    blocks,
    dense_vectors,
    longer,
    sparse_vectors,
)
from activecover.pool._pool import METRICS, Pool
from activecover.pool._read import LoadedPool, as_positive, load_pool, read_vectors
from activecover.pool._sparse import as_csr
from activecover.pool._stored import Statistic, StoredPool
from activecover.tables import read_array

__all__ = [
    "METRICS",
    "DenseMatrix",
    "DenseVectors",
    "Duplicates",
    "Kind",
    "LoadedPool",
    "Matrix",
    "PackedBits",
    "Pool",
    "PoolFolder",
    "PoolLimits",
    "Statistic",
    "StoredPool",
    "Unread",
    "Vectors",
    "VectorsLike",
    "as_csr",
    "as_matrix",
    "as_positive",
    "bit_vectors",
    "bits_set",
    "blocks",
    "check_pool_folder",
    "dense_vectors",
    "duplicate_groups",
    "load_pool",
    "longer",
    "origin_of",
    "plain_text",
    "read_array",
    "read_vectors",
    "sparse_vectors",
    "unpacked",
    "value_range",
]
