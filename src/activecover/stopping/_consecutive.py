"""Stop after many negatives in a row."""

from __future__ import annotations

import numpy as np

from activecover.stopping._heuristic import Heuristic, from_then_on
from activecover.stopping._record import CONTROL, NO, Bools, Ints, Record
from activecover.stopping._rule import Course, check_counts
from activecover.stopping._tails import first_true


class ConsecutiveNegatives(Heuristic):
    """Stop after ``count`` negatives in a row. A heuristic, and a popular one.

    It assumes that a learner that has found nothing for a while will find nothing more. It fails where positives
    form several clusters: the gap between two of them looks like the end.

    Parameters
    ----------
    target, confidence : float
        Not used for the decision.
    count : int, optional
        Negatives in a row; by default 1 % of the pool, but at least 50.
    """

    name = "consecutive-negatives"
    assumptions = ("a learner that finds nothing for a while will find nothing any more",)

    def __init__(self, target: float = 0.95, confidence: float = 0.95, count: int | None = None) -> None:
        check_counts(count=count)
        self.target = target
        self.confidence = confidence
        self.count = count

    def follow(self, record: Record) -> Course:
        """Stop at the first run of negatives that is long enough."""
        return Course.nothing(record, self._stop(record))

    def planned(self, rows: int) -> int:
        """How many negatives in a row end the campaign."""
        return self.count or max(50, rows // 100)

    def _stop(self, record: Record) -> Bools:
        return from_then_on(record, first_true(self._runs(record) >= self.planned(record.rows)))

    def _runs(self, record: Record) -> Ints:
        """Negatives in a row up to each time; control rows do not count, as the learner did not choose them."""
        counted = record.source != CONTROL
        clock = np.concatenate([[0], np.cumsum(counted)])
        positive = np.concatenate([[False], counted & (record.outcome != NO)])
        last: Ints = np.maximum.accumulate(np.where(positive, clock, 0))
        return clock - last

    def _price(self, record: Record, course: Course) -> tuple[int | None, str]:
        more = self.planned(record.rows) - int(self._runs(record)[-1])
        return more, f"{more:,} negatives more, if all are negative; nothing is proved by them"
