"""From scores to probabilities, by what scores have meant lately."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

Numbers = npt.NDArray[np.float64]

#: Labels count for half after as many more labels as this share of all.
MEMORY = 0.25
_STEPS = 50


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic curve."""

    height: float
    slope: float

    def of(self, scores: Numbers) -> Numbers:
        """The probability that goes with each score."""
        return np.asarray(expit(self.height + self.slope * scores))


def fit_calibration(scores: Numbers, truth: npt.NDArray[np.bool_]) -> Calibration:
    """Fit a curve to the scores that rows had before they were labelled, in the order of their labels.

    The last labels count most: what is found gets rarer. One positive and one negative are taken as seen beforehand,
    at the mean score, and a slope of one as the most likely.

    Examples
    --------
    >>> scores = np.array([0.0, -3.0, 0.0, -3.0, -1.0, -4.0])
    >>> curve = fit_calibration(scores, scores > -2)
    >>> bool(curve.of(np.array([0.0]))[0] > 0.5 > curve.of(np.array([-5.0]))[0])
    True
    """
    count = len(scores)
    shares = 0.5 ** ((count - 1 - np.arange(count)) / max(1.0, MEMORY * count))
    middle = float(scores.mean()) if count else 0.0
    features = np.column_stack([np.ones(count + 2), np.append(scores, [middle, middle]) - middle])
    target, shares = np.append(truth, [True, False]).astype(float), np.append(shares, [0.5, 0.5])
    found = np.array([0.0, 1.0])
    for _ in range(_STEPS):
        fitted = expit(features @ found)
        slope = features.T @ (shares * (target - fitted)) - [0.0, found[1] - 1.0]
        curve = (features * (shares * fitted * (1 - fitted))[:, None]).T @ features + np.diag([1e-9, 1.0])
        step = np.linalg.solve(curve, slope)
        found = found + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-9:
            break
    rise = max(0.0, float(found[1]))
    return Calibration(float(found[0]) - rise * middle, rise)
