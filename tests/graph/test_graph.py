"""The neighbour graph of a large pool: only rows of the same cell are compared, and what is found is exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from activecover.graph import NeighbourGraph, graph_is_exact, graph_recall, shared_graph
from activecover.graph import _graph as graphs
from activecover.learners import Auto, KnnPosterior, SpreadPosterior
from activecover.pool import Pool
from activecover.testing import check_learner


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    """From 40 rows on a pool is a large one, with few cells for each row."""
    monkeypatch.setattr(graphs, "EXACT_ROWS", 40)
    monkeypatch.setattr(graphs, "CELLS", 3)


def clumps(rows, seed=0, dimensions=6):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(12, dimensions)) * 4
    return (centres[random.integers(12, size=rows)] + random.normal(size=(rows, dimensions))).astype(np.float32)


def pools(rows, seed=0):
    points = clumps(rows, seed)
    yield Pool(points)
    yield Pool(points, metric="cosine")
    yield Pool(sparse.csr_array(np.where(points > 0.5, points, 0.0) + 0.1 * np.eye(*points.shape)), metric="euclidean")
    yield Pool((points[:, :, None] > np.linspace(-6, 6, 8)).reshape(rows, -1).astype(int), metric="jaccard")


@pytest.mark.parametrize("number", range(4))
def test_most_neighbours_are_found_and_their_distances_are_exact(number):
    pool = list(pools(600))[number]
    graph, everyone = shared_graph(pool), np.arange(len(pool))
    assert not graph_is_exact(pool)
    assert graph_recall(pool) > 0.7
    nearest, far = graphs.nearest_among(pool, everyone, everyone, len(pool) - 1)
    by_row = np.empty((len(pool), len(pool)))
    np.put_along_axis(by_row, nearest.astype(np.int64), far, axis=1)
    kept = graph.neighbours >= 0
    rows, others = np.nonzero(kept)[0], graph.neighbours[kept]
    assert np.array_equal(graph.distances[kept], by_row[rows, others])
    assert (graph.distances[:, 1:] >= graph.distances[:, :-1]).all()
    assert not (graph.neighbours == everyone[:, None]).any()


def test_a_graph_that_knows_nothing_has_no_recall():
    pool = Pool(clumps(300))
    graph = shared_graph(pool)
    graph.neighbours[:] = -1
    assert graph_recall(pool) == 0.0


@given(st.integers(0, 10**6), st.integers(1, 199))
def test_it_grows_as_if_it_had_been_large_at_once(seed, first):
    """Within a number of landmarks, over a doubling, and from a pool that was small."""
    # Whole numbers, so that no difference is rounded wherever a small pool has its origin.
    points = clumps(200, seed).round()
    pool = Pool(points[:first])
    graph = NeighbourGraph(6).refresh(pool)
    pool.extend(points[first:])
    graph.refresh(pool)
    expected = NeighbourGraph(6).refresh(Pool(points))
    assert np.array_equal(graph.neighbours, expected.neighbours)
    assert np.array_equal(graph.distances, expected.distances)


def test_an_erased_landmark_leaves_its_cell_to_nobody():
    pool = Pool(clumps(300))
    shared_graph(pool)
    pool.withdraw(np.arange(0, 300, 2))
    assert not (shared_graph(pool).neighbours % 2 == 0).any()
    pool.extend(clumps(20, 1))
    graph = shared_graph(pool)
    assert (graph.neighbours[300:] >= 0).any(axis=1).all()
    assert not np.isin(graph.neighbours, np.arange(0, 300, 2)).any()


def test_rules_that_need_neighbours_serve_large_pools():
    points = clumps(120)
    names = Auto(explore=0).begin(Pool(points)).names_
    assert {"knn-posterior", "spread-posterior"} <= set(names)
    for rule in (KnnPosterior, SpreadPosterior):
        check_learner(lambda truth, rule=rule: rule(explore=10), rounds=1)
