"""The space in which a portfolio measures: one where no few directions outweigh all the others."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from activecover.graph import graph_is_exact
from activecover.parallel import one_blas_thread
from activecover.pool import Pool, Vectors, blocks

_NAME = "balanced"
#: Directions with less than this share of the largest variance are noise.
_NOISE = 1e-6
_LOCK = threading.Lock()


class BalancedGround:
    """A dense pool with its directions evened out half-way.

    Rows are multiplied by the inverse fourth root of their covariance: the spread of every direction becomes
    the square root of what it was. Distances in embeddings are made by a few directions, which need not be
    those that tell positives from negatives; to even out all of them would blow up noise.

    It is a statistic of the whole pool, made from all rows alike. A row that is erased from the pool is
    erased here too, and leaves the matrix as it is. When the pool has grown, it is made anew.
    """

    def __init__(self, pool: Pool) -> None:
        self._matrix = _inverse_fourth_root(pool)
        values = np.zeros((len(pool), pool.dimensions), np.float32)
        for block in blocks(len(pool), 8 * pool.dimensions):
            values[block] = self.encode(pool.vectors[block])
        values[pool.withdrawn] = 0.0
        self.pool = Pool(values)
        self.pool.withdraw(np.flatnonzero(pool.withdrawn))
        self._erasures = pool.erasures

    def encode(self, vectors: Vectors) -> npt.NDArray[np.float32]:
        """Vectors of the pool as they are here."""
        with one_blas_thread():
            return np.asarray(vectors.astype(np.float64) @ self._matrix, np.float32)

    def follow(self, pool: Pool) -> None:
        """Erase what was erased from the pool since."""
        if self._erasures != pool.erasures:
            self.pool.withdraw(np.flatnonzero(pool.withdrawn & ~self.pool.withdrawn))
            self._erasures = pool.erasures

    def copy(self) -> BalancedGround:
        """One of its own with the same values."""
        twin = object.__new__(BalancedGround)
        twin.__dict__.update(self.__dict__)
        twin.pool = self.pool.without([])
        return twin


def balanced_ground(pool: Pool) -> BalancedGround | None:
    """The balanced twin of a pool, made once; None where rules measure in the pool itself.

    That is so for sparse rows and bits, whose distances are made for them, for directions (cosine), and for
    pools too large for an exact neighbour graph, of which there should be no second copy.

    Examples
    --------
    >>> pool = Pool([[0.0, 0.0], [100.0, 0.0], [0.0, 1.0], [100.0, 1.0]])
    >>> balanced_ground(pool).pool.vectors.round().tolist()
    [[0.0, 0.0], [14.0, 0.0], [0.0, 1.0], [14.0, 1.0]]
    """
    if pool.kind != "dense" or pool.metric != "euclidean" or not graph_is_exact(pool):
        return None
    with _LOCK:
        ground: BalancedGround | None = pool.statistics.get(_NAME)
        if ground is None or len(ground.pool) != len(pool):
            ground = pool.statistics[_NAME] = BalancedGround(pool)
        ground.follow(pool)
        return ground


def _inverse_fourth_root(pool: Pool) -> npt.NDArray[np.float64]:
    """The symmetric matrix: the same whichever way eigenvectors point, and with one thread the same everywhere."""
    there = np.flatnonzero(~pool.withdrawn)
    total, count = np.zeros(pool.dimensions), max(1, len(there))
    products = np.zeros((pool.dimensions, pool.dimensions))
    with one_blas_thread():
        for block in blocks(len(there), 8 * pool.dimensions):
            part = pool.take(there[block]).astype(np.float64)
            total += part.sum(axis=0)
        middle = total / count
        for block in blocks(len(there), 8 * pool.dimensions):
            part = pool.take(there[block]).astype(np.float64) - middle
            products += part.T @ part
        variances, directions = np.linalg.eigh(products / count)
        if variances[-1] <= 0:
            return np.eye(pool.dimensions)
        kept = variances > _NOISE * variances[-1]
        return np.asarray((directions[:, kept] * variances[kept] ** -0.25) @ directions[:, kept].T)
