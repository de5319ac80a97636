"""Bound recall by a quantile of a blind control sample."""

from __future__ import annotations

import math

import numpy as np

from activecover.stopping._record import CONTROL, NO, UNSETTLED, YES, Bools, Ints, Record
from activecover.stopping._rule import FIXED_POOL, Course, Rule, check_counts
from activecover.stopping._tails import first_true, quantile_threshold, smallest_control

BLIND = "the control rows are a uniform sample of the pool, and their labels do not steer the learner"
ENDED = "when the control sample ends is decided by its own labels alone (a size, or a number of positives)"


class ControlQuantile(Rule):
    """Stop once the review itself has found enough of the control sample's positives (QBCB).

    A uniform sample of the pool is labelled blind and hidden from the learner. If it has r positives, the
    review may stop once it has itself reached j of them,
    ``j = min{j : P[Binomial(r, target) <= j - 1] >= confidence}``. In whatever order the learner proceeds,
    the time at which it reaches the j-th of r random positives is a conservative estimate of the time at which it
    reaches the target.

    It assumes that the control sample is uniform and blind, and that its size does not depend on how the review
    went. It certifies only the target for which it was planned; once it has stopped, it bounds the number of
    positives in the pool. It is possible only with ``r >= ln(1 - confidence) / ln(target)``.

    Parameters
    ----------
    target, confidence : float
        Recall to certify, and with what confidence.
    positives : int, optional
        Number of positives at which the control sample ends; by default the smallest with which one of them may be
        missed.
    sample : int, optional
        Number of rows at which the control sample ends, instead of a number of positives.

    References
    ----------
    D. D. Lewis, E. Yang, O. Frieder: Certifying one-phase technology-assisted reviews. CIKM 2021.

    Examples
    --------
    >>> ControlQuantile(0.8).needed(50), ControlQuantile(0.9).needed(50)
    (45, 49)
    >>> print(ControlQuantile(0.9).needed(28))
    None
    """

    name = "qbcb"
    valid = True
    anytime = True
    design = "control"
    assumptions = (BLIND, ENDED, FIXED_POOL)

    def __init__(
        self,
        target: float = 0.95,
        confidence: float = 0.95,
        positives: int | None = None,
        sample: int | None = None,
    ) -> None:
        check_counts(positives=positives, sample=sample)
        self.target = target
        self.confidence = confidence
        self.positives = positives
        self.sample = sample

    def needed(self, r: int) -> int | None:
        """How many of r control positives the review must find; None if even all are not enough."""
        return quantile_threshold(r, self.target, self.alpha)

    def planned(self) -> int:
        """Number of positives at which the control sample ends, if its size is not fixed."""
        if self.positives is not None:
            return self.positives
        r = smallest_control(self.target, self.alpha)
        while self.needed(r) == r:
            r += 1
        return r

    def follow(self, record: Record) -> Course:
        """The bound, from the time at which enough control positives have been reached."""
        course = Course.nothing(record)
        end = self._end(record)
        if end is None:
            return course
        chosen, r = self._sample(record, end)
        # Unsettled control rows count as positives that the review has not found.
        reached = reached_by(record, chosen & (record.outcome == YES))
        reviewed = reached_by(record, record.outcome != NO)
        course.total_estimate[end:] = (reviewed * (r + 1) / (reached + 1))[end:] if r else np.nan
        needed = self.needed(r)
        stopped = None if needed is None else first_true(reached[end:] >= needed)
        if stopped is not None:
            most = math.floor(reviewed[end + stopped] / self._proved(r) + 1e-9)
            course.total_upper[end + stopped :] = most
        return course

    def _end(self, record: Record) -> int | None:
        """The time at which the control sample was complete; None if it is not."""
        if self.sample is not None:
            drawn = np.cumsum(record.control) >= self.sample
        else:
            drawn = np.cumsum(record.control & (record.outcome != NO)) >= self.planned()
        place = first_true(drawn)
        return None if place is None else place + 1

    def _proved(self, r: int) -> float:
        """The recall that is proved once enough of r positives have been reached."""
        return self.target

    def _why_stopped(self, record: Record) -> str:
        end = self._end(record)
        if end is None:
            return super()._why_stopped(record)
        chosen, r = self._sample(record, end)
        reached = int(reached_by(record, chosen & (record.outcome == YES))[-1])
        return (
            f"of {r} positives among {int(record.control.sum()):,} control rows the review has itself found {reached} "
            f"and needed {self.needed(r)}"
        )

    def _sample(self, record: Record, end: int) -> tuple[Bools, int]:
        """The asks of the control sample, and how many of them are or may be positive."""
        chosen = record.control & (np.arange(len(record)) < end)
        return chosen, int((record.outcome[chosen] != NO).sum())

    def _price(self, record: Record, course: Course) -> tuple[int | None, str]:
        end, left = self._end(record), int(record.open_after[-1])
        if end is None:
            return self._price_of_control(record, left)
        chosen, r = self._sample(record, end)
        needed, least = self.needed(r), smallest_control(self.target, self.alpha)
        if needed is None:
            return left, (
                f"infeasible: the control sample has {r} positives, and {self.target:g} at confidence "
                f"{self.confidence:g} needs at least {least}; only labelling everything remains"
            )
        reached = int(reached_by(record, chosen & (record.outcome == YES))[-1])
        unsettled = int((record.outcome[chosen] == UNSETTLED).sum())
        if needed > r - unsettled:
            return left, f"{unsettled} control rows are unsettled, too many to find {needed} of {r}: settle them first"
        even = left * (needed - reached) / (r - reached + 1)
        rate = _recent_rate(record)
        wanted = float(course.total_estimate[-1]) * (needed - reached) / (r + 1)
        more = math.ceil(min(even, wanted / rate))
        return more, (
            f"the review has found {reached} of {r} control positives and needs {needed}; about {more:,} labels more "
            f"at the present rate of finds ({rate:.2g}), {math.ceil(even):,} if what is left is spread evenly"
        )

    def _price_of_control(self, record: Record, left: int) -> tuple[int, str]:
        drawn = int(record.control.sum())
        r = int((record.outcome[record.control] != NO).sum())
        if self.sample is not None:
            more = self.sample - drawn
            return more, f"{more:,} control labels are still to come, and then the review up to their positives"
        uniform = record.control | (record.probability * record.open_rows < 1 + 1e-6)
        rate = (int((record.outcome[uniform] != NO).sum()) + 0.5) / (int(uniform.sum()) + 1)
        more = min(left, math.ceil((self.planned() - r) / rate))
        return more, (
            f"the control sample has {r} of {self.planned()} positives; some {more:,} control labels more at the "
            f"present rate of {rate:.2g}, and then the review up to them"
        )


def _recent_rate(record: Record) -> float:
    """Share of positives among the last tenth of the review's own asks."""
    review = record.outcome[record.source != CONTROL]
    recent = review[-max(50, len(review) // 10) :]
    return float((recent == YES).sum() + 0.5) / (len(recent) + 1)


def reached_by(record: Record, chosen: Bools) -> Ints:
    """How many of the chosen rows the review has reached, at every time."""
    times = record.reached[chosen]
    times = times[times <= len(record)]
    return np.cumsum(np.bincount(times, minlength=len(record) + 1)).astype(np.int64)
