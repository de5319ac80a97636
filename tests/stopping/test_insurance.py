"""Insurance: a component that the first sample missed is found, and for the price that was said."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from activecover.errors import InputError
from activecover.learners import ExploreCommit, Labels
from activecover.pool import Pool
from activecover.stopping import (
    Record,
    draws_to_exclude,
    labels_to_hit,
    largest_missed,
    missed_component,
)


def test_bounds_agree_with_the_exact_chance() -> None:
    escapes = [comb(100 - size, 50) / comb(100, 50) for size in range(51)]
    assert largest_missed(np.arange(100, 50, -1), 0.95, most=50) == max(s for s in range(51) if escapes[s] >= 0.05)
    for size in (1, 5, 40):
        draws = draws_to_exclude(size, 500)
        assert largest_missed(500 - np.arange(draws), 0.95, 500) < size
        assert largest_missed(500 - np.arange(draws - 1), 0.95, 500) >= size


def test_only_uniform_draws_count() -> None:
    record = Record.of([0] * 100, rows=1000, source=[1] * 50 + [4] * 50)
    said = missed_component(record)
    assert said.draws == 50
    assert said.rows == largest_missed(950 - np.arange(50), 0.95, 900)
    assert "50 uniform draws" in said.sentence()


def test_the_bound_is_rarely_too_small_at_any_look() -> None:
    """A hidden component of 60 of 1,000 rows: how often does a look say that none so large is left, before a hit?"""
    needed, wrong, runs = draws_to_exclude(60, 1000, 0.8), 0, 2000
    for run in range(runs):
        first = np.random.default_rng([3, run]).permutation(1000)[:60].min()
        wrong += first >= needed
    assert 0.1 < wrong / runs <= 0.2 + 3 * np.sqrt(0.16 / runs)


@pytest.mark.parametrize(("component", "rows", "share"), [(50, 2000, 1.0), (50, 2000, 0.1), (5, 300, 0.5)])
def test_expected_labels_until_a_hit(component: int, rows: int, share: float) -> None:
    """Every label closes a row outside the component; some are draws."""
    random = np.random.default_rng(4)
    open_rows = rows - np.arange(rows - component)
    hits = random.random((1500, len(open_rows))) < share * component / open_rows
    first = np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, len(open_rows))
    assert first.mean() == pytest.approx(labels_to_hit(component, rows, share), rel=0.1)


def two_components(random: np.random.Generator) -> tuple[Pool, np.ndarray, list[int]]:
    """Forty positives here, forty far away, and a sample that has hit the first ones only."""
    here, there = random.normal(size=(40, 2)) * 0.3, random.normal(size=(40, 2)) * 0.3 + 50
    around = random.normal(size=(520, 2)) * 6
    truth = np.arange(600) < 80
    sample = [0, *(80 + random.permutation(520)[:20]).tolist()]
    return Pool(np.concatenate([here, there, around])), truth, sample


def labels_until_there(share: float, run: int) -> tuple[int, int]:
    """Labels until the second component is touched, and the rows open when the learner began."""
    random = np.random.default_rng([5, run])
    pool, truth, sample = two_components(random)
    learner = ExploreCommit(explore=sample).begin(pool, seed=run)
    asked: set[int] = set()
    number = 0

    def tell(row: int) -> None:
        nonlocal number
        learner.tell(Labels.of([number], [row], [truth[row]], False))
        asked.add(row)
        number += 1

    for row in sample:
        tell(row)
    begun = len(pool) - len(asked)
    while True:
        if random.random() < share:
            row = int(random.choice([row for row in range(len(pool)) if row not in asked]))
        else:
            row = int(learner.propose(1).rows[0])
        tell(row)
        if 40 <= row < 80:
            return len(asked) - len(sample), begun


def test_without_insurance_the_second_component_comes_last() -> None:
    labels, begun = labels_until_there(0.0, 0)
    assert labels == begun - 39


def test_with_insurance_it_is_found_at_the_planned_cost() -> None:
    runs = 60
    results = [labels_until_there(0.2, run) for run in range(runs)]
    planned = labels_to_hit(40, results[0][1], 0.2)
    paid = np.array([labels for labels, _ in results])
    error = paid.std(ddof=1) / np.sqrt(runs)
    assert abs(paid.mean() - planned) <= max(0.15 * planned, 3 * error)


@pytest.mark.deep
def test_with_insurance_the_mean_of_400_runs_is_within_15_percent() -> None:
    results = [labels_until_there(0.2, run) for run in range(400)]
    assert np.mean([labels for labels, _ in results]) == pytest.approx(labels_to_hit(40, results[0][1], 0.2), rel=0.15)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="share 0"):
        labels_to_hit(5, 100, 0)
    with pytest.raises(InputError, match="component 0"):
        labels_to_hit(0, 100)
    with pytest.raises(InputError, match="confidence 1"):
        largest_missed([5], 1, 5)
