"""Outlier detectors, fitted and asked for scores through BLAS where scikit-learn would loop."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, Self, TypeGuard

import numpy as np
import numpy.typing as npt

from activecover.learners._svm import Machine, Points, fit_support, support_of

#: With fewer support vectors libsvm, which computes only the columns that it comes across, is as quick.
_LEAST_NU = 0.2
#: Up to so many points the kernel of all pairs is kept in memory (2.5 GB); libsvm takes over from there.
_MOST_POINTS = 25_000
#: What scikit-learn raises where a detector cannot be fitted.
NO_FIT = (ValueError, np.linalg.LinAlgError, FloatingPointError)


class Judge(Protocol):
    """What tells points that are inside from those outside."""

    def predict(self, points: Points, /) -> npt.NDArray[np.int64]:
        """1 for every point inside, -1 for every other."""


class Detector(Judge, Protocol):
    """What scikit-learn's outlier detectors have; ``score_samples`` or ``decision_function`` scores."""

    def fit(self, points: Points, /) -> Self:
        """Learn what is inside."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings."""

    def set_params(self, **params: object) -> Self:
        """Change settings."""


class NothingInside:
    """A one-class machine with nu = 1, in which every point of the fit is outside.

    Its threshold is infinite. Up to version 1.0 scikit-learn returned the machine, which judges every point an
    outlier and gives all of them the same decision value; now it refuses to fit it. Scores are all equal here, too.
    """

    def predict(self, points: Points) -> npt.NDArray[np.int64]:
        """-1 for every point."""
        return np.full(len(points), -1)

    def score_samples(self, points: Points) -> Points:
        """Zero for every point."""
        return np.zeros(len(points))


def fit(detector: Detector, points: Points) -> object:
    """Fit a detector, and give back what scores points the way it does."""
    if _has_nothing_inside(detector):
        return NothingInside()
    if not _is_support_vector_machine(detector):
        return detector.fit(points)
    if detector.nu >= _LEAST_NU and len(points) <= _MOST_POINTS:
        return fit_support(detector, points)
    return support_of(detector.fit(points))


def fit_each(detectors: Sequence[Detector], points: Points) -> Iterator[Judge | None]:
    """Fit detectors of one kind that differ in their settings, one after the other; None where one cannot be fitted.

    What the settings do not change is done once: a robust covariance does not depend on the contamination, and
    the trees of a forest are those of a larger one. Each is to be used before the next is asked for.

    Examples
    --------
    >>> from sklearn.covariance import EllipticEnvelope
    >>> points = np.random.default_rng(0).normal(size=(30, 2))
    >>> fitted = fit_each([EllipticEnvelope(contamination=c, random_state=0) for c in (0.1, 0.5)], points)
    >>> [int((one.predict(points) == 1).sum()) for one in fitted]
    [27, 15]
    """
    if _differ_in(detectors, "EllipticEnvelope", "contamination"):
        yield from _envelopes(detectors, points)
    elif _differ_in(detectors, "IsolationForest", "n_estimators"):
        yield from _forests(detectors, points)
    else:
        for detector in detectors:
            yield _tried(detector, points)


def score(fitted: object, points: Points) -> Points:
    """Larger for more like the points that a detector was fitted to; minus infinity where it has no answer."""
    name = "score_samples" if hasattr(fitted, "score_samples") else "decision_function"
    values = np.asarray(getattr(fitted, name)(points), np.float64).reshape(-1)
    # A degenerate fit can give NaN: such a row goes last, it is not lost.
    return np.where(np.isnan(values), -np.inf, values)


def _is_support_vector_machine(detector: Detector) -> TypeGuard[Machine]:
    from sklearn.svm import OneClassSVM

    return type(detector) is OneClassSVM and detector.get_params(deep=False)["kernel"] in ("linear", "rbf")


def _has_nothing_inside(detector: Detector) -> bool:
    return _is_support_vector_machine(detector) and bool(detector.nu == 1)


def _differ_in(detectors: Sequence[Any], name: str, parameter: str) -> bool:
    """Whether detectors are all scikit-learn's of one name, and alike but for one parameter."""
    others = [
        {key: value for key, value in one.get_params(deep=False).items() if key != parameter} for one in detectors
    ]
    named = {(type(one).__module__.partition(".")[0], type(one).__name__) for one in detectors}
    # Chance that is not fixed would differ from fit to fit.
    return named == {("sklearn", name)} and all(one == others[0] for one in others) and _is_repeatable(others[0])


def _is_repeatable(parameters: dict[str, Any]) -> bool:
    return isinstance(parameters["random_state"], int)


def _envelopes(detectors: Sequence[Any], points: Points) -> Iterator[Judge | None]:
    first: Any = _tried(detectors[0], points)
    for detector in detectors:
        if first is None:
            yield None
            continue
        twin = copy.copy(first).set_params(contamination=detector.contamination)
        twin.offset_ = np.percentile(-first.dist_, 100.0 * detector.contamination)
        yield twin


def _forests(detectors: Sequence[Any], points: Points) -> Iterator[Any | None]:
    grown: Any = None
    for detector in detectors:
        if grown is None or detector.n_estimators < grown.n_estimators:
            grown = detector.set_params(warm_start=True)
        grown.set_params(n_estimators=detector.n_estimators)
        yield _tried(grown, points)


def _tried(detector: Detector, points: Points) -> Judge | None:
    if _has_nothing_inside(detector):
        return NothingInside()
    try:
        return detector.fit(points)
    except NO_FIT:
        return None
