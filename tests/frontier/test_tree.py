"""The tree frontier: the reference's order, whatever the data look like."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activecover.errors import InputError
from activecover.frontier import ExactFrontier, TreeFrontier, choose_frontier
from activecover.learners import ExploreCommit, Offline
from activecover.pool import Pool
from activecover.simulate import simulate_one
from activecover.testing import check_frontier, check_learner


def test_contract():
    check_frontier(TreeFrontier, rounds=60)


@pytest.mark.parametrize("learner", [ExploreCommit, Offline])
def test_learners_on_a_tree_keep_their_contract(learner):
    check_learner(lambda truth: learner(explore=10, frontier="tree"), dimensions=2)


@st.composite
def clouds(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, dimensions = draw(st.integers(1, 400)), draw(st.integers(1, 8))
    points = random.normal(size=(rows, dimensions))
    if draw(st.booleans()):
        points = np.round(points)  # ties and duplicates everywhere
    if draw(st.booleans()):
        points[: rows // 2] = points[: rows // 2] * 1e-3 + 50  # two scales, far apart
    if draw(st.booleans()):
        points[:, 0] = 7.0  # a side without width
    positive = random.random(rows) < draw(st.sampled_from([0.05, 0.4, 0.95]))
    positive[0] = True
    return Pool(points), positive, random.permutation(rows)[: draw(st.integers(1, rows))].tolist()


@settings(max_examples=120)
@given(clouds(), st.integers(1, 30))
def test_same_order_as_the_reference(cloud, batch):
    pool, positive, sample = cloud
    orders = [
        simulate_one(pool, positive, ExploreCommit(sample, name), batch=batch, to_the_end=True).rows.tolist()
        for name in ("tree", "exact")
    ]
    assert orders[0] == orders[1]


@settings(max_examples=60)
@given(clouds())
def test_a_run_followed_at_once_is_the_run_step_by_step(cloud):
    pool, positive, _ = cloud
    frontier = TreeFrontier(pool)
    frontier.retire([0])
    frontier.add([0], pool.vectors[:1])
    order = frontier.follow(positive, int(positive.sum()) - 1)
    trace = simulate_one(pool, positive, ExploreCommit([0], "exact"), batch=1)
    assert [0, *order.tolist()] == trace.rows.tolist()
    # And it can be gone on with.
    left = set(range(len(pool))) - set(trace.rows.tolist())
    assert set(frontier.nearest(len(pool)).rows.tolist()) == left


def test_ten_thousand_points_of_which_all_are_the_same():
    pool = Pool(np.ones((10_000, 2)))
    frontier = TreeFrontier(pool)
    frontier.add([5000], pool.vectors[[5000]])
    frontier.retire([5000])
    assert frontier.nearest(3).rows.tolist() == [0, 1, 2]
    assert frontier.nearest(3).distances.tolist() == [0, 0, 0]


def test_a_positive_from_outside_may_lie_far_away():
    pool = Pool(np.arange(5000.0)[:, None])
    tree, exact = TreeFrontier(pool), ExactFrontier(pool)
    for frontier in (tree, exact):
        frontier.add([-1], pool.encode([[1e9]]))
    assert tree.nearest(7).rows.tolist() == exact.nearest(7).rows.tolist() == list(range(4999, 4992, -1))


def test_few_dimensions_are_served_by_a_tree():
    assert isinstance(choose_frontier(Pool(np.eye(3))), TreeFrontier)
    assert isinstance(choose_frontier(Pool(np.eye(9))), ExactFrontier)
    assert isinstance(choose_frontier(Pool(np.eye(9)), "tree"), TreeFrontier)
    with pytest.raises(InputError, match="unknown frontier 'treee': did you mean 'tree'"):
        ExploreCommit(frontier="treee").begin(Pool(np.eye(3)))


def test_several_threads_may_ask_at_once():
    pool = Pool(np.random.default_rng(0).normal(size=(20_000, 2)))
    expected = ExploreCommit(0, "exact").begin(pool, outside=pool.vectors[:1]).propose(15_000).rows.tolist()
    for _ in range(3):
        learner = ExploreCommit(0, "tree").begin(pool, outside=pool.vectors[:1])
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(learner.propose, [15_000, 9_000, 15_000, 100]))
        assert [expected[: len(answer)] == answer.rows.tolist() for answer in answers] == [True] * 4
