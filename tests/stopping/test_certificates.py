"""The price of a certificate before it is paid, against campaigns that pay it."""

from __future__ import annotations

import numpy as np
import pytest

from activecover.errors import InputError
from activecover.stopping import campaign_for, make_rule, plan_certificate


def labels(rule: str, **settings: float) -> int | None:
    plan = plan_certificate(**{"target": 0.9, "confidence": 0.95, "rows": 20_000, "prevalence": 0.05, **settings})  # type: ignore[arg-type]
    return {cost.rule: cost.labels for cost in plan.costs}[rule]


@pytest.mark.parametrize("rule", ["two-phase", "confidence-sequence", "weighted-betting"])
def test_audits_cost_what_was_planned(rule: str) -> None:
    """The learner rests at a recall of .95, as planned: the median of 15 campaigns is within a third."""
    planned = labels(rule, rows=8000, reached=0.95)
    assert planned is not None
    made = make_rule(rule, target=0.9)
    paid = []
    for run in range(15):
        random = np.random.default_rng([1, run])
        truth = np.concatenate([np.ones(380, bool), random.permutation(np.arange(7620) < 20)])
        record = campaign_for(made, truth, random, switch=380)
        paid.append((made.stop_time(record) or len(record)) - 360)
    assert np.median(paid) == pytest.approx(planned, rel=0.34)


@pytest.mark.parametrize("rule", ["qbcb", "target"])
def test_control_samples_cost_what_was_planned(rule: str) -> None:
    planned = labels(rule, rows=8000)
    assert planned is not None
    made = make_rule(rule, target=0.9, positives=29)
    paid = []
    for run in range(40):
        truth = np.arange(8000) < 400
        record = campaign_for(made, truth, np.random.default_rng([2, run]))
        paid.append((made.stop_time(record) or len(record)) - 360)
    assert np.mean(paid) == pytest.approx(planned, rel=0.1)


def test_more_is_dearer() -> None:
    for rule in ("qbcb", "target", "two-phase", "confidence-sequence", "weighted-betting"):
        costs = [labels(rule, target=target) for target in (0.8, 0.9, 0.95)]
        assert costs == sorted(costs), rule  # type: ignore[type-var]
        surer = labels(rule, confidence=0.99)
        assert (surer or 0) >= (labels(rule) or 0), rule
        rarer = labels(rule, prevalence=0.01)
        assert rarer is None or rarer >= (labels(rule) or 0), rule


def test_too_few_positives_for_a_control_sample() -> None:
    plan = plan_certificate(0.95, 0.95, rows=20_000, prevalence=0.001)
    qbcb = next(cost for cost in plan.costs if cost.rule == "qbcb")
    assert qbcb.labels is None
    assert "needs 59 control positives, but only 20 are expected" in qbcb.detail
    assert "hardly cheaper" in " ".join(plan.sentences())


def test_no_certificate_costs_more_than_all_labels() -> None:
    plan = plan_certificate(0.99, 0.99, rows=100, prevalence=0.02)
    assert all(cost.labels is None or cost.labels <= 100 for cost in plan.costs)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"target": 1.0}, "target 1.0"),
        ({"confidence": 0.0}, "confidence 0.0"),
        ({"rows": 0}, "rows 0"),
        ({"prevalence": 0.0}, "prevalence 0.0"),
        ({"prevalence": float("nan")}, "prevalence nan"),
        ({"reached": 0.5}, "at least the target 0.9"),
    ],
)
def test_what_cannot_be_planned(settings: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        labels("qbcb", **settings)
