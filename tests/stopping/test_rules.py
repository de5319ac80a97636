"""Each rule by itself: when it stops, what it says, and the contract that all of them keep."""

from __future__ import annotations

import numpy as np
import pytest

from activecover.errors import InputError
from activecover.registry import Entry
from activecover.stopping import (
    RULES,
    Budget,
    Chao,
    ConfidenceSequence,
    ConsecutiveNegatives,
    ControlQuantile,
    DistanceGap,
    Knee,
    RankedHypergeometric,
    Record,
    TargetMethod,
    TwoPhase,
    WeightedBetting,
    campaign_for,
    make_rule,
    planned_sample,
    standard_rules,
)
from activecover.stopping._record import AUDIT, LEARNER
from activecover.testing import check_rule

VALID = [rule.name for rule in standard_rules(valid_only=True)]


@pytest.mark.parametrize("name", [rule.name for rule in standard_rules()])
def test_contract(name: str) -> None:
    check_rule(RULES[name].build, runs=12)


def test_registry() -> None:
    assert VALID == ["qbcb", "target", "two-phase", "confidence-sequence", "weighted-betting"]
    assert make_rule("qbcb@1", target=0.9).target == 0.9
    with pytest.raises(InputError, match="did you mean 'knee'"):
        make_rule("kneee")
    with pytest.raises(InputError, match=r"target 1.5: give a number between 0 and 1"):
        make_rule("knee", target=1.5)
    with pytest.raises(InputError, match="unexpected keyword"):
        make_rule("knee", colour="red")
    assert isinstance(RULES["budget"], Entry)


@pytest.mark.parametrize("name", VALID)
def test_no_positives_at_all_is_recall_one_and_said_so(name: str) -> None:
    said = make_rule(name).assess(Record.of([0] * 50, rows=50))
    assert (said.recall_lower, said.remaining_upper, said.stop) == (1.0, 0, True)
    assert "recall is 1 by definition" in said.reasoning
    some_left = make_rule(name).assess(Record.of([0] * 10, rows=50))
    assert (some_left.recall_lower, some_left.stop) == (0.0, False)


@pytest.mark.parametrize("name", [rule.name for rule in standard_rules()])
def test_an_empty_record(name: str) -> None:
    said = make_rule(name).assess(Record.of([], rows=50))
    assert (said.recall_lower, said.remaining_upper, said.stop) == (0.0, 50, False)
    assert said.price is None or 0 < said.price <= 50


def control(r: int, reached: int, rows: int = 1000) -> Record:
    """A review that has found 100 positives, and so many of r control positives."""
    outcome = [1] * r + [1] * (100 - reached) + [0] * 50
    times = [r + 10] * reached + [10**9] * (r - reached) + list(range(r + 1, len(outcome) + 1))
    return Record.of(
        outcome,
        rows=rows,
        source=[2] * r + [1] * (len(outcome) - r),
        reached=times,
        control=[True] * r + [False] * (150 - reached),
    )


def test_quantiles_of_the_control_sample() -> None:
    assert not ControlQuantile(0.8, positives=50).assess(control(50, 44)).stop
    said = ControlQuantile(0.8, positives=50).assess(control(50, 45))
    assert said.stop
    # The review had come by 10 + 45 positives when it stopped.
    assert said.recall_lower >= 0.8
    early = ControlQuantile(0.9, positives=28).assess(control(28, 28))
    assert not early.stop
    assert "infeasible" in early.reasoning
    assert "at least 29" in early.reasoning


def test_control_sample_must_be_complete() -> None:
    assert not ControlQuantile(0.8, positives=60).assess(control(50, 50)).stop
    assert ControlQuantile(0.8, sample=50).assess(control(50, 50)).stop
    assert not ControlQuantile(0.8, sample=51).assess(control(50, 50)).stop


