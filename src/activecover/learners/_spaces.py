"""Other coordinates in which a search can measure: see :meth:`SearchState.space`."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.parallel import one_blas_thread
from activecover.pool import Pool, Vectors, blocks

_NAME = "whitened"
#: Directions with less than this share of the largest variance are noise.
_NOISE = 1e-6
_LOCK = threading.Lock()
Numbers = npt.NDArray[np.float64]


class WhitenedSpace:
    """A dense pool with its directions evened out, and every row scaled to length one.

    Rows are multiplied by the inverse root of their covariance, so that no direction outweighs another; of what is
    left only the direction counts, as in cosine distance.

    It is a statistic of the whole pool, made from all rows alike. A row that is erased from the pool is erased here
    too, and leaves the matrix as it is. When the pool has grown, it is made anew.
    """

    def __init__(self, pool: Pool) -> None:
        self._middle, self._matrix = _whitening(pool)
        values = np.zeros((len(pool), pool.dimensions), np.float32)
        for block in blocks(len(pool), 8 * pool.dimensions):
            values[block] = self._of(pool.vectors[block])
        values[pool.withdrawn] = 0.0
        self.pool = Pool(values)
        self.pool.withdraw(np.flatnonzero(pool.withdrawn))
        self._erasures = pool.erasures

    def encode(self, vectors: Vectors) -> Vectors:
        """Vectors of the original pool as they are here."""
        return self.pool.encode(self._of(vectors)) if len(vectors) else self.pool.take([])

    def follow(self, pool: Pool) -> None:
        """Erase what was erased from the original pool since."""
        if self._erasures != pool.erasures:
            self.pool.withdraw(np.flatnonzero(pool.withdrawn & ~self.pool.withdrawn))
            self._erasures = pool.erasures

    def copy(self) -> WhitenedSpace:
        """One of its own with the same values."""
        twin = object.__new__(WhitenedSpace)
        twin.__dict__.update(self.__dict__)
        twin.pool = self.pool.without([])
        return twin

    def _of(self, vectors: Vectors) -> npt.NDArray[np.float32]:
        with one_blas_thread():
            values = (vectors.astype(np.float64) - self._middle) @ self._matrix
        lengths = np.linalg.norm(values, axis=1, keepdims=True)
        return np.asarray(values / np.where(lengths > 0, lengths, 1.0), np.float32)


def whitened(pool: Pool) -> WhitenedSpace:
    """The whitened twin of a dense pool, made once and kept among its statistics.

    Examples
    --------
    >>> space = whitened(Pool([[-2.0, -300.0], [-2.0, 300.0], [2.0, -300.0], [2.0, 300.0]]))
    >>> abs(space.pool.vectors + space.pool.origin)[0].astype(float).round(2)
    array([0.71, 0.71])
    """
    if pool.kind != "dense":
        raise InputError(f"only dense pools can be whitened, and this one is {pool.kind!r}")
    with _LOCK:
        space: WhitenedSpace | None = pool.statistics.get(_NAME)
        if space is None or len(space.pool) != len(pool):
            space = pool.statistics[_NAME] = WhitenedSpace(pool)
        space.follow(pool)
        return space


def _whitening(pool: Pool) -> tuple[Numbers, Numbers]:
    """The mean, and the symmetric matrix: the same whichever way eigenvectors point."""
    there = np.flatnonzero(~pool.withdrawn)
    total, count = np.zeros(pool.dimensions), max(1, len(there))
    products = np.zeros((pool.dimensions, pool.dimensions))
    with one_blas_thread():
        for block in blocks(len(there), 8 * pool.dimensions):
            total += pool.take(there[block]).astype(np.float64).sum(axis=0)
        middle = total / count
        for block in blocks(len(there), 8 * pool.dimensions):
            part = pool.take(there[block]).astype(np.float64) - middle
            products += part.T @ part
        variances, directions = np.linalg.eigh(products / count)
        if variances[-1] <= 0:
            return middle, np.eye(pool.dimensions)
        kept = variances > _NOISE * variances[-1]
        return middle, np.asarray((directions[:, kept] * variances[kept] ** -0.5) @ directions[:, kept].T)
