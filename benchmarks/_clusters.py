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


def isotropic(rows: int, dimensions: int = DIMENSIONS, seed: int = 0) -> npt.NDArray[np.float32]:
    """No structure at all: the same variance along every axis, where nothing can be ruled out early."""
    return np.random.default_rng(seed).standard_normal((rows, dimensions), np.float32)


def patches(pictures: npt.NDArray[np.uint8], rows: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Random patches of 8 x 16 pixels of colour pictures, as grey values: 128 dimensions."""
    random = np.random.default_rng(seed)
    height, width = pictures.shape[1:3]
    points = np.empty((rows, 128), np.float32)
    for start in range(0, rows, 50_000):
        part = points[start : start + 50_000]
        which = random.integers(0, len(pictures), len(part))
        top, left = random.integers(0, height - 7, len(part)), random.integers(0, width - 15, len(part))
        down, right = top[:, None] + np.arange(8), left[:, None] + np.arange(16)
        part[:] = pictures[which[:, None, None], down[:, :, None], right[:, None, :]].mean(axis=-1).reshape(-1, 128)
    return points
