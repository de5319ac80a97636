"""The pool: rows with stable ids, one matrix, one metric, and something to show a person."""

from activecover.pool._pool import METRICS, Pool, blocks
from activecover.pool._read import LoadedPool, as_positive, load_pool, read_array, read_vectors

__all__ = [
    "METRICS",
    "LoadedPool",
    "Pool",
    "as_positive",
    "blocks",
    "load_pool",
    "read_array",
    "read_vectors",
]
