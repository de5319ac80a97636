"""What must hold of every rule and every record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from activecover.stopping import (
    Budget,
    ConfidenceSequence,
    Record,
    Rule,
    campaign_for,
    make_rule,
    missed_component,
    standard_rules,
)
from activecover.stopping._tails import sequence_upper

ALL = [rule.name for rule in standard_rules()]
VALID = [rule.name for rule in standard_rules(valid_only=True)]


@st.composite
def campaigns(draw: st.DrawFn, names: list[str]) -> tuple[Rule, Record]:
    rows = draw(st.integers(1, 60))
    positives = draw(st.integers(0, rows))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    truth = random.permutation(np.arange(rows) < positives)
    target, confidence = draw(st.sampled_from([0.5, 0.8, 0.95])), draw(st.sampled_from([0.5, 0.8, 0.95]))
    rule = make_rule(draw(st.sampled_from(names)), target=target, confidence=confidence)
    return rule, campaign_for(rule, truth, random, switch=draw(st.integers(0, rows)), share=draw(st.floats(0, 1)))


@given(campaigns(ALL), st.floats(0, 1))
def test_statements_make_sense_at_every_time(campaign: tuple[Rule, Record], part: float) -> None:
    rule, record = campaign
    said = rule.assess(record.head(int(part * len(record))))
    assert 0 <= said.recall_lower <= 1
    assert said.recall_estimate is None or 0 <= said.recall_estimate <= 1
    assert 0 <= said.remaining_upper <= record.rows
    assert said.price is None or 0 <= said.price <= record.rows


@given(campaigns(ALL))
def test_an_exhausted_pool_has_no_secrets(campaign: tuple[Rule, Record]) -> None:
    rule, record = campaign
    assert rule.assess(record).recall_lower == 1
    assert rule.assess(record).remaining_upper == 0


@given(campaigns(ALL), st.data())
def test_never_above_the_truth_of_an_exhausted_pool(campaign: tuple[Rule, Record], data: st.DataObject) -> None:
    """All rows asked and some unsettled: recall may be as low as if all of those were positive."""
    rule, record = campaign
    outcome = record.outcome.copy()
    outcome[data.draw(st.lists(st.integers(0, len(record) - 1), min_size=1))] = -1
    doubtful = Record.of(
        outcome, rows=record.rows, source=record.source, reached=record.reached, control=record.control
    )
    found, unsettled = int((outcome == 1).sum()), int((outcome == -1).sum())
    if rule.valid:
        assert rule.assess(doubtful).recall_lower <= found / (found + unsettled) + 1e-12


@given(campaigns(VALID))
def test_what_was_proved_stays_proved(campaign: tuple[Rule, Record]) -> None:
    rule, record = campaign
    assert np.all(np.diff(rule.follow(record).total_upper[np.isfinite(rule.follow(record).total_upper)]) <= 0)
    lower = rule.recall_lower(record)
    certified = np.flatnonzero(rule.stops(record))
    if len(certified):
        assert np.all(lower[certified[0] :] >= rule.target - 1e-9)


@given(campaigns(["confidence-sequence", "weighted-betting", "two-phase"]))
def test_more_confidence_is_a_lower_bound(campaign: tuple[Rule, Record]) -> None:
    rule, record = campaign
    if rule.name == "two-phase":
        rule.sample = 5  # type: ignore[attr-defined]
    surer = make_rule(rule.name, target=rule.target, confidence=0.99)
    if rule.name == "two-phase":
        surer.sample = 5  # type: ignore[attr-defined]
    assert np.all(surer.recall_lower(record) <= rule.recall_lower(record) + 1e-12)


@given(st.integers(1, 200), st.data())
def test_the_sequence_bound_is_monotone(rows: int, data: st.DataObject) -> None:
    drawn = data.draw(st.integers(1, rows))
    seen = np.arange(drawn + 1)
    upper = sequence_upper(seen, np.full(drawn + 1, drawn), rows, 0.05)
    assert np.all(np.diff(upper) >= 0), "more positives drawn, and fewer possible"
    assert np.all((upper >= seen) & (upper <= rows - drawn + seen))


@given(st.permutations(list(range(30))), st.integers(0, 8))
def test_the_order_of_audit_labels_does_not_matter_to_the_counts(order: list[int], positives: int) -> None:
    """The bound from counts alone: only the running minimum remembers the way."""
    outcome = (np.array(order) < positives).astype(int)
    assert sequence_upper(outcome.sum(), 30, 100, 0.05) == sequence_upper(positives, 30, 100, 0.05)


@given(st.permutations(list(range(12))), st.permutations(list(range(12))))
def test_the_order_among_choices_without_chance_does_not_matter(one: list[int], two: list[int]) -> None:
    labels = np.array([1] * 5 + [0] * 7)
    tail = [0] * 40
    source = [1] * 12 + [3] * 40
    records = [Record.of([*labels[order], *tail], rows=80, source=source) for order in (one, two)]
    for name in ("two-phase", "confidence-sequence", "weighted-betting"):
        said = [make_rule(name, target=0.5).assess(record) for record in records]
        assert said[0] == said[1]


@given(campaigns(ALL), st.integers(1, 60))
def test_a_budget_only_ever_ends_earlier(campaign: tuple[Rule, Record], labels: int) -> None:
    rule, record = campaign
    alone, within = rule.stop_time(record), (rule | Budget(labels)).stop_time(record)
    candidates = [time for time in (alone, labels if labels <= len(record) else None) if time is not None]
    assert within == min(candidates, default=None)


@given(st.integers(2, 3000), st.data())
def test_a_missed_component_shrinks_with_every_draw(rows: int, data: st.DataObject) -> None:
    draws = data.draw(st.integers(0, min(rows, 200)))
    record = Record.of([0] * draws, rows=rows, source="insurance")
    sizes = [missed_component(record.head(time)).rows for time in range(0, draws + 1, max(1, draws // 5))]
    assert sizes[0] == rows
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("name", ALL)
def test_rules_print_themselves(name: str) -> None:
    rule = make_rule(name)
    assert eval(repr(rule), {type(rule).__name__: type(rule)}).__dict__ == rule.__dict__


def test_unknown_levels_are_refused() -> None:
    with pytest.raises(ValueError, match="confidence 1"):
        ConfidenceSequence(0.9, 1).assess(Record.of([1], rows=2))
