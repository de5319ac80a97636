"""Stop when proposals are far from every positive found so far."""

from __future__ import annotations

import numpy as np

from activecover.stopping._heuristic import Heuristic, from_then_on
from activecover.stopping._record import LEARNER, YES, Record
from activecover.stopping._rule import Course, check_counts
from activecover.stopping._tails import first_true


class DistanceGap(Heuristic):
    """Stop when proposals are much farther away than any positive was. A heuristic.

    A learner that asks for the row nearest to any positive knows its distance. The rule stops when
    ``window`` proposals in a row were more than ``factor`` times as far away as the farthest proposal that turned
    out to be positive. It assumes that positives lie close together: a cluster never touched is far from all of
    them, and is missed. It needs the distances of the proposals.
    """

    name = "distance-gap"
    assumptions = ("positives lie as close to each other as those found so far",)

    def __init__(self, target: float = 0.95, confidence: float = 0.95, factor: float = 1.5, window: int = 20) -> None:
        check_counts(window=window)
        self.target = target
        self.confidence = confidence
        self.factor = factor
        self.window = window

    def follow(self, record: Record) -> Course:
        """Stop at the first window of far proposals."""
        known = (record.source == LEARNER) & ~np.isnan(record.distance)
        places = np.flatnonzero(known)
        distance = record.distance[places]
        positive = record.outcome[places] == YES
        farthest = np.maximum.accumulate(np.where(positive, distance, -np.inf)) if len(places) else distance
        far = np.isfinite(farthest) & (distance > self.factor * farthest)
        clock = np.arange(len(far))
        run = clock - np.maximum.accumulate(np.where(far, -1, clock)) if len(far) else clock
        first = first_true(run >= self.window)
        return Course.nothing(record, from_then_on(record, None if first is None else int(places[first]) + 1))
