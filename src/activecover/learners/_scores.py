"""Scores of many points by a fitted detector, through BLAS where scikit-learn would loop.

libsvm evaluates the kernel point by point. The same sum over support vectors is one matrix product per
block, in float64, and ranks the points the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.pool import blocks

Points = npt.NDArray[np.float64]
_KERNEL_BYTES = 1 << 23


def score(detector: Any, points: Points) -> npt.NDArray[np.float64]:
    """Larger for more like the points the detector was fitted to; minus infinity where it has no answer."""
    from sklearn.svm import OneClassSVM

    if type(detector) is OneClassSVM and detector.kernel == "linear":
        values = points @ (detector.dual_coef_ @ detector.support_vectors_)[0]
    elif type(detector) is OneClassSVM and detector.kernel == "rbf":
        values = _rbf(points, detector.support_vectors_, detector.dual_coef_[0], detector._gamma)
    else:
        score_of = detector.score_samples if hasattr(detector, "score_samples") else detector.decision_function
        values = np.asarray(score_of(points), np.float64).reshape(-1)
    # A degenerate fit can give NaN: such a row goes last, it is not lost.
    return np.where(np.isnan(values), -np.inf, values)


def _rbf(points: Points, support: Points, weights: Points, gamma: float) -> Points:
    """Sum over support vectors of weight times exp(-gamma * squared distance)."""
    values = np.empty(len(points))
    lengths = (support**2).sum(axis=1)
    for block in blocks(len(points), len(support) * 8, _KERNEL_BYTES):
        part = points[block]
        kernel = part @ support.T
        kernel *= 2.0
        kernel -= lengths
        kernel -= (part**2).sum(axis=1)[:, None]
        # Rounding can leave a tiny positive exponent for a point that is a support vector itself.
        np.minimum(kernel, 0.0, out=kernel)
        kernel *= gamma
        values[block] = np.exp(kernel, out=kernel) @ weights
    return values
