"""The pruned scan: the reference's order, whatever the rotation leaves out."""

import numpy as np
import pytest

from activecover.frontier import ExactFrontier, PrunedFrontier, _pruned
from activecover.learners import ExploreCommit
from activecover.pool import Pool
from activecover.simulate import simulate_one
from activecover.testing import check_frontier, check_learner


@pytest.fixture(params=[(1024, 24), (2, 24), (2, 1), (1, 0)], ids=lambda sizes: f"front-{sizes[0]}-scans-{sizes[1]}")
def sizes(request, monkeypatch):
    """A front so small that a handful of rows already has to be caught up with, and every way to add positives."""
    front, scans = request.param
    monkeypatch.setattr(_pruned, "_FRONT", front)
    monkeypatch.setattr(_pruned, "_CROWD", 4 * front)
    monkeypatch.setattr(_pruned, "MOST_SCANS", scans)


@pytest.mark.parametrize("half", [False, True])
def test_contract(sizes, half):
    check_frontier(lambda pool: PrunedFrontier(pool, half), rounds=40)


@pytest.mark.parametrize("half", [False, True])
def test_more_rows_enter_at_once_than_there_is_room_for(half, monkeypatch):
    monkeypatch.setattr(_pruned, "_ROOM", 1)
    monkeypatch.setattr(_pruned, "_FRONT", 3)
    monkeypatch.setattr(_pruned, "_CROWD", 12)
    check_frontier(lambda pool: PrunedFrontier(pool, half), rounds=40, seed=1)


@pytest.mark.parametrize("half", [False, True])
def test_points_far_outside_the_sample_are_found_in_their_place(half, monkeypatch):
    monkeypatch.setattr(_pruned, "_FRONT", 4)
    random = np.random.default_rng(0)
    points = random.normal(size=(400, 20))
    points[100:110] *= 1e6
    points[110:120] *= 1e-6
    pool = Pool(points)
    frontiers = [PrunedFrontier(pool, half), ExactFrontier(pool)]
    far = pool.encode(random.normal(size=(3, 20)) * 1e9)
    for frontier in frontiers:
        frontier.add([-1, -2, -3], far)
        frontier.add([105, 3, 112], pool.take([105, 3, 112]))
    orders = [frontier.nearest(400).rows.tolist() for frontier in frontiers]
    assert orders[0] == orders[1]


def test_positives_from_outside_wait_for_the_first_rows():
    pool = Pool(np.ones((2, 3))).without([0, 1])
    frontier = PrunedFrontier(pool)
    frontier.add([-1], pool.encode([[0.0, 0.0, 0.0]]))
    pool.extend([[5.0, 0, 0], [1.0, 0, 0]])
    frontier.extend()
    assert frontier.nearest(5).rows.tolist() == [3, 2]


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
        simulate_one(pool, classes == 0, ExploreCommit(20, name), batch=1, budget=700).rows.tolist()
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


def test_many_positives_from_outside_of_a_pool_that_is_all_erased():
    pool = Pool(np.eye(3)).without([0, 1, 2])
    frontier = PrunedFrontier(pool)
    frontier.add(-1 - np.arange(9), pool.encode(np.ones((9, 3))))
    frontier.remove([-9])
    pool.extend([[5.0, 0, 0], [1.0, 1, 0]])
    frontier.extend()
    assert frontier.nearest(5).rows.tolist() == [4, 3]
