"""Treat the end of the ranking as a random sample."""

from __future__ import annotations

import math

import numpy as np

from activecover.stopping._heuristic import Heuristic, from_then_on, looks
from activecover.stopping._record import CONTROL, NO, Bools, Record
from activecover.stopping._rule import Course
from activecover.stopping._tails import hypergeometric_cdf

#: Windows to test at each look: they reach back over 0, 1, 2, … positives, then in ever larger steps.
_WINDOWS = 24


class RankedHypergeometric(Heuristic):
    """Treat the last rows of the ranking as if they had been drawn at random. A heuristic.

    For every window at the end of the ranking, a hypergeometric test asks whether a random sample of that
    size could have so few positives if the target were missed. The rule stops when any window rejects. It assumes
    that the learner ranks no worse than chance among the rows left, which cannot be known, and it takes the best of
    many tests. It looks each time the record has grown by 5 %.

    References
    ----------
    M. W. Callaghan, F. Müller-Hansen: Statistical stopping criteria for automated screening in systematic
    reviews. Systematic Reviews 9, 2020 (the ranking-based variant).
    """

    name = "ranked-hypergeometric"
    assumptions = ("among the rows left, the learner ranks no worse than chance",)

    def follow(self, record: Record) -> Course:
        """Stop at the first look with a window that rejects; the claim is then the target."""
        counted = record.source != CONTROL
        positive = (record.outcome != NO) & counted
        found = record.possible
        time = next(
            (
                time
                for time in looks(len(record))
                if time and self._rejects(positive[:time], int(found[time]), record.rows)
            ),
            None,
        )
        course = Course.nothing(record, from_then_on(record, time))
        if time is not None:
            course.total_upper[time:] = math.floor(int(found[time]) / self.target + 1e-9)
        return course

    def _rejects(self, positive: Bools, found: int, rows: int) -> bool:
        time, hits = len(positive), np.flatnonzero(positive)
        # A window begins right after a positive: any shorter one with as many positives proves less.
        back = np.unique(np.round(np.geomspace(1, len(hits) + 1, _WINDOWS)).astype(np.int64)) - 1
        for seen in back.tolist():
            start = int(hits[len(hits) - seen - 1]) + 1 if seen < len(hits) else 0
            forbidden = math.floor(found / self.target - (found - seen) + 1e-9) + 1
            # With no fewer than expected the test cannot reject; most windows are like this.
            if (time - start) * forbidden <= seen * (rows - start):
                continue
            if hypergeometric_cdf(seen, rows - start, forbidden, time - start) < self.alpha:
                return True
        return False
