"""The pruned scan: the reference's order, whatever the rotation leaves out."""

import numpy as np
import pytest

from activecover.frontier import ExactFrontier, PrunedFrontier
from activecover.learners import ExploreCommit
from activecover.pool import Pool
from activecover.simulate import cover
from activecover.testing import check_frontier, check_learner


def test_contract():
    check_frontier(PrunedFrontier, rounds=60)


def test_a_learner_on_it_keeps_its_contract():
    check_learner(lambda truth: ExploreCommit(explore=10, frontier="pruned"), rounds=2)


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("dimensions", [3, 40, 64, 200])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_same_order_as_the_reference(dimensions, offset, threads, monkeypatch):
    monkeypatch.setenv("ACTIVECOVER_THREADS", threads)
    random = np.random.default_rng(dimensions)
    centres = random.normal(size=(12, dimensions)) * 3
    classes = random.integers(0, 12, 3000)
    points = centres[classes] + random.normal(size=(3000, dimensions)) / np.sqrt(np.arange(1, dimensions + 1))
    points[::9] = points[1::9][: len(points[::9])]
    pool = Pool(points + offset)
    orders = [
        cover(pool, classes == 0, ExploreCommit(20, name), batch=1, budget=700).rows.tolist()
        for name in ("pruned", "exact")
    ]
    assert orders[0] == orders[1]


def test_positives_one_at_a_time_and_at_once_agree():
    pool = Pool(np.random.default_rng(0).normal(size=(2000, 50)))
    single, batch, exact = PrunedFrontier(pool), PrunedFrontier(pool), ExactFrontier(pool)
    keys = np.arange(0, 60)
    for key in keys:
        single.add([key], pool.vectors[[key]])
    for frontier in (batch, exact):
        frontier.add(keys, pool.vectors[keys])
    answers = [frontier.nearest(2000) for frontier in (single, batch, exact)]
    assert all(answer.rows.tolist() == answers[2].rows.tolist() for answer in answers)
    assert all(answer.sources.tolist() == answers[2].sources.tolist() for answer in answers)
