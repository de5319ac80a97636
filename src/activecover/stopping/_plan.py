"""Estimate what a certificate will cost before the campaign begins."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from activecover.errors import InputError, check_count
from activecover.stopping._betting import WeightedBetting
from activecover.stopping._consecutive import ConsecutiveNegatives
from activecover.stopping._qbcb import ControlQuantile
from activecover.stopping._rule import check_levels
from activecover.stopping._sequence import ConfidenceSequence
from activecover.stopping._tails import smallest_control
from activecover.stopping._target import TargetMethod
from activecover.stopping._two_phase import planned_sample

#: Control samples with more positives than this multiple of the minimum cost more than they save.
_MOST_CONTROL = 6


@dataclass(frozen=True, slots=True)
class CertificateCost:
    """What one rule's certificate costs.

    Attributes
    ----------
    rule, valid
        Name of the rule, and whether it proves anything.
    labels : int or None
        Expected labels beyond those a perfect ranking needs to reach the target; None if the rule cannot certify it.
    share : float or None
        These labels as a share of the pool.
    detail : str
        What the labels are spent on.
    """

    rule: str
    valid: bool
    labels: int | None
    share: float | None
    detail: str


@dataclass(frozen=True, slots=True)
class CertificatePlan:
    """The costs of all rules, and the assumptions behind them."""

    target: float
    confidence: float
    rows: int
    prevalence: float
    reached: float
    costs: list[CertificateCost]

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain data, for JSON."""
        return {**asdict(self), "sentences": self.sentences()}

    @property
    def best(self) -> CertificateCost | None:
        """The cheapest valid rule."""
        possible = [cost for cost in self.costs if cost.valid and cost.labels is not None]
        return min(possible, key=lambda cost: cost.labels or 0, default=None)

    def sentences(self) -> list[str]:
        """The plan in words."""
        positives = expected_positives(self.rows, self.prevalence)
        sentences = [
            f"Target: {self.target:g} of about {positives:,} positives, with confidence {self.confidence:g}. Costs are "
            "labels beyond those a perfect ranking would need."
        ]
        if any(cost.rule in ("two-phase", "confidence-sequence", "weighted-betting") for cost in self.costs):
            sentences.append(f"Audits and bets assume that the learner rests at a recall of {self.reached:g}.")
        if self.best is None or (self.best.share or 0) > 0.5:
            sentences.append("With so few positives, certifying is hardly cheaper than labelling everything.")
        else:
            sentences.append(f"Cheapest: {self.best.rule}.")
        return sentences


def plan_certificate(
    target: float = 0.95,
    confidence: float = 0.95,
    *,
    rows: int,
    prevalence: float,
    reached: float | None = None,
) -> CertificatePlan:
    """Estimate, for each rule, how many labels the certificate itself will cost.

    Parameters
    ----------
    target, confidence : float
        Recall to certify, and with what confidence.
    rows : int
        Rows of the pool.
    prevalence : float
        Expected share of positives.
    reached : float, optional
        True recall at which the learner rests for an audit; by default halfway from the target to 1.

    Examples
    --------
    >>> plan = plan_certificate(0.9, 0.95, rows=20_000, prevalence=0.05)
    >>> [(cost.rule, cost.labels) for cost in plan.costs if cost.valid]
    [('qbcb', 618), ('target', 618), ('two-phase', 1792), ('confidence-sequence', 3038), ('weighted-betting', 2951)]
    """
    check_levels(target, confidence)
    check_count("rows", rows)
    if not 0 < prevalence <= 1:
        raise InputError(f"prevalence {prevalence!r}: give the expected share of positives, above 0 and at most 1")
    reached = (1 + target) / 2 if reached is None else reached
    if not target <= reached <= 1:
        raise InputError(f"recall {reached!r} when the learner rests: give at least the target {target:g}, at most 1")
    ask = _Question(target, confidence, rows, expected_positives(rows, prevalence), reached)
    costs = [cost(ask) for cost in _COSTS]
    return CertificatePlan(target, confidence, rows, prevalence, reached, costs)


def expected_positives(rows: int, prevalence: float) -> int:
    """Expected number of positives in a pool, at least one."""
    return max(1, round(rows * prevalence))


