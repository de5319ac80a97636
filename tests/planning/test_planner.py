"""The planner: what it promises, and what it reads from samples whose shape is known."""

from __future__ import annotations

import json
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from activecover.errors import InputError
from activecover.planning import (
    LEAST_POSITIVES,
    clopper_pearson,
    estimate_from_sample,
    explore_union,
    plan_explore,
    plan_from_sample,
    probability_all_hit,
)

Matrix = npt.NDArray[np.float64]


def estimate(points: Matrix):
    return estimate_from_sample(points, np.ones(len(points), bool))


def blobs(sizes: list[int], dimensions: int, seed: int, apart: float = 12.0) -> Matrix:
    centres = np.zeros((len(sizes), dimensions))
    centres[:, 0] = apart * np.arange(len(sizes))
    return np.repeat(centres, sizes, axis=0) + np.random.default_rng(seed).normal(size=(sum(sizes), dimensions))


def test_plan_of_the_guide() -> None:
    plan = plan_explore(0.02, 5, 0.05, 0.95, rows=1_000_000)
    assert (plan.size, plan.lemma1, plan.theorem4) == (4_603, 18_445, 21_911)
    assert plan.expected_positives == pytest.approx(92.06)
    assert plan.any_positive == pytest.approx(1 - 0.98**4603)
    assert plan.reached == pytest.approx(probability_all_hit(0.02, [0.05] * 4 + [0.8], 4603))
    assert plan.half.needed == explore_union(0.01, 0.05, 5, 0.05)
    assert plan.half.reached == pytest.approx(0.6559, abs=1e-4)
    assert plan.pool is not None
    assert not plan.pool.exceeds
    assert plan.pool.expected_smallest == pytest.approx(1000)


def test_plan_beyond_the_pool_says_what_then() -> None:
    plan = plan_explore(0.02, 5, 0.05, 0.95, rows=4_602)
    assert plan.pool is not None
    assert plan.pool.exceeds
    assert plan.pool.tenth == 460
    said = plan.sentences()
    assert said[0].startswith("It would take 4,603")
    assert "Label them all, or settle for less: a tenth (460 rows)" in said[-1]
    assert not plan_explore(0.02, 5, 0.05, 0.95, rows=4_603).pool.exceeds  # type: ignore[union-attr]


@given(st.floats(0.001, 0.999), st.integers(1, 50), st.floats(0.01, 1), st.floats(0.01, 0.999))
def test_plan_keeps_its_promise(prevalence: float, components: int, part: float, confidence: float) -> None:
    smallest = part / components if components > 1 else 1.0
    plan = plan_explore(prevalence, components, smallest, confidence, rows=10_000)
    assert plan.reached >= confidence - 1e-9
    assert plan.size <= plan.lemma1 <= plan.theorem4
    assert plan.half.reached <= plan.reached + 1e-9
    assert plan.half.needed >= plan.size
    assert all("\n" not in sentence for sentence in plan.sentences())
    json.dumps(plan.as_dict(), allow_nan=False)


@given(st.integers(2, 8), st.integers(1, 400), st.integers(0, 10**6))
def test_no_other_shares_do_worse(components: int, m: int, seed: int) -> None:
    shares = np.random.default_rng(seed).dirichlet(np.ones(components))
    q = float(shares.min())
    worst = [q] * (components - 1) + [1 - (components - 1) * q]
    assert probability_all_hit(0.3, worst, m) <= probability_all_hit(0.3, shares, m) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((0.0, 5, 0.1, 0.95), "prevalence 0:"),
        ((1.0, 5, 0.1, 0.95), "prevalence 1:"),
        ((2.0, 5, 0.1, 0.95), "2 percent is 0.02"),
        ((-0.1, 5, 0.1, 0.95), "prevalence -0.1"),
        ((math.nan, 5, 0.1, 0.95), "prevalence nan"),
        ((0.1, 0, 0.1, 0.95), "components 0"),
        ((0.1, 5, 0.21, 0.95), "at most 0.2"),
        ((0.1, 5, 0.0, 0.95), "smallest 0"),
        ((0.1, 5, math.nan, 0.95), "smallest nan"),
        ((0.1, 1, 0.5, 0.95), "its share is 1"),
        ((0.1, 5, 0.1, 0.0), "confidence 0"),
        ((0.1, 5, 0.1, 1.0), "confidence 1"),
        ((0.1, 5, 0.1, 95.0), "95 percent is 0.95"),
        ((0.1, 5, 0.1, 1e-300), "confidence 1e-300"),
        ((0.1, 5, 0.1, math.nan), "confidence nan"),
        ((0.1, 5, 0.1, 0.95, 0), "rows 0"),
        ((1e-300, 5, 0.1, 0.95), "can be counted"),
    ],
)
def test_absurd_plans_are_refused_in_one_line(arguments, says: str) -> None:
    with pytest.raises(InputError) as wrong:
        plan_explore(*arguments)
    assert says in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_plane_in_many_dimensions() -> None:
    random = np.random.default_rng(0)
    directions, _ = np.linalg.qr(random.normal(size=(50, 2)))
    found = estimate(random.random((1500, 2)) @ directions.T)
    assert found.two_nn == pytest.approx(2, abs=0.3)
    assert found.mle == pytest.approx(2, abs=0.3)
    assert found.components == 1