def test_unsettled_control_rows_count_against_the_review() -> None:
    sure = control(50, 46)
    for doubts, stops in ((0, True), (2, False)):
        outcome = sure.outcome.copy()
        outcome[:doubts] = -1
        record = Record.of(
            outcome, rows=1000, source=sure.source, reached=sure.reached, control=sure.control
        )  # fmt: skip
        assert ControlQuantile(0.8, positives=50).assess(record).stop is stops


def test_target_method_wants_all() -> None:
    assert TargetMethod(0.9).assess(control(29, 29)).stop
    assert not TargetMethod(0.9).assess(control(29, 28)).stop
    assert not TargetMethod(0.9, positives=28).assess(control(28, 28)).stop


def audit(found: int, outcome: list[int], rows: int) -> Record:
    return Record.of([1] * found + outcome, rows=rows, source=[LEARNER] * found + [AUDIT] * len(outcome))


def test_two_phase_agrees_with_the_formula() -> None:
    """K = floor(rho / tau - rho_pre + 1), p = P[Hypergeometric(N', K, n) <= k], stop if p < alpha."""
    from scipy import stats

    for found, drawn, seen in [(90, 300, 0), (90, 500, 3), (90, 200, 0), (50, 400, 2)]:
        record = audit(found, [1] * seen + [0] * (drawn - seen), rows=1000)
        forbidden = int((found + seen) / 0.9 - found + 1 + 1e-9)
        p = stats.hypergeom.cdf(seen, 1000 - found, forbidden, drawn)
        assert TwoPhase(0.9, 0.95, sample=drawn).assess(record).stop == (p < 0.05)


def test_two_phase_looks_once() -> None:
    rule = TwoPhase(0.9, 0.95, sample=200)
    record = audit(90, [1] * 3 + [0] * 700, rows=1000)
    assert rule.stop_time(record) is None or rule.stop_time(record) >= 290
    assert np.isinf(rule.follow(record).total_upper[289])
    assert len(np.unique(rule.follow(record).total_upper[290:])) == 1


