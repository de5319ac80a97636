"""Capture-recapture: compare two independent searches."""

from __future__ import annotations

import numpy as np
from scipy import special

from activecover.stopping._heuristic import Heuristic
from activecover.stopping._qbcb import reached_by
from activecover.stopping._record import YES, Record
from activecover.stopping._rule import Course


class Chao(Heuristic):
    """Stop when capture-recapture estimates that little is left. A heuristic.

    The control sample finds n1 positives and the review n2, of which m are the same. Chapman's estimate of the
    total is ``(n1 + 1)(n2 + 1) / (m + 1) - 1``, with Chao's log-normal interval. It assumes that the two searches
    are independent, and that each finds all positives with the same probability. The interval is an approximation
    for a single look; with few recaptures, or after repeated looks, it claims too much.

    References
    ----------
    A. Chao: Estimating the population size for capture-recapture data with unequal catchability. Biometrics
    43, 1987.
    """

    name = "chao"
    design = "control"
    assumptions = (
        "the control sample and the review find positives independently of each other",
        "the log-normal approximation holds, and one looks once",
    )

    def follow(self, record: Record) -> Course:
        """Estimate and claimed bound at every time."""
        course = Course.nothing(record)
        yes = record.outcome == YES
        first = np.concatenate([[0], np.cumsum(record.control & yes)]).astype(np.float64)
        second = reached_by(record, yes).astype(np.float64)
        both = reached_by(record, record.control & yes).astype(np.float64)
        known = first + second - both
        total = (first + 1) * (second + 1) / (both + 1) - 1
        spread = (first + 1) * (second + 1) * (first - both) * (second - both) / ((both + 1) ** 2 * (both + 2))
        left = np.maximum(total - known, 0)
        quantile = float(special.ndtri(self.confidence))
        width = np.exp(quantile * np.sqrt(np.log1p(spread / np.maximum(left, 0.5) ** 2)))
        seen = both > 0
        course.total_estimate[seen] = total[seen]
        course.total_upper[seen] = np.floor((known + left * width)[seen])
        return course
