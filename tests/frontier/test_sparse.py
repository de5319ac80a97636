"""The sparse frontier: the order of the definition, whatever the products let through."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from activecover.errors import InputError
from activecover.frontier import ExactFrontier, SparseFrontier, _sparse_kernel, choose_frontier
from activecover.learners import ExploreCommit
from activecover.pool import Pool
from activecover.simulate import simulate_one
from activecover.testing import BruteForce, check_frontier, random_sparse_pool


def brute_force(pool, keys, retired=()):
    model = BruteForce(pool)
    model.add(list(keys), pool.take(keys))
    model.open -= {*retired}
    return model.nearest(len(pool), set())


def text_like(random, rows, dimensions, most=30):
    """Rows of words: the first columns are common, lengths differ, some rows are the same."""
    lengths = random.integers(1, most, rows)
    columns = (dimensions * random.random(lengths.sum()) ** 3).astype(int)
    values = random.integers(1, 4, len(columns)).astype(float)
    place = np.repeat(np.arange(rows), lengths)
    matrix = sparse.csr_array(sparse.coo_array((values, (place, columns)), shape=(rows, dimensions)))
    return matrix[random.integers(0, rows, rows)]


def test_contract():
    check_frontier(SparseFrontier, rounds=60, pools=random_sparse_pool)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["euclidean", "cosine"]), st.integers(1, 20))
def test_same_rows_order_and_sources_as_the_definition(seed, metric, positives):
    random = np.random.default_rng(seed)
    pool = Pool(text_like(random, 60, int(random.choice([3, 40, 2000]))), metric=metric)
    keys = random.choice(60, positives, replace=False).tolist()
    at_once, one_by_one = SparseFrontier(pool), SparseFrontier(pool)
    at_once.add(keys, pool.take(keys))
    for key in random.permutation(keys).tolist():
        one_by_one.add([key], pool.take([key]))
    expected = brute_force(pool, keys)
    for frontier in (at_once, one_by_one):
        found = frontier.nearest(60)
        assert found.rows.tolist() == [row for _, row, _ in expected]
        assert found.sources.tolist() == [key for _, _, key in expected]
        assert found.distances.tolist() == [float(np.sqrt(apart)) for apart, _, _ in expected]


@given(
    seed=st.integers(0, 2**32 - 1),
    exponent=st.integers(-12, 12),
    overlap=st.sampled_from([1, 5, 40, 300]),
    length=st.integers(1, 200),
)
def test_the_products_never_err_by_more_than_their_bound(seed, exponent, overlap, length):
    """The bound is what the kernel uses; the exact sum is that of whole-number arithmetic."""
    random = np.random.default_rng(seed)
    rows = sparse.random_array((2, overlap + length), density=min(1.0, length / overlap), rng=random, format="csr")
    x, p = (rows.toarray() * 10.0**exponent).astype(np.float32).astype(float)
    both = (x**2).sum() + (p**2).sum()
    estimate = both - 2 * (x @ p)
    a, b = (sparse.csr_array(v.astype(np.float32)[None]) for v in (x, p))
    exact = _sparse_kernel.squared_distance(a.indices, a.data, 0, a.nnz, b.indices, b.data, 0, b.nnz)
    bound = _sparse_kernel._UNIT * (a.nnz + b.nnz + 8) * both
    assert abs(estimate - exact) <= bound


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_near_ties_are_settled_exactly(metric):
    """Rows that differ in the last bit of float32, far from the origin: products alone cannot order them."""
    base = np.zeros((400, 50), np.float32)
    base[:, :20] = 1e6
    random = np.random.default_rng(1)
    for row in range(400):
        column = random.integers(0, 20)
        base[row, column] = np.nextafter(base[row, column], np.float32(np.inf))
        base[row, 20 + random.integers(0, 30)] = random.choice([0, 1e-3])
    pool = Pool(sparse.csr_array(base), metric=metric)
    keys = [7, 100, 101, 350]
    frontier = SparseFrontier(pool)
    frontier.add(keys, pool.take(keys))
    assert frontier.nearest(400).rows.tolist() == [row for _, row, _ in brute_force(pool, keys)]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_many_blocks_and_threads_agree_with_the_dense_frontier(threads, monkeypatch):
    """Whole numbers have exact sums in any order, so that both backends must agree to the last bit."""
    monkeypatch.setenv("ACTIVECOVER_THREADS", threads)
    random = np.random.default_rng(3)
    matrix = text_like(random, 15_000, 60, most=12)
    pool, dense = Pool(matrix), Pool(matrix.toarray())
    assert not dense.origin.any()
    keys = random.choice(15_000, 70, replace=False)
    closed = random.choice(15_000, 4_000, replace=False)
    answers = []
    for frontier, source in ((SparseFrontier(pool), pool), (ExactFrontier(dense), dense)):
        frontier.retire(closed)
        for part in (keys[:1], keys[1:10], keys[10:]):
            frontier.add(part, source.take(part))
        frontier.remove(keys[5:15])
        found = frontier.nearest(15_000)
        answers.append((found.rows.tolist(), found.sources.tolist(), found.distances.tolist()))
    assert answers[0] == answers[1]


def test_a_removed_positive_leaves_nothing_behind():
    pool = Pool(sparse.csr_array(np.eye(4, dtype=np.float32) * 7))
    frontier = SparseFrontier(pool)
    frontier.add([0, 1, 2], pool.take([0, 1, 2]))
    pool.withdraw([1])
    assert frontier.positives == 2
    assert frontier._known.vectors.toarray().tolist() == pool.take([0, 2]).toarray().tolist()
    assert np.count_nonzero(frontier._known._values) == 2


def test_rows_without_values():
    pool = Pool(sparse.csr_array(np.array([[0.0, 0], [0, 3], [0, 0], [4, 0]])))
    frontier = SparseFrontier(pool)
    frontier.add([0], pool.take([0]))
    found = frontier.nearest(4)
    assert (found.rows.tolist(), found.distances.tolist()) == ([0, 2, 1, 3], [0, 0, 3, 4])


def test_it_is_chosen_for_sparse_pools_and_for_no_others():
    pool = Pool(sparse.csr_array(np.eye(3)))
    assert isinstance(choose_frontier(pool), SparseFrontier)
    assert isinstance(choose_frontier(pool, "sparse"), SparseFrontier)
    for name in ("exact", "tree", "pruned", "bits"):
        with pytest.raises(
            InputError, match=f"frontier '{name}' needs a pool of kind .* but this one is 'sparse': use 'auto'"
        ):
            choose_frontier(pool, name)
    with pytest.raises(InputError, match="frontier 'sparse' needs a pool of kind 'sparse', but this one is 'dense'"):
        choose_frontier(Pool(np.eye(3)), "sparse")
    with pytest.raises(InputError, match="ExactFrontier"):
        ExactFrontier(pool)


def test_a_run_is_that_of_the_dense_pool():
    random = np.random.default_rng(5)
    matrix = text_like(random, 600, 40, most=8)
    truth = matrix[:, [2]].toarray().ravel() > 0
    orders = [
        simulate_one(pool, truth, ExploreCommit(10), batch=batch).rows.tolist()
        for batch in (1, 7)
        for pool in (Pool(matrix), Pool(matrix.toarray()))
    ]
    assert orders[0] == orders[1]
    assert orders[2] == orders[3]
