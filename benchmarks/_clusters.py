"""A large synthetic pool, the same for all benchmarks that need one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

DIMENSIONS = 128


def synthetic(rows: int, dimensions: int = DIMENSIONS, seed: int = 0) -> npt.NDArray[np.float32]:
    """200 clusters; the variance along axis i is proportional to 1/i."""
    random = np.random.default_rng(seed)
    spread = np.sqrt(1 / np.arange(1, dimensions + 1))
    centres = random.normal(size=(200, dimensions)) * spread
    points = np.empty((rows, dimensions), np.float32)
    for start in range(0, rows, 50_000):
        part = points[start : start + 50_000]
        part[:] = centres[random.integers(0, 200, len(part))] + 0.5 * random.normal(size=part.shape) * spread
    return points
