"""The lists of neighbours: those of all pairs, as the pool grows and rows are erased."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from activecover.errors import InputError
from activecover.graph import NeighbourGraph, shared_graph, shares_in_common
from activecover.pool import Pool

SEEDS = st.integers(0, 10**6)


def scene(seed, rows=40, dimensions=3):
    """Points with ties and copies, the labels of some of them, and a pool."""
    random = np.random.default_rng(seed)
    points = random.integers(-4, 5, size=(rows, dimensions)).astype(np.float32)
    known = random.permutation(rows)[: rows // 3]
    positive = random.random(len(known)) < 0.4
    positive[:2] = True, False
    return points, known, positive


def distances(points):
    return np.sqrt(((points[:, None].astype(float) - points[None]) ** 2).sum(-1))


def neighbour_lists(points):
    far = distances(points)
    np.fill_diagonal(far, np.inf)
    order = np.argsort(far, axis=1, kind="stable")[:, :-1]
    return order, np.take_along_axis(far, order, axis=1)


@given(SEEDS, st.integers(1, 12))
def test_graph_is_that_of_all_pairs(seed, count):
    points, *_ = scene(seed)
    graph = NeighbourGraph(count).refresh(Pool(points))
    order, far = neighbour_lists(points)
    assert graph.neighbours.tolist() == order[:, :count].tolist()
    assert np.array_equal(graph.distances, far[:, :count])


@given(SEEDS)
def test_graph_grows_as_if_it_had_been_large_at_once(seed):
    points, *_ = scene(seed)
    pool = Pool(points[:13])
    graph = NeighbourGraph(6).refresh(pool)
    pool.extend(points[13:])
    whole = NeighbourGraph(6).refresh(Pool(points))
    graph.refresh(pool)
    assert np.array_equal(graph.neighbours, whole.neighbours)
    assert np.array_equal(graph.distances, whole.distances)


def test_graph_of_a_tiny_pool_has_empty_places():
    graph = NeighbourGraph(4).refresh(Pool([[0.0], [2.0]]))
    assert graph.neighbours.tolist() == [[1, -1, -1, -1], [0, -1, -1, -1]]
    assert graph.scale(3).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_graph_of_sparse_rows(metric):
    random = np.random.default_rng(1)
    rows = sparse.random_array((60, 30), density=0.3, rng=random, format="csr") + 0.01 * sparse.eye_array(60, 30)
    rows = sparse.csr_array(rows.toarray() + (rows.sum(axis=1) == 0)[:, None])
    pool = Pool(rows, metric=metric)
    graph = NeighbourGraph(5).refresh(pool)
    far = cdist(pool.vectors.toarray().astype(float), pool.vectors.toarray().astype(float))
    np.fill_diagonal(far, np.inf)
    np.testing.assert_allclose(graph.distances, np.sort(far, axis=1)[:, :5], atol=1e-7)


def test_graph_of_bits():
    bits = np.random.default_rng(2).random((50, 70)) < 0.3
    graph = NeighbourGraph(5).refresh(Pool(bits.astype(int), metric="jaccard"))
    far = cdist(bits, bits, "jaccard")
    np.fill_diagonal(far, np.inf)
    np.testing.assert_allclose(graph.distances, np.sort(far, axis=1)[:, :5], atol=1e-12)


def test_an_erased_row_is_wiped_out_of_the_graph_and_the_density_stays():
    points, *_ = scene(4)
    pool = Pool(points)
    before = shared_graph(pool).scale(10)
    copy = pool.without([7])
    after = shared_graph(copy)
    assert not (after.neighbours == 7).any()
    assert (after.neighbours[7] == -1).all()
    assert not np.isfinite(after.distances[7]).any()
    others = np.arange(len(points)) != 7
    assert np.array_equal(after.scale(10)[others], before[others])
    assert (shared_graph(pool).neighbours == 7).any()


@given(SEEDS)
def test_shares_of_neighbours_in_common(seed):
    points, *_ = scene(seed, rows=25)
    pool = Pool(points)
    pool.withdraw([3, 4])
    lists = shared_graph(pool).neighbours
    shares = shares_in_common(lists, 5, 10)
    for row, found in enumerate(shares):
        mine = {row, *lists[row, :10]} - {-1}
        for other, share in zip(lists[row, :5], found, strict=True):
            assert share == (len(mine & set(lists[other, :10])) / 10 if other >= 0 else 0.0)


def test_graph_refuses_pools_that_are_too_large(monkeypatch):
    monkeypatch.setattr("activecover.graph._graph.MOST_ROWS", 3)
    with pytest.raises(InputError, match="too large"):
        shared_graph(Pool(np.zeros((4, 1))))
