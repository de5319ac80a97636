"""The reference frontier: exact to the last bit, whatever the filter does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activecover.errors import InputError
from activecover.frontier import ExactFrontier, distance
from activecover.pool import Pool
from activecover.testing import check_frontier


def squared(x: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The kernel, one row against one positive."""
    plan = distance.summation_plan(x.shape[1])
    sums = np.empty(len(plan))
    return np.array([distance.squared_distance(x, i, p, 0, plan, sums) for i in range(len(x))])


@pytest.mark.parametrize(
    "dimensions", [*range(1, 35), 63, 64, 127, 128, 129, 135, 136, 137, 255, 256, 257, 300, 784, 3072]
)
def test_the_kernel_is_numpys_own_sum_to_the_last_bit(dimensions):
    random = np.random.default_rng(dimensions)
    x = (random.normal(size=(20, dimensions)) * 10.0 ** random.integers(-6, 6, dimensions)).astype(np.float32)
    p = random.normal(size=(1, dimensions)).astype(np.float32)
    expected = ((x.astype(np.float64) - p.astype(np.float64)) ** 2).sum(axis=1)
    assert squared(x, p).tolist() == expected.tolist()


@given(
    seed=st.integers(0, 2**32 - 1),
    dimensions=st.integers(1, 400),
    # With the offset no value is larger than a pool takes.
    exponent=st.integers(-12, 9),
    offset=st.sampled_from([0.0, 1.0, 1e3, 1e6]),
)
def test_the_filter_never_errs_by_more_than_its_bound(seed, dimensions, exponent, offset):
    random = np.random.default_rng(seed)
    x = ((random.normal(size=(30, dimensions)) + offset) * 10.0**exponent).astype(np.float32)
    p = ((random.normal(size=(7, dimensions)) + offset) * 10.0**exponent).astype(np.float32)
    rows, columns = distance.squares(x), distance.squares(p)
    # As the filter does: the product and its difference from the square in float32.
    estimates = rows[:, None] + (columns.astype(np.float32) - x @ (2 * p.T)).astype(np.float64)
    exact = ((x.astype(np.float64)[:, None] - p.astype(np.float64)) ** 2).sum(axis=2)
    slack = distance.slack_of(dimensions)
    bounds = np.array([[distance.error_bound(a, b, slack) for b in columns] for a in rows])
    assert (np.abs(estimates - exact) <= bounds).all()


def test_contract():
    check_frontier(ExactFrontier, rounds=120)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_many_blocks_and_threads_agree_with_the_definition(threads, monkeypatch):
    monkeypatch.setenv("ACTIVECOVER_THREADS", threads)
    random = np.random.default_rng(3)
    points = random.integers(0, 6, (20_000, 12)).astype(np.float32)
    pool = Pool(points)
    frontier = ExactFrontier(pool)
    keys = random.choice(20_000, 300, replace=False)
    frontier.retire(random.choice(20_000, 5_000, replace=False))
    for part in np.array_split(keys, 3):
        frontier.add(part, pool.vectors[part])
    found = frontier.nearest(20_000)
    wide = points.astype(np.float64)
    every = ((wide[found.rows, None] - wide[np.sort(keys)]) ** 2).sum(axis=2)
    assert (found.distances == np.sqrt(every.min(axis=1))).all()
    assert (found.sources == np.sort(keys)[every.argmin(axis=1)]).all()
    assert (np.lexsort((found.rows, found.distances)) == np.arange(len(found.rows))).all()


def test_a_point_identical_to_a_positive_has_distance_zero_far_from_the_origin():
    points = np.random.default_rng(0).normal(size=(50, 20)) + 1e7
    points[33] = points[4]
    frontier = ExactFrontier(Pool(points))
    frontier.add([4], Pool(points).vectors[[4]])
    frontier.retire([4])
    found = frontier.nearest(1)
    assert (found.rows[0], found.distances[0]) == (33, 0.0)


def test_a_positive_is_added_once_and_only_a_known_one_removed():
    pool = Pool(np.eye(3))
    frontier = ExactFrontier(pool)
    frontier.add([0], pool.vectors[:1])
    with pytest.raises(InputError, match="only once"):
        frontier.add([0], pool.vectors[:1])
    with pytest.raises(InputError, match="not known"):
        frontier.remove([2])


def test_erased_rows_are_never_read_nor_proposed():
    pool = Pool(np.arange(10.0)[:, None]).without([3, 4])
    frontier = ExactFrontier(pool)
    frontier.add([0], pool.vectors[:1])
    assert frontier.nearest(20).rows.tolist() == [0, 1, 2, 5, 6, 7, 8, 9]
    frontier.restore([3])
    assert 3 not in frontier.nearest(20).rows


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_remove_is_as_if_never_added(seed):
    random = np.random.default_rng(seed)
    pool = Pool(random.integers(0, 4, (40, 2)))
    keys = random.permutation(40)[:10]
    left, right = ExactFrontier(pool), ExactFrontier(pool)
    left.add(keys, pool.vectors[keys])
    left.remove(keys[:5])
    right.add(keys[:4:-1], pool.vectors[keys[:4:-1]])
    a, b = left.nearest(40), right.nearest(40)
    assert a.rows.tolist() == b.rows.tolist()
    assert a.sources.tolist() == b.sources.tolist()
