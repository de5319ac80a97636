"""Stop ranking, then test a uniform sample of what is left."""

from __future__ import annotations

import math

import numpy as np

from activecover.stopping._audit import FROZEN, UNIFORM, audited, audits_of
from activecover.stopping._record import Record
from activecover.stopping._rule import FIXED_POOL, Course, Rule, check_counts, last_known
from activecover.stopping._tails import hypergeometric_cdf, most_positives


class TwoPhase(Rule):
    """Stop the ranking, draw a planned number of rows uniformly from the rest, and look once.

    With k positives among n rows drawn from the N' rows left, the upper bound on the positives among these is
    the largest K with ``P[Hypergeometric(N', K, n) <= k] >= 1 - confidence``. The bound on recall follows from it
    and from the number of positives found before.

    It assumes that n is fixed before the audit and that the draws are uniform. It is valid for one look, after the
    n-th draw: further draws add the positives they find, but prove nothing more. If the look fails, the rule does
    not stop before the whole pool is labelled.

    Parameters
    ----------
    target, confidence : float
        Recall to certify, and with what confidence.
    sample : int, optional
        Rows of the audit. By default it is determined when the audit begins, and large enough to pass if half of the
        positives that may be missing are missing (see :func:`planned_sample`).

    References
    ----------
    M. W. Callaghan, F. Müller-Hansen: Statistical stopping criteria for automated screening in systematic
    reviews. Systematic Reviews 9, 2020.
    """

    name = "two-phase"
    valid = True
    design = "audit"
    assumptions = (UNIFORM, FROZEN, "one look, after the planned number of draws", FIXED_POOL)

    def __init__(self, target: float = 0.95, confidence: float = 0.95, sample: int | None = None) -> None:
        check_counts(sample=sample)
        self.target = target
        self.confidence = confidence
        self.sample = sample

    def follow(self, record: Record) -> Course:
        """The bound, from the planned look on."""
        course = Course.nothing(record)
        audits = audits_of(record)
        if not audits or not audits[0].sound:
            return course
        audit = audits[0]
        drawn = np.arange(1, len(audit.places) + 1)
        course.total_estimate[audit.places + 1] = audit.possible + audit.seen * audit.rows / drawn
        planned = self.planned(audit.rows, audit.found)
        if planned <= len(audit.places):
            look = int(audit.places[planned - 1]) + 1
            most = most_positives(int(audit.seen[planned - 1]), audit.rows, planned, self.alpha)
            course.total_upper[look:] = audit.possible + most
        return Course(course.total_upper, last_known(course.total_estimate))

    def planned(self, rows: int, found: int) -> int:
        """Rows that the audit draws, given the rows left and the positives found."""
        return min(rows, self.sample or planned_sample(rows, found, self.target, self.confidence))

    def _why_stopped(self, record: Record) -> str:
        return audited(record) or super()._why_stopped(record)

    def _price(self, record: Record, course: Course) -> tuple[int | None, str]:
        left, audits = int(record.open_after[-1]), audits_of(record)
        if not audits:
            found = int(record.found[-1])
            planned = self.planned(max(1, left), found)
            return planned, (
                f"an audit of {planned:,} of the {left:,} open rows, if the ranking ends now; it passes if at most half "
                "of the positives that may be missing are missing"
            )
        if not audits[0].sound:
            return left, "the audit was not drawn uniformly from the whole pool: it proves nothing"
        more = self.planned(audits[0].rows, audits[0].found) - len(audits[0].places)
        if more > 0:
            return more, f"{more:,} draws are left of the audit as planned"
        return left, "the planned look has failed, and there is no second one: only labelling everything remains"


def planned_sample(rows: int, found: int, target: float, confidence: float, share: float = 0.5) -> int:
    """How many of the rows left an audit should draw to certify a target.

    The audit then passes if ``share`` of the positives that may be missing are missing, and turn up as often as
    expected.

    Examples
    --------
    >>> planned_sample(10_000, 900, 0.9, 0.95)
    1075
    """
    allowed = found / target - found
    low, high = 1, rows
    if not _passes(high, rows, found, allowed * share, target, confidence):
        return rows
    while low < high:
        middle = (low + high) // 2
        if _passes(middle, rows, found, allowed * share, target, confidence):
            high = middle
        else:
            low = middle + 1
    return low


def _passes(draws: int, rows: int, found: int, missing: float, target: float, confidence: float) -> bool:
    seen = math.ceil(draws * missing / rows - 1e-9)
    forbidden = math.floor((found + seen) / target - found + 1e-9) + 1
    return hypergeometric_cdf(seen, rows, forbidden, draws) < 1 - confidence
