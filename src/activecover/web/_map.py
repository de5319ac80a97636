"""A pool in two dimensions, to look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from activecover.extras import require
from activecover.pool import Pool, blocks

#: More points than this are not drawn; those are drawn at random, and what was asked for is always shown.
MOST_POINTS = 100_000
_FITTED = 4_000
_BLOCK_BYTES = 1 << 26

#: With fewer rows there are no neighbourhoods to keep together.
_FEWEST_NEIGHBOURS = 15

Floats = npt.NDArray[np.float32]
#: How a pool is brought into two dimensions.
Way = Literal["pca", "umap"]


class PoolMap:
    """A pool in two dimensions, found once from a sample: its first two principal components, or by UMAP.

    Rows are asked for by number, so that what lies outside the sample that is drawn can be placed too.

    Parameters
    ----------
    pool : Pool
        The rows.
    by : {"pca", "umap"}
        UMAP keeps neighbours together, takes much longer, and needs its extra.
    seed : int
        Of the sample, and of UMAP.

    Examples
    --------
    >>> places = PoolMap(Pool([[0.0, 0.0], [2.0, 0.1], [4.0, 0.0]]))
    >>> np.abs(places.place([0, 1, 2])[:, 0]).round(2).tolist()
    [1.0, 0.0, 1.0]
    """

    def __init__(self, pool: Pool, by: Way = "pca", seed: int = 0) -> None:
        self._pool = pool
        random = np.random.default_rng(seed)
        there = np.flatnonzero(~pool.withdrawn)
        sample = np.sort(random.choice(there, min(len(there), _FITTED), replace=False))
        if by == "umap" and len(sample) > _FEWEST_NEIGHBOURS:
            self._flat = _neighbourly(self._dense(sample), pool.metric, seed)
        else:
            self._flat = _principal(self._dense(sample))
        self.rows = (
            there if len(there) <= MOST_POINTS else np.sort(random.choice(there, MOST_POINTS, replace=False))
        ).astype(np.uint32)
        raw = self._project(self.rows)
        self._placed = np.full((len(pool), 2), np.nan)
        self._placed[self.rows] = raw
        # Both directions share one scale; one point in a thousand at either end may leave the square.
        low, high = np.quantile(raw, [0.001, 0.999], axis=0) if len(raw) else np.zeros((2, 2))
        self._centre = (low + high) / 2
        self._scale = float((high - low).max()) / 2 or 1.0
        self.points: Floats = self._scaled(raw)

    def place(self, rows: npt.ArrayLike) -> Floats:
        """Where some rows lie; each is looked for once."""
        wanted = np.asarray(rows, np.int64)
        if len(self._placed) < len(self._pool):
            more = np.full((len(self._pool) - len(self._placed), 2), np.nan)
            self._placed = np.concatenate([self._placed, more])
        new = np.unique(wanted[np.isnan(self._placed[wanted, 0])])
        if len(new):
            self._placed[new] = self._project(new)
        return self._scaled(self._placed[wanted])

    def bytes(self) -> bytes:
        """For the page: the number of points, their rows, their places, all little-endian."""
        count = np.array([len(self.rows)], "<u4")
        return count.tobytes() + self.rows.astype("<u4").tobytes() + self.points.astype("<f4").tobytes()

    def _scaled(self, raw: npt.NDArray[np.float64]) -> Floats:
        return np.asarray((raw - self._centre) / self._scale, np.float32)

    def _project(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        found = np.empty((len(rows), 2))
        for block in blocks(len(rows), 8 * self._pool.dimensions, _BLOCK_BYTES):
            found[block] = self._flat(self._dense(rows[block]))
        return found

    def _dense(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        taken: Any = self._pool.take(rows.astype(np.int64))
        if self._pool.kind == "sparse":
            taken = taken.toarray()
        elif self._pool.kind == "bits":
            taken = np.unpackbits(np.ascontiguousarray(taken).view(np.uint8), axis=1)
        return np.nan_to_num(np.asarray(taken, np.float64))


def _principal(vectors: npt.NDArray[Any]) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    """What projects on the first two principal components of some vectors."""
    middle = vectors.mean(axis=0) if len(vectors) else np.zeros(vectors.shape[1])
    axes = _directions(vectors - middle)
    return lambda others: np.asarray((others - middle) @ axes)


def _neighbourly(vectors: npt.NDArray[Any], metric: str, seed: int) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    """What places vectors by their neighbours among some."""
    umap = require("umap", extra="umap", purpose="maps by UMAP")
    # With a seed it runs on one thread in any case.
    model = umap.UMAP(n_components=2, n_neighbors=_FEWEST_NEIGHBOURS, metric=metric, random_state=seed, n_jobs=1)
    model.fit(vectors)
    return lambda others: np.asarray(model.transform(others)) if len(others) else np.zeros((0, 2))


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
