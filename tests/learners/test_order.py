"""Explore-commit asks in exactly the order of a loop that anyone can read."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from activecover.learners import ExploreCommit
from activecover.pool import Pool
from activecover.simulate import simulate_one


def brute_force_order(vectors, positive, sample, batch):
    points = vectors.astype(np.float64)
    asked = list(sample)
    while len(asked) < len(points):
        known = [row for row in asked if positive[row]]
        distance = np.min([((points - points[row]) ** 2).sum(axis=1) for row in known], axis=0)
        left = sorted(set(range(len(points))) - set(asked), key=lambda row: (distance[row], row))
        asked += left[:batch]
    return asked


@st.composite
def scenes(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, dimensions = draw(st.integers(2, 50)), draw(st.integers(1, 300))
    if draw(st.booleans()):
        points = random.integers(-2, 3, (rows, dimensions)).astype(float)  # a grid: ties everywhere
    else:
        points = random.normal(size=(rows, dimensions))
    if draw(st.booleans()):
        points = points[random.integers(0, rows, rows)]  # duplicates
    metric = draw(st.sampled_from(["euclidean", "cosine"]))
    if metric == "cosine":
        points[~points.any(axis=1)] = 1.0
    else:
        points = points * 10.0 ** draw(st.integers(-4, 4)) + draw(st.sampled_from([0.0, 10.0, 1e3, 1e7, -1e9]))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    positive = random.random(rows) < draw(st.sampled_from([0.1, 0.5, 0.9]))
    sample = random.permutation(rows)[: draw(st.integers(1, rows))]
    positive[sample[0]] = True
    return points.astype(dtype), metric, positive, sample.tolist()


@settings(max_examples=250)
@given(scenes(), st.integers(1, 9))
def test_explore_commit_asks_in_brute_force_order(scene, batch):
    points, metric, positive, sample = scene
    pool = Pool(points, metric=metric)
    for size in (1, batch):
        expected = brute_force_order(pool.vectors, positive, sample, size)
        trace = simulate_one(pool, positive, ExploreCommit(explore=sample), batch=size, to_the_end=True)
        assert trace.rows.tolist() == expected


def test_on_letters_one_at_a_time_for_five_hundred_steps():
    """Integers have ties at every step: plain float32 products get this order wrong from the fourth on."""
    from activecover.lab.datasets import load_letters

    letters = load_letters()
    pool, positive = Pool(letters.inputs), letters.positive("A")
    sample = np.random.default_rng(0).permutation(20_000)[:100].tolist()
    trace = simulate_one(pool, positive, ExploreCommit(explore=sample), batch=1, budget=600)
    points = letters.inputs.astype(np.float64)
    distance, closed = np.full(len(points), np.inf), np.zeros(len(points), bool)
    for place, row in enumerate(trace.rows):
        if place >= 100:
            expected = np.where(closed, np.inf, distance).argmin()
            assert row == expected, place
        closed[row] = True
        if positive[row]:
            distance = np.minimum(distance, ((points - points[row]) ** 2).sum(axis=1))
