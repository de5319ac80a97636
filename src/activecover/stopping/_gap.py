"""Stop when the next proposals are far from anything that was ever found."""

from __future__ import annotations

import numpy as np

from activecover.stopping._heuristic import Heuristic, from_then_on
from activecover.stopping._record import LEARNER, YES, Record
from activecover.stopping._rule import Course, check_counts
from activecover.stopping._tails import first_true


class DistanceGap(Heuristic):
    """Stop when proposals lie farther from the positives than positives ever did. A heuristic.

    A learner that asks for the row nearest to any positive knows how far that is. The rule stops when
    ``window`` proposals in a row were more than ``factor`` times as far as the farthest proposal that was
    positive. Assumes that positives lie close together. A cluster that was never touched is far from all of them, and
    is missed. Needs the distances of the proposals.
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
