"""What a pool is about: its leading directions, in which rows are near that share a topic, not only words."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import svds

from activecover.graph import graph_is_exact
from activecover.learners._products import Values, compressed_bits, in_blocks, outside_vectors, vectors_of
from activecover.parallel import one_blas_thread
from activecover.pool import Pool, Vectors

Numbers = npt.NDArray[np.float64]

#: How many directions are looked at: few lose rare topics, with many a model needs more labels.
DEPTHS = (50, 100, 200)
#: Rows that they are learnt from: more of them cost time and change little.
MOST_FITTED = 10_000
_NAME = "topics"
#: A row shorter than this has nothing in common with the directions.
_NO_LENGTH = 1e-6
_LOCK = threading.Lock()


class Topics:
    """Rows of a pool in their leading singular directions, at several depths, each scaled to length one.

    A statistic of the whole pool, made from all rows alike before labels say anything. A row that is
    erased from the pool is wiped here too, and leaves the directions as they are. When the pool has
    grown, it is made anew.
    """

    def __init__(self, pool: Pool) -> None:
        # Columns, contiguous: a product with sparse rows would else copy them every time.
        self._directions = np.ascontiguousarray(_leading(pool).T)
        self.depths = sorted({min(depth, self._directions.shape[1]) for depth in DEPTHS})
        parts = [self._reduced(_numbers(pool, part)) for part in in_blocks(pool, np.arange(len(pool)))]
        self._values = np.concatenate(parts) if parts else np.zeros((0, self._directions.shape[1]), np.float32)
        self._erasures = -1
        self.follow(pool)

    def __len__(self) -> int:
        return len(self._values)

    def of(self, rows: npt.NDArray[np.int64], depth: int) -> Numbers:
        """Some rows in the first so many directions."""
        return _of_length_one(self._values[rows, :depth])

    def encode(self, pool: Pool, outside: Vectors, depth: int) -> Numbers:
        """The same for encoded vectors from outside the pool."""
        if not outside.shape[0]:
            return np.zeros((0, depth))
        return _of_length_one(self._reduced(outside_vectors(pool, outside))[:, :depth])

    def projected(self, rows: npt.NDArray[np.int64], weights: Numbers) -> Numbers:
        """The products of some rows with one vector, in as many directions as it has."""
        values = self._values[rows, : len(weights)]
        # Lengths are divided by afterwards: that saves a copy of all rows at every label.
        lengths = np.sqrt(np.einsum("ij,ij->i", values, values))
        products = values @ weights.astype(np.float32)
        return np.asarray(products / np.where(lengths < _NO_LENGTH, 1.0, lengths), np.float64)

    def follow(self, pool: Pool) -> None:
        """Wipe what was erased from the pool since."""
        if self._erasures != pool.erasures:
            self._values[pool.withdrawn] = 0.0
            self._erasures = pool.erasures

    def copy(self) -> Topics:
        """One of its own with the same values."""
        twin = object.__new__(Topics)
        twin.__dict__.update(self.__dict__)
        twin._values = self._values.copy()
        return twin

    def _reduced(self, vectors: Values) -> npt.NDArray[np.float32]:
        with one_blas_thread():
            return np.asarray(vectors @ self._directions, np.float32)


def shared_topics(pool: Pool) -> Topics | None:
    """The topics of a pool, made once; None for dense pools and those too large for a second copy.

    Examples
    --------
    >>> from scipy import sparse
    >>> pool = Pool(sparse.csr_array([[1.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]]), metric="cosine")
    >>> values = shared_topics(pool).of(np.arange(4), 2)
    >>> abs(values @ values[1]).round(2).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    if pool.kind not in ("sparse", "bits") or not graph_is_exact(pool):
        return None
    with _LOCK:
        topics: Topics | None = pool.statistics.get(_NAME)
        if topics is None or len(topics) != len(pool):
            topics = pool.statistics[_NAME] = Topics(pool)
        topics.follow(pool)
        return topics


def _of_length_one(values: npt.NDArray[np.float32]) -> Numbers:
    wide = values.astype(np.float64)
    lengths = np.sqrt((wide**2).sum(axis=1, keepdims=True))
    return np.asarray(wide / np.where(lengths < _NO_LENGTH, 1.0, lengths))


def _numbers(pool: Pool, rows: npt.NDArray[np.int64]) -> Values:
    return compressed_bits(pool, rows) if pool.kind == "bits" else vectors_of(pool, rows)


def _leading(pool: Pool) -> Numbers:
    """The right singular vectors of the rows, or of a fixed sample of them."""
    order = np.random.Generator(np.random.Philox(key=3)).permutation(len(pool))
    chosen = np.sort(order[~pool.withdrawn[order]][:MOST_FITTED])
    matrix = _numbers(pool, chosen)
    smaller = min(matrix.shape)
    # On one thread, so that the directions are the same whatever the number of cores.
    with one_blas_thread():
        if smaller > 2 * max(DEPTHS):
            _, values, found = svds(matrix, max(DEPTHS), v0=np.random.default_rng(0).standard_normal(smaller))
        else:
            _, values, found = np.linalg.svd(matrix.toarray(), full_matrices=False)
    strongest = np.argsort(-values, kind="stable")[: max(1, min(max(DEPTHS), smaller // 2))]
    return np.asarray(found[strongest], np.float64)
