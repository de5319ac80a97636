"""Promises measured: simulated campaigns per rule, looked at after every label.

Reduced counts by default; ``make deep`` runs thousands (and ``benchmarks/stopping.py`` writes the table).
"""

from __future__ import annotations

import numpy as np
import pytest

from activecover.stopping import (
    RULES,
    ConfidenceSequence,
    Course,
    Record,
    Rule,
    TwoPhase,
    WeightedBetting,
    campaign_for,
    standard_rules,
)
from activecover.stopping._audit import audits_of
from activecover.stopping._tails import most_positives
from activecover.testing import RANKINGS, measure_coverage

VALID = [rule.name for rule in standard_rules(valid_only=True)]
SMALL = ["benign, 50 %", "random", "adversarial", "stuck at 85 %", "no positives", "all positive"]


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("ranking", SMALL)
def test_valid_rules_keep_their_promise(name: str, ranking: str) -> None:
    scene = RANKINGS[ranking].scaled(300)
    found = measure_coverage(RULES[name].build, scene, targets=(0.8, 0.9), alphas=(0.2,), runs=60, seed=3)
    for (target, alpha), coverage in found.items():
        assert coverage.within(alpha), f"target {target}: {coverage}"


@pytest.mark.parametrize("name", VALID)
def test_a_handful_of_positives(name: str) -> None:
    scene = RANKINGS["5 in 20,000"].scaled(400)
    found = measure_coverage(RULES[name].build, scene, targets=(0.8, 0.99), alphas=(0.2,), runs=40, seed=4)
    assert all(coverage.within(alpha) for (_, alpha), coverage in found.items())


@pytest.mark.deep
@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("ranking", list(RANKINGS))
def test_valid_rules_keep_their_promise_in_thousands_of_campaigns(name: str, ranking: str) -> None:
    targets, alphas = (0.8, 0.9, 0.95, 0.99), (0.05, 0.2)
    found = measure_coverage(RULES[name].build, RANKINGS[ranking], targets=targets, alphas=alphas, runs=2000, seed=5)
    for (target, alpha), coverage in found.items():
        assert coverage.within(alpha), f"target {target}: {coverage}"


class LooksTooOften(TwoPhase):
    """A bound that is good for one look, taken after every label: what optional stopping does to it."""

    name = "looks-too-often"

    def follow(self, record: Record) -> Course:
        course = Course.nothing(record)
        audit = audits_of(record)[0]
        # Every other label is often enough.
        for drawn in range(1, len(audit.places) // 2, 2):
            place, seen = audit.places[drawn - 1], audit.seen[drawn - 1]
            most = most_positives(int(seen), audit.rows, drawn, self.alpha)
            course.total_upper[place + 1] = audit.possible + most
        return Course(np.minimum.accumulate(course.total_upper), course.total_estimate)


def test_the_measurement_finds_a_rule_that_looks_too_often() -> None:
    """The same data, the same looks: a bound for one look breaks, the sequence holds."""
    stuck = RANKINGS["stuck at 85 %"]
    scene = type(stuck)(600, 300, stuck.draw, stuck.switch)
    settings = {"targets": (0.88,), "alphas": (0.2,), "runs": 120, "seed": 6}
    broken = measure_coverage(LooksTooOften, scene, **settings)[0.88, 0.2]  # type: ignore[arg-type]
    sound = measure_coverage(ConfidenceSequence, scene, **settings)[0.88, 0.2]  # type: ignore[arg-type]
    assert not broken.within(0.2), broken
    assert sound.within(0.2), sound


@pytest.mark.parametrize(
    ("name", "ranking"),
    [
        ("consecutive-negatives", "adversarial"),
        ("ranked-hypergeometric", "adversarial"),
        ("knee", "stuck at 85 %"),
        ("chao", "benign"),
    ],
)
def test_heuristics_fail_somewhere(name: str, ranking: str) -> None:
    scene = RANKINGS[ranking]
    found = measure_coverage(RULES[name].build, scene, targets=(0.9,), alphas=(0.2,), runs=20, seed=7)
    assert not found[0.9, 0.2].within(0.2), found


def test_no_rule_hides_by_never_stopping() -> None:
    """A good ranking, 20,000 rows, 5 % positives, target .9, alpha .05: the best valid rule ends within 40 %."""
    scene = type(RANKINGS["benign"])(20_000, 1000, RANKINGS["benign"].draw)
    found = measure_coverage(RULES["confidence-sequence"].build, scene, runs=7, seed=8)
    assert found[0.9, 0.05].labels < 0.4, found


def weighed_campaign(truth: np.ndarray, scores: np.ndarray, floor: float, random: np.random.Generator) -> Record:
    """A learner that draws by chance, (1 - floor) by its scores and floor uniformly."""
    rows = len(truth)
    left = np.arange(rows)
    outcome, probability = [], []
    for _ in range(rows):
        weights = scores[left]
        chances = (1 - floor) * weights / weights.sum() + floor / len(left)
        place = int(random.choice(len(left), p=chances / chances.sum()))
        outcome.append(int(truth[left[place]]))
        # The last row is drawn for certain, and no longer by chance.
        probability.append(min(1.0, float(chances[place])))
        left = np.delete(left, place)
    return Record.of(outcome, rows=rows, probability=probability)


@pytest.mark.parametrize("kind", ["good", "adversarial"])
def test_weighed_draws_of_a_learner_certify(kind: str) -> None:
    """Scores that find positives, and scores that shun them: certified or not, rarely too early."""
    rule, early, ends = WeightedBetting(0.8, 0.8, floor=0.3), 0, []
    runs = 60
    for run in range(runs):
        random = np.random.default_rng([9, run])
        truth = np.arange(120) < 40
        scores = np.where(truth, 8.0, 1.0) if kind == "good" else np.where(truth, 0.2, 1.0)
        record = weighed_campaign(truth, scores, 0.3, random)
        end = rule.stop_time(record) or len(record)
        ends.append(end)
        early += int(record.found[end]) < 0.8 * 40
    assert early / runs <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / runs)
    if kind == "good":
        assert np.median(ends) < 110


def test_promises_hold_with_an_alternating_learner() -> None:
    """Audits, choices and explorations in any order: betting needs no plan and splits no alpha."""
    early, runs = 0, 60
    for run in range(runs):
        random = np.random.default_rng([10, run])
        truth = np.concatenate([np.ones(30, bool), random.permutation(np.arange(170) < 10)])
        rule: Rule = WeightedBetting(0.8, 0.8)
        record = campaign_for(rule, truth, random, explored=0, switch=100, share=0.5)
        end = rule.stop_time(record) or len(record)
        early += int(record.found[end]) < 0.8 * 40
    assert early / runs <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / runs)