def test_circle() -> None:
    angles = np.random.default_rng(1).uniform(0, 2 * np.pi, 800)
    found = estimate(np.column_stack([np.cos(angles), np.sin(angles), 0 * angles]))
    assert found.two_nn == pytest.approx(1, abs=0.15)
    assert found.mle == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("dimensions", [2, 5, 10])
@pytest.mark.parametrize("sizes", [[100], [60, 60, 60], [10, 40, 60, 80, 110]])
def test_blobs_are_counted(dimensions: int, sizes: list[int]) -> None:
    found = estimate(blobs(sizes, dimensions, seed=3, apart=15))
    assert found.components == len(sizes)
    assert found.smallest == pytest.approx(min(sizes) / sum(sizes), abs=0.02)


def test_single_clouds_are_mostly_one_component() -> None:
    random = np.random.default_rng(8)
    counts = [estimate(random.random((n, 3))).components for n in (30, 60, 200) for _ in range(10)]
    assert counts.count(1) >= 27


def test_far_outlier_neither_counts_nor_hides_the_others() -> None:
    points = np.vstack([blobs([50, 50, 50], 2, seed=4), [[0, 1e4]]])
    found = estimate(points)
    assert (found.components, found.stragglers) == (3, 1)
    assert found.smallest == pytest.approx(1 / 3)


def test_copies_count_for_shares_only() -> None:
    points = blobs([40, 20], 2, seed=5)
    copied = np.vstack([points, np.repeat(points[-1:], 60, axis=0)])
    once, often = estimate(points), estimate(copied)
    assert (often.positives, often.distinct, often.components) == (120, 60, 2)
    assert often.two_nn == once.two_nn
    assert often.smallest == pytest.approx(40 / 120)


def test_lattice_distances_may_not_tell_the_dimension() -> None:
    """All corners of a simplex are at one distance: no estimate, no crash, no warning."""
    found = estimate(np.eye(20))
    assert (found.two_nn, found.mle, found.components) == (None, None, 1)
    assert "about unknown" in found.sentences()[1]


def test_many_positives_are_thinned() -> None:
    found = estimate_from_sample(np.random.default_rng(0).random((7000, 2)), np.arange(7000) < 3500)
    assert (found.positives, found.distinct, found.prevalence) == (3500, 3500, 0.5)
    assert found.two_nn == pytest.approx(2, abs=0.3)


def test_exact_interval() -> None:
    assert clopper_pearson(10, 100) == pytest.approx((0.0490, 0.1762), abs=1e-4)
    assert clopper_pearson(5, 5)[1] == 1
    for share in (0.02, 0.3):
        hits = np.random.default_rng(6).binomial(200, share, size=2000)
        inside = np.mean([low <= share <= high for low, high in (clopper_pearson(int(hit), 200) for hit in hits)])
        assert inside > 0.94


def test_plans_from_a_sample() -> None:
    points = np.vstack([blobs([60, 40], 3, seed=7), np.random.default_rng(0).normal(size=(900, 3))])
    found = estimate_from_sample(points, np.arange(1000) < 100)
    likely, careful = plan_from_sample(found, 0.9, rows=50_000)
    assert (likely.prevalence, likely.components, likely.smallest) == (0.1, 2, 0.4)
    assert careful.prevalence == found.prevalence_low
    assert careful.size > likely.size
    told, _ = plan_from_sample(found, 0.9, prevalence=0.2, components=8, smallest=0.01)
    assert (told.prevalence, told.components, told.smallest) == (0.2, 8, 0.01)
    assert plan_from_sample(found, 0.9, components=8)[0].smallest == 1 / 8


@pytest.mark.parametrize(
    ("vectors", "positive", "says"),
    [
        (np.eye(30), np.arange(30) < 4, f"too few positives to estimate from, 4 distinct ones: label at random until there are {LEAST_POSITIVES}"),
        (np.eye(30), np.zeros(30, bool), "0 distinct ones"),
        (np.ones((50, 2)), np.ones(50, bool), "1 distinct ones (50 with copies)"),
        (np.eye(30), np.ones(20, bool), "one true or false per row"),
        (np.full((30, 2), np.nan), np.ones(30, bool), "not finite"),
    ],
)  # fmt: skip
def test_samples_that_say_nothing_are_refused_in_one_line(vectors: Matrix, positive, says: str) -> None:
    with pytest.raises(InputError) as wrong:
        estimate_from_sample(vectors, positive)
    assert says in str(wrong.value)
    assert "\n" not in str(wrong.value)
