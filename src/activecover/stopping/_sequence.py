"""An audit that allows a look after every label."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from activecover.stopping._audit import FROZEN, UNIFORM, Audit, audited, audits_of
from activecover.stopping._record import Ints, Record
from activecover.stopping._rule import FIXED_POOL, Course, Rule, check_counts, last_known, running_lowest
from activecover.stopping._tails import first_true, sequence_upper

_GRID = 400


class ConfidenceSequence(Rule):
    """Audit the rows left uniformly, look as often as you like, and stop when the bound is good enough.

    After m draws with x positives from the U rows that were left, a count R of positives among them remains
    possible while ``BetaBin(R; U, a, b) / BetaBin(R - x; U - m, a + x, b + m - x) < 1 / alpha``
    (the prior-posterior ratio). The bounds at all looks hold simultaneously, so the lowest so far is used. Only
    counts are needed.

    It assumes uniform draws while the learner rests. The prior (a, b), the number of positives found and U are those
    at the beginning of the audit. If the learner resumes and a new audit follows, alpha is divided
    among the planned number of audits; audits beyond that number prove nothing.

    Parameters
    ----------
    target, confidence : float
        Recall to certify, and with what confidence.
    prior : pair of float, optional
        (a, b) of the beta-binomial prior. It affects the number of labels, never the validity of the bound. By
        default a = 1, and the mean is half of the positives that may be missing.
    audits : int
        Number of planned audits.

    References
    ----------
    I. Waudby-Smith, A. Ramdas: Confidence sequences for sampling without replacement. NeurIPS 2020.
    """

    name = "confidence-sequence"
    valid = True
    anytime = True
    design = "audit"
    assumptions = (UNIFORM, FROZEN, FIXED_POOL)

    def __init__(
        self,
        target: float = 0.95,
        confidence: float = 0.95,
        prior: tuple[float, float] | None = None,
        audits: int = 1,
    ) -> None:
        check_counts(audits=audits)
        self.target = target
        self.confidence = confidence
        self.prior = prior
        self.audits = audits

    def follow(self, record: Record) -> Course:
        """The lowest bound so far, over all planned audits."""
        course = Course.nothing(record)
        for audit in audits_of(record)[: self.audits]:
            if audit.sound:
                drawn = np.arange(1, len(audit.places) + 1)
                upper = self.upper(audit.seen, drawn, audit.rows, audit.found)
                course.total_upper[audit.places + 1] = audit.possible + np.maximum(upper, audit.seen)
                course.total_estimate[audit.places + 1] = audit.possible + audit.seen * audit.rows / drawn
        return Course(running_lowest(course.total_upper), last_known(course.total_estimate))

    def upper(self, seen: npt.ArrayLike, drawn: npt.ArrayLike, rows: int, found: int) -> Ints:
        """Upper bounds on the positives among the rows left, after given numbers of draws."""
        a, b = self.prior or _prior(rows, found, self.target)
        return sequence_upper(seen, drawn, rows, self.alpha / self.audits, a, b)

    def further(self, rows: int, found: int, missing: float, seen: float = 0.0, drawn: int = 0) -> int:
        """Draws still needed to certify the target, if the positives left turn up as often as expected.

        ``rows`` and ``found`` are the counts at the beginning of the audit; ``missing`` positives are among the
        rows still open.
        """
        more = np.unique(np.geomspace(1, max(1, rows - drawn), _GRID).astype(np.int64))
        hits = seen + missing * more / max(1, rows - drawn)
        upper = self.upper(hits, drawn + more, rows, found)
        enough = first_true((found + hits) / np.maximum(found + np.maximum(upper, hits), 1) >= self.target)
        return int(more[enough]) if enough is not None else rows - drawn

    def _why_stopped(self, record: Record) -> str:
        return audited(record) or super()._why_stopped(record)

    def _price(self, record: Record, course: Course) -> tuple[int | None, str]:
        left, found = int(record.open_after[-1]), int(record.found[-1])
        audits = audits_of(record)
        if not audits:
            half = found * (1 / self.target - 1) / 2
            more = self.further(left, found, half)
            return more, (
                f"an audit of about {more:,} of the {left:,} open rows, if the learner rests now and half of the "
                f"{2 * half:,.0f} positives that may be missing are missing"
            )
        audit = audits[min(len(audits), self.audits) - 1]
        return self._price_of_audit(audit, left)

    def _price_of_audit(self, audit: Audit, left: int) -> tuple[int, str]:
        if not audit.sound:
            return left, "the audit was not drawn uniformly from the whole pool: it proves nothing"
        drawn, seen = len(audit.places), int(audit.seen[-1])
        a, b = self.prior or _prior(audit.rows, audit.found, self.target)
        rate = (a + seen) / (a + b + drawn)
        more = self.further(audit.rows, audit.found, rate * (audit.rows - drawn), seen, drawn)
        return more, (
            f"{seen:,} positives in {drawn:,} audit draws; about {more:,} draws more if they go on at a rate of {rate:.2g}"
        )


def _prior(rows: int, found: int, target: float) -> tuple[float, float]:
    half = max(0.5, found * (1 / target - 1) / 2)
    return 1.0, max(1.0, rows / half - 1)