@dataclass(frozen=True, slots=True)
class _Question:
    target: float
    confidence: float
    rows: int
    positives: int
    reached: float

    @property
    def found(self) -> int:
        """Positives found when the learner rests; a perfect ranking has labelled nothing else."""
        return max(1, math.floor(self.positives * self.reached))

    @property
    def left(self) -> int:
        return max(1, self.rows - self.found)

    @property
    def missing(self) -> int:
        return self.positives - self.found

    @property
    def extra(self) -> int:
        """Positives found beyond the target when the learner rests."""
        return max(0, self.found - math.ceil(self.positives * self.target - 1e-9))

    def cost(self, rule: str, labels: float | None, detail: str, valid: bool = True) -> CertificateCost:
        if labels is None:
            return CertificateCost(rule, valid, None, None, detail)
        # Labelling every row certifies any recall, so no certificate costs more.
        whole = max(0, min(math.ceil(labels), self.rows - math.ceil(self.positives * self.target - 1e-9)))
        return CertificateCost(rule, valid, whole, whole / self.rows, detail)


def _control(ask: _Question, rule: ControlQuantile, choices: range) -> CertificateCost:
    needs = {r: rule.needed(r) for r in choices if r <= ask.positives}
    possible = [(_control_labels(ask, r, needed), r, needed) for r, needed in needs.items() if needed is not None]
    if not possible:
        least = smallest_control(ask.target, 1 - ask.confidence)
        return ask.cost(
            rule.name,
            None,
            f"impossible: it needs {least} control positives, but only {ask.positives:,} are expected in the pool",
        )
    labels, r, needed = min(possible)
    rows = r * (ask.rows + 1) / (ask.positives + 1)
    return ask.cost(
        rule.name,
        labels,
        f"{math.ceil(rows):,} control rows for {r} positives, {needed} of which the review must find "
        f"(recall then about {needed / (r + 1):.3f})",
    )


def _control_labels(ask: _Question, r: int, needed: int) -> float:
    drawn = r * (ask.rows + 1) / (ask.positives + 1)
    # The review would have found some of the control positives anyway, but must go on beyond the target.
    beyond = ask.positives * max(0.0, needed / (r + 1) - ask.target)
    return drawn - needed + beyond


def _qbcb(ask: _Question) -> CertificateCost:
    least = smallest_control(ask.target, 1 - ask.confidence)
    return _control(ask, ControlQuantile(ask.target, ask.confidence), range(least, _MOST_CONTROL * least))


def _target(ask: _Question) -> CertificateCost:
    least = smallest_control(ask.target, 1 - ask.confidence)
    return _control(ask, TargetMethod(ask.target, ask.confidence), range(least, least + 1))


def _two_phase(ask: _Question) -> CertificateCost:
    allowed = max(ask.found / ask.target - ask.found, 1e-9)
    draws = planned_sample(ask.left, ask.found, ask.target, ask.confidence, min(1.0, ask.missing / allowed))
    return ask.cost("two-phase", draws + ask.extra, f"an audit of {draws:,} rows, one look")


def _sequence(ask: _Question) -> CertificateCost:
    draws = ConfidenceSequence(ask.target, ask.confidence).further(ask.left, ask.found, ask.missing)
    return ask.cost("confidence-sequence", draws + ask.extra, f"an audit of about {draws:,} rows, a look after each")


def _betting(ask: _Question) -> CertificateCost:
    rule = WeightedBetting(ask.target, ask.confidence)
    draws = rule.further(None, ask.left, ask.found, ask.found, ask.missing)
    return ask.cost(
        "weighted-betting", draws + ask.extra, f"about {draws:,} uniform draws, at any time and in any order"
    )


def _consecutive(ask: _Question) -> CertificateCost:
    rule = ConsecutiveNegatives(ask.target, ask.confidence)
    count = rule.planned(ask.rows)
    return ask.cost(rule.name, count, f"{count:,} negatives in a row; proves nothing", valid=False)


_COSTS: tuple[Callable[[_Question], CertificateCost], ...] = (
    _qbcb, _target, _two_phase, _sequence, _betting, _consecutive,
)  # fmt: skip