def test_planned_audits_pass_if_half_is_missing() -> None:
    planned = planned_sample(10_000, 900, 0.9, 0.95)
    seen = -(-planned * 50 // 10_000)
    record = audit(900, [1] * seen + [0] * (planned - seen), rows=10_900)
    assert TwoPhase(0.9, 0.95).assess(record).stop


def test_draws_that_were_not_uniform_prove_nothing() -> None:
    fair = audit(90, [0] * 600, rows=1000)
    tampered = Record.of(
        fair.outcome, rows=1000, source=fair.source, probability=np.where(fair.source == AUDIT, 0.5, 1.0)
    )  # fmt: skip
    for rule in (TwoPhase(0.9), ConfidenceSequence(0.9), WeightedBetting(0.9)):
        assert rule.assess(fair).stop
        assert not rule.assess(tampered).stop


def test_a_second_audit_needs_its_share_of_alpha() -> None:
    source = [LEARNER] * 100 + [AUDIT] * 50 + [LEARNER] * 10 + [AUDIT] * 700
    record = Record.of([1] * 100 + [0] * 760, rows=1000, source=source)
    assert ConfidenceSequence(0.9).stop_time(record) is None or ConfidenceSequence(0.9).stop_time(record) > 850
    both = ConfidenceSequence(0.9, audits=2).stop_time(record)
    assert both is not None
    assert 160 < both < 850


def test_the_betting_rule_takes_draws_as_they_come() -> None:
    truth = np.arange(2000) < 200
    rule = WeightedBetting(0.9, 0.95)
    record = campaign_for(rule, truth, np.random.default_rng(0), share=0.3, switch=300)
    time = rule.stop_time(record)
    assert time is not None
    assert time < 1000


def test_learner_draws_below_the_floor_are_refused() -> None:
    open_rows = 500 - np.arange(200)
    good = Record.of([0] * 200, rows=500, open_rows=open_rows, probability=0.2 / open_rows)
    assert WeightedBetting(0.9, floor=0.1)._draws(good).places.size == 200
    assert WeightedBetting(0.9, floor=0.5)._draws(good).places.size == 0


def test_heuristics_stop_where_they_say() -> None:
    record = Record.of([1] * 30 + [0] * 100 + [1] * 5, rows=1000)
    assert ConsecutiveNegatives(count=60).stop_time(record) == 90
    assert ConsecutiveNegatives(count=101).stop_time(record) is None
    assert Budget(100).stop_time(record) == 100
    assert Budget(1000).stop_time(record) is None
    assert Budget(1000).assess(record).price == 865
    bend = Record.of([1] * 200 + [0] * 400, rows=1000)
    knee = Knee().stop_time(bend)
    assert knee is not None
    assert 200 < knee < 600
    ranked = RankedHypergeometric(0.9).stop_time(bend)
    assert ranked is not None
    assert 200 < ranked < 600
    distance = np.r_[np.full(30, 1.0), np.full(100, 1.6), np.full(5, 1.0)]
    assert DistanceGap(window=20).stop_time(Record.of(record.outcome, rows=1000, distance=distance)) == 50
    assert DistanceGap().stop_time(record) is None


def test_chao_estimates_from_recaptures() -> None:
    said = Chao(0.8).assess(control(50, 40))
    total = 51 * 101 / 41 - 1
    assert said.recall_estimate == pytest.approx(110 / total)
    assert not said.valid


def test_rules_compose_with_budgets() -> None:
    record = Record.of([1] * 40 + [0] * 160, rows=1000)
    rule = ConfidenceSequence(0.9) | Budget(200)
    said = rule.assess(record)
    assert said.stop
    assert said.valid
    assert said.recall_lower == ConfidenceSequence(0.9).assess(record).recall_lower
    assert "budget@1 stops" in said.reasoning
    assert rule.stop_time(record) == 200
    assert (ConfidenceSequence(0.9) | Budget(230)).assess(record).price == 30
    assert not (ConsecutiveNegatives() | Budget(10)).assess(record).valid


def test_two_valid_rules_share_their_errors() -> None:
    rule = ConfidenceSequence(0.9, 0.95) | WeightedBetting(0.9, 0.96) | Budget(10)
    assert len(rule.rules) == 3  # type: ignore[attr-defined]
    assert rule.confidence == pytest.approx(0.91)


def test_a_duplicate_group_counts_as_its_members() -> None:
    single = audit(90, [0] * 600, rows=1000)
    grouped = Record.of(single.outcome, rows=1000, source=single.source, largest_rest=4, members=2000)
    plain, wide = ConfidenceSequence(0.9).assess(single), ConfidenceSequence(0.9).assess(grouped)
    assert wide.remaining_upper == 4 * plain.remaining_upper
    found = Record.of([1, 0, 0], rows=3, size=[5, 1, 1])
    assert ConfidenceSequence(0.9).assess(found).recall_lower == 1
    missed = Record.of([1, -1, 0], rows=3, size=[5, 3, 1])
    assert ConfidenceSequence(0.9).assess(missed).recall_lower == pytest.approx(5 / 8)


@pytest.mark.parametrize("name", ["confidence-sequence", "weighted-betting"])
def test_the_price_is_about_right(name: str) -> None:
    """Asked after 300 audit draws, the usual price is what is usually paid from there on, within a half."""
    rule = make_rule(name, target=0.9)
    asked, paid = [], []
    for run in range(25):
        random = np.random.default_rng(run)
        truth = np.concatenate([np.ones(190, bool), random.permutation(np.arange(3810) < 10)])
        record = campaign_for(rule, truth, random, switch=190)
        time, price = rule.stop_time(record), rule.assess(record.head(490)).price
        assert time is not None
        assert price is not None
        asked.append(price)
        paid.append(max(0, time - 490))
    assert np.median(asked) == pytest.approx(np.median(paid), rel=0.5)
