"""Kernel machines: how alike rows are in some space, and a classifier that rests on nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.compiling import compiled

Numbers = npt.NDArray[np.float64]
#: How alike the rows of two sets of vectors are, as a matrix.
Kernel = Callable[[Any, Any], Numbers]

_MOST_PASSES = 100
_TOLERANCE = 1e-3


def cosine(left: Any, right: Any) -> Numbers:
    """Products of rows of length one, dense or sparse."""
    products = left @ right.T
    return np.asarray(products.toarray() if hasattr(products, "toarray") else products, np.float64)


def tanimoto(left: Any, right: Any) -> Numbers:
    """Shared ones by ones in either, of sparse rows of zeros and ones.

    Examples
    --------
    >>> from scipy import sparse
    >>> tanimoto(sparse.csr_matrix([[1.0, 1, 0]]), sparse.csr_matrix([[1.0, 0, 0], [0, 0, 1]]))
    array([[0.5, 0. ]])
    """
    shared = cosine(left, right)
    either = np.asarray(left.sum(axis=1)).reshape(-1, 1) + np.asarray(right.sum(axis=1)).reshape(1, -1) - shared
    return np.asarray(shared / np.where(either > 0, either, 1.0))


@dataclass(frozen=True, slots=True)
class Gaussian:
    """exp(-gamma * squared distance)."""

    gamma: float

    def __call__(self, left: Numbers, right: Numbers) -> Numbers:
        squares = left @ right.T
        squares *= -2.0
        squares += (left**2).sum(axis=1)[:, None]
        squares += (right**2).sum(axis=1)
        np.maximum(squares, 0.0, out=squares)
        squares *= -self.gamma
        return np.asarray(np.exp(squares, out=squares))


@dataclass(frozen=True, slots=True)
class KernelMachine:
    """A support vector machine with squared hinge loss, both classes weighing the same.

    Parameters
    ----------
    kernel : callable
        See :data:`Kernel`.
    vectors : matrix
        The support vectors.
    weights : array
        One for each.
    """

    kernel: Kernel
    vectors: Any
    weights: Numbers

    def scores(self, vectors: Any) -> Numbers:
        """Larger for more like the positives."""
        return np.asarray((self.kernel(vectors, self.vectors) + 1.0) @ self.weights)


def fit_kernel_machine(kernel: Kernel, vectors: Any, truth: npt.NDArray[np.bool_], C: float) -> KernelMachine:
    """Fit to vectors of both classes.

    Examples
    --------
    >>> points = np.array([[0.0], [0.3], [3.0]])
    >>> machine = fit_kernel_machine(Gaussian(1.0), points, np.array([True, True, False]), C=10.0)
    >>> (machine.scores(np.array([[0.1], [2.9]])) > 0).tolist()
    [True, False]
    """
    positives = int(truth.sum())
    costs = C * np.where(truth, 0.5 / positives, 0.5 / max(1, len(truth) - positives)) * len(truth)
    # One more everywhere stands for the intercept.
    weights = _solve(kernel(vectors, vectors) + 1.0, np.where(truth, 1.0, -1.0), costs)
    support = np.flatnonzero(weights)
    return KernelMachine(kernel, vectors[support], weights[support])


@compiled()
def _descend(kernel: Any, signs: Any, costs: Any, passes: int, tolerance: float) -> Any:
    """Coordinate descent in the dual (Hsieh and others, 2008), in the order of the rows."""
    count = len(signs)
    weights = np.zeros(count)
    values = np.zeros(count)
    for _ in range(passes):
        largest = 0.0
        for i in range(count):
            ridge = 0.5 / costs[i]
            slope = signs[i] * values[i] - 1.0 + weights[i] * ridge
            if weights[i] == 0.0 and slope >= 0.0:
                continue
            curvature = kernel[i, i] + ridge
            new = max(weights[i] - slope / curvature, 0.0)
            step = new - weights[i]
            if step != 0.0:
                largest = max(largest, abs(step) * curvature)
                weights[i] = new
                for j in range(count):
                    values[j] += step * signs[i] * kernel[i, j]
        if largest < tolerance:
            break
    return weights * signs


def _solve(kernel: Numbers, signs: Numbers, costs: Numbers) -> Numbers:
    return np.asarray(_descend(np.ascontiguousarray(kernel), signs, costs, _MOST_PASSES, _TOLERANCE))
