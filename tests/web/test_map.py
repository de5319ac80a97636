"""The pool in two dimensions: who is near to whom stays so, by either way."""

import numpy as np
import pytest

from activecover import Pool
from activecover.web import _map
from activecover.web._map import PoolMap


@pytest.fixture(params=["dense", "sparse", "bits"])
def clusters(request):
    """Three clusters in many dimensions, and which row belongs to which."""
    random = np.random.default_rng(0)
    of = random.integers(0, 3, 300)
    if request.param == "dense":
        return Pool(5 * random.normal(size=(3, 20))[of] + random.normal(size=(300, 20))), of
    likely = 0.05 + 0.6 * random.integers(0, 2, (3, 64))
    bits = random.random((300, 64)) < likely[of]
    if request.param == "bits":
        return Pool(bits, metric="jaccard"), of
    sparse = pytest.importorskip("scipy.sparse")
    return Pool(sparse.csr_matrix(bits.astype(np.float32)), metric="cosine"), of


@pytest.mark.parametrize("way", ["pca", "umap"])
def test_neighbours_on_the_map_are_of_one_cluster(clusters, way, monkeypatch):
    if way == "umap":
        pytest.importorskip("umap", reason="umap-learn is not installed")
    # Most rows are not among those that the map was made from, nor among those that are drawn.
    monkeypatch.setattr(_map, "_FITTED", 120)
    monkeypatch.setattr(_map, "MOST_POINTS", 150)
    pool, of = clusters
    drawn = PoolMap(pool, way)
    places = drawn.place(range(300))
    assert len(drawn.rows) == 150
    assert np.array_equal(drawn.place(drawn.rows), drawn.points)
    far = ((places[:, None] - places[None]) ** 2).sum(axis=2)
    np.fill_diagonal(far, np.inf)
    assert (of[far.argmin(axis=1)] == of).mean() > 0.95
    assert np.array_equal(PoolMap(pool, way).points, drawn.points)


def test_a_pool_that_grows_is_placed_on_the_map_that_is_there():
    pool = Pool(np.random.default_rng(1).normal(size=(40, 4)))
    drawn = PoolMap(pool)
    before = drawn.place([3])
    pool.extend(np.asarray(pool.vectors[[3]]))
    assert np.allclose(drawn.place([40]), before)


def test_few_rows_have_no_neighbourhoods_to_keep():
    pool = Pool([[0.0, 1.0], [2.0, 0.0], [4.0, 1.0]])
    assert np.array_equal(PoolMap(pool, "umap").points, PoolMap(pool).points)
