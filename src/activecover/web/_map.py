"""A pool in two dimensions, to look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.pool import Pool, blocks

#: More points than this are not drawn; those are drawn at random, and what was asked for is always shown.
MOST_POINTS = 100_000
_FITTED = 4_000

Floats = npt.NDArray[np.float32]


class PoolMap:
    """The first two principal components of a pool, found once.

    Rows are asked for by number, so that what lies outside the sample that is drawn can be placed too.

    Examples
    --------
    >>> places = PoolMap(Pool([[0.0, 0.0], [2.0, 0.1], [4.0, 0.0]]))
    >>> np.abs(places.place([0, 1, 2])[:, 0]).round(2).tolist()
    [1.0, 0.0, 1.0]
    """

    def __init__(self, pool: Pool, seed: int = 0) -> None:
        self._pool = pool
        random = np.random.default_rng(seed)
        there = np.flatnonzero(~pool.withdrawn)
        sample = np.sort(random.choice(there, min(len(there), _FITTED), replace=False))
        vectors = self._dense(sample)
        self._middle = vectors.mean(axis=0) if len(vectors) else np.zeros(pool.dimensions)
        self._axes = _directions(vectors - self._middle)
        self.rows = (
            there if len(there) <= MOST_POINTS else np.sort(random.choice(there, MOST_POINTS, replace=False))
        ).astype(np.uint32)
        raw = self._project(self.rows)
        # Both directions share one scale; a few points far out may leave the square.
        self._centre = np.median(raw, axis=0) if len(raw) else np.zeros(2)
        spread = np.quantile(np.abs(raw - self._centre), 0.998) if len(raw) else 1.0
        self._scale = float(spread) or 1.0
        self.points: Floats = self._scaled(raw)

    def place(self, rows: Any) -> Floats:
        """Where some rows lie."""
        return self._scaled(self._project(np.asarray(rows, np.int64)))

    def bytes(self) -> bytes:
        """For the page: the number of points, their rows, their places, all little-endian."""
        count = np.array([len(self.rows)], "<u4")
        return count.tobytes() + self.rows.astype("<u4").tobytes() + self.points.astype("<f4").tobytes()

    def _scaled(self, raw: npt.NDArray[np.float64]) -> Floats:
        return np.asarray((raw - self._centre) / self._scale, np.float32)

    def _project(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        found = np.empty((len(rows), 2))
        for block in blocks(len(rows), 8 * self._pool.dimensions):
            found[block] = (self._dense(rows[block]) - self._middle) @ self._axes
        return found

    def _dense(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        taken: Any = self._pool.take(rows.astype(np.int64))
        if self._pool.kind == "sparse":
            taken = taken.toarray()
        elif self._pool.kind == "bits":
            taken = np.unpackbits(np.ascontiguousarray(taken).view(np.uint8), axis=1)
        return np.nan_to_num(np.asarray(taken, np.float64))


def _directions(centred: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The two directions in which points spread most, of fixed sign."""
    width = centred.shape[1]
    if len(centred) < 2 or width < 2:
        return np.eye(width, 2)
    from sklearn.utils.extmath import randomized_svd

    _, _, found = randomized_svd(centred, n_components=2, random_state=0)
    signs = np.sign(found[np.arange(len(found)), np.abs(found).argmax(axis=1)])
    axes = np.zeros((width, 2))
    axes[:, : len(found)] = (found * np.where(signs == 0, 1, signs)[:, None]).T
    return axes
