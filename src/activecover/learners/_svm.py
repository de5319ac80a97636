"""One-class support vector machines, found as libsvm finds them, but with all products at once.

libsvm computes the kernel point by point, for the fit and for the scores. Here both are matrix products in
float64; between the points of a fit they are kept in float32, as libsvm keeps them. A fit begins, goes on and
ends as libsvm's does: where a kernel is so flat that many weights are good enough, it is the way to them that
decides which are found, and both have to rank points the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from activecover.compiling import compiled
from activecover.pool import blocks

Points = npt.NDArray[np.float64]
Kernel = npt.NDArray[np.float32]

_BLOCK_BYTES = 1 << 23
#: libsvm's floor under the curvature of a step.
_LEAST_CURVATURE = 1e-12


class Machine(Protocol):
    """What scikit-learn's one-class support vector machines have."""

    kernel: str
    nu: float
    gamma: float | str
    tol: float
    support_vectors_: Points
    dual_coef_: Points
    _gamma: float

    def fit(self, points: Points, /) -> Self:
        """Find the support vectors."""


@dataclass(frozen=True, slots=True)
class Support:
    """Support vectors and their weights: all that is needed to score points.

    Parameters
    ----------
    kernel : {"linear", "rbf"}
        Which.
    vectors : array of shape (n, dimensions)
        The support vectors.
    weights : array of shape (n,)
        One for each.
    gamma : float
        How fast the ``rbf`` kernel falls.
    """

    kernel: str
    vectors: Points
    weights: Points
    gamma: float = 1.0

    def score_samples(self, points: Points) -> Points:
        """The sum over support vectors of weight times kernel."""
        if self.kernel == "linear":
            return points @ (self.weights @ self.vectors)
        values = np.empty(len(points))
        for block in blocks(len(points), len(self.vectors) * 8, _BLOCK_BYTES):
            values[block] = _rbf(points[block], self.vectors, self.gamma) @ self.weights
        return values


def support_of(detector: Machine) -> Support:
    """The support vectors of a machine that scikit-learn has fitted."""
    return Support(detector.kernel, detector.support_vectors_, detector.dual_coef_[0], detector._gamma)


def fit_support(detector: Machine, points: Points) -> Support:
    """Fit a one-class support vector machine, given as scikit-learn's unfitted one, to points.

    Examples
    --------
    >>> from sklearn.svm import OneClassSVM
    >>> support = fit_support(OneClassSVM(nu=0.5, gamma=1.0), np.array([[0.0], [1.0], [5.0]]))
    >>> bool(support.score_samples(np.array([[0.5]])) > support.score_samples(np.array([[9.0]])))
    True
    """
    gamma = _gamma(detector.gamma, points)
    kernel = np.empty((len(points), len(points)), np.float32)
    for block in blocks(len(points), len(points) * 8, _BLOCK_BYTES):
        part = points[block]
        kernel[block] = part @ points.T if detector.kernel == "linear" else _rbf(part, points, gamma)
    weights = _start(len(points), detector.nu)
    _solve(kernel, weights, detector.tol)
    chosen = weights > 0
    return Support(detector.kernel, points[chosen], weights[chosen], gamma)


def _gamma(gamma: float | str, points: Points) -> float:
    if gamma == "scale":
        spread = float(points.var())
        return 1 / (points.shape[1] * spread) if spread else 1.0
    return 1 / points.shape[1] if gamma == "auto" else float(gamma)


def _rbf(left: Points, right: Points, gamma: float) -> Points:
    """exp(-gamma * squared distance) of all pairs."""
    kernel = left @ right.T
    kernel *= 2.0
    kernel -= (right**2).sum(axis=1)
    kernel -= (left**2).sum(axis=1)[:, None]
    # Rounding can leave a tiny positive exponent for a point that is a support vector itself.
    np.minimum(kernel, 0.0, out=kernel)
    kernel *= gamma
    return np.exp(kernel, out=kernel)


def _start(count: int, nu: float) -> Points:
    """Weights between 0 and 1 that sum up to nu per point, all on the first points."""
    return np.clip(nu * count - np.arange(count), 0.0, 1.0)


@compiled()
def _add(slopes: Points, step: float, row: Kernel) -> None:
    for j in range(len(slopes)):
        slopes[j] += step * row[j]


@compiled()
def _solve(kernel: Kernel, weights: Points, tolerance: float) -> None:
    """Move weight between two points at a time until no pair gains more than the tolerance.

    The pair is libsvm's: the point that gains most, and the one to which the step is the best of second order.
    """
    count = len(weights)
    slopes = np.zeros(count)
    for i in range(count):
        if weights[i] > 0:
            _add(slopes, weights[i], kernel[i])
    while True:
        gains, gain = -1, -np.inf
        for i in range(count):
            if weights[i] < 1 and -slopes[i] >= gain:
                gains, gain = i, -slopes[i]
        loses, best, worst = -1, 0.0, np.inf
        if gains >= 0:
            row = kernel[gains]
            for j in range(count):
                if weights[j] > 0:
                    worst = min(worst, -slopes[j])
                    step = gain + slopes[j]
                    if step > 0:
                        curvature = max(row[gains] + kernel[j, j] - 2 * row[j], _LEAST_CURVATURE)
                        if step * step / curvature >= best:
                            loses, best = j, step * step / curvature
        if loses < 0 or gain - worst < tolerance:
            return
        curvature = max(kernel[gains, gains] + kernel[loses, loses] - 2 * kernel[gains, loses], _LEAST_CURVATURE)
        step = min((gain + slopes[loses]) / curvature, 1 - weights[gains], weights[loses])
        weights[gains] = 1.0 if step == 1 - weights[gains] else weights[gains] + step
        weights[loses] -= step
        _add(slopes, step, kernel[gains])
        _add(slopes, -step, kernel[loses])
