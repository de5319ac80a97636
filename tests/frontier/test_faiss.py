"""The approximate frontier: what it shows is exact, what it misses is measured, and it reaches every row."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from activecover import metrics
from activecover.errors import InputError, MissingExtraError
from activecover.frontier import ExactFrontier, FaissFrontier, choose_frontier, compare_orders, measure_recall
from activecover.frontier import _faiss as module
from activecover.lab.datasets import load_dataset
from activecover.lab.grid import prepare_trial
from activecover.learners import ExploreCommit, Offline
from activecover.pool import Pool
from activecover.simulate import simulate_one
from activecover.testing import check_frontier, check_learner

try:
    import faiss
except ModuleNotFoundError:
    pytest.skip("FAISS is not installed: pip install 'activecover[faiss]'", allow_module_level=True)

STRUCTURES = ("hnsw", "ivf")


def clusters(rows: int, dimensions: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    centres = 2 * random.normal(size=(10, dimensions))
    classes = random.integers(0, 10, rows)
    return (centres[classes] + random.normal(size=(rows, dimensions))).astype(np.float32), classes == 0


@pytest.fixture(scope="module")
def pool() -> Pool:
    return Pool(clusters(3000)[0])


@pytest.fixture(scope="module")
def index(pool):
    """The pool's graph, to be built once."""
    return FaissFrontier(pool)._index.index


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("reach", [1, 5, 1024])
def test_contract(structure, reach):
    check_frontier(lambda pool: FaissFrontier(pool, structure, reach=reach), rounds=6)


@pytest.mark.parametrize("learner", [ExploreCommit, Offline])
def test_learners_keep_their_contract(learner):
    check_learner(lambda truth: learner(explore=10, frontier="faiss-hnsw"), dimensions=5)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_where_the_index_names_all_rows_the_order_is_the_exact_one(structure):
    points = np.round(np.random.default_rng(0).normal(size=(30, 3)))
    check = Pool(points)
    both = FaissFrontier(check, structure), ExactFrontier(check)
    for frontier in both:
        frontier.add([3, 4], check.take([3, 4]))
        frontier.retire([3, 4])
    ours, exact = (frontier.nearest(50) for frontier in both)
    assert ours.rows.tolist() == exact.rows.tolist()
    assert ours.distances.tolist() == exact.distances.tolist()
    assert ours.sources.tolist() == exact.sources.tolist()


@pytest.mark.parametrize("reach", [8, 64, 1024])
def test_distances_are_exact_and_every_row_is_reached(pool, reach):
    frontier = FaissFrontier(pool, reach=reach)
    keys = np.arange(0, 3000, 300)
    frontier.add(keys, pool.take(keys))
    frontier.retire(keys)
    found = frontier.nearest(5000)
    assert sorted(found.rows.tolist()) == sorted(set(range(3000)) - set(keys.tolist()))
    wide = pool.vectors.astype(np.float64)
    expected = np.sqrt(((wide[found.rows] - wide[found.sources]) ** 2).sum(axis=1))
    assert (found.distances == expected).all()


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from([4, 64, 1024]))
@example(seed=4294967295, reach=64)
def test_the_answer_depends_on_the_sets_alone(pool, index, seed, reach):
    """Whatever was asked, closed, opened, added and taken back before leaves no mark."""
    random = np.random.default_rng(seed)
    keys, closed = random.permutation(3000)[:12], random.permutation(3000)[:800]
    plain = FaissFrontier(pool, index=index, reach=reach)
    plain.retire(closed)
    plain.add(keys, pool.take(keys))
    other = FaissFrontier(pool, index=index, reach=reach)
    more = random.permutation(np.setdiff1d(np.arange(3000), keys))[:5]
    other.add(more, pool.take(more))
    other.nearest(700)
    other.add(keys[6:], pool.take(keys[6:]))
    other.retire(closed[400:])
    other.retire(more)
    other.nearest(5, without=keys)
    other.add(keys[:6], pool.take(keys[:6]))
    other.nearest(900)
    other.remove(more)
    other.retire(closed[:400])
    other.restore(np.setdiff1d(more, closed))
    other.nearest(900, without=random.permutation(3000)[:300])
    for k in (1, 30, 1500):
        held = random.integers(0, 3000, 20)
        a, b = plain.nearest(k, without=held), other.nearest(k, without=held)
        assert a.rows.tolist() == b.rows.tolist()
        assert a.sources.tolist() == b.sources.tolist()
        plain.nearest(200)


def test_a_batch_is_the_steps_one_by_one(pool, index):
    frontier = FaissFrontier(pool, index=index, reach=64)
    keys = [5, 700, 1500]
    frontier.add(keys, pool.take(keys))
    frontier.retire(keys)
    together = frontier.nearest(300).rows.tolist()
    single = []
    for _ in range(300):
        single += frontier.nearest(1).rows.tolist()
        frontier.retire(single[-1:])
    assert single == together


def test_a_removed_positive_leaves_its_rows_to_others(pool):
    frontier = FaissFrontier(pool)
    frontier.add([10, 20], pool.take([10, 20]))
    frontier.remove([10])
    assert set(frontier.nearest(2999).sources.tolist()) == {20}
    with pytest.raises(InputError, match="not known"):
        frontier.remove([10])
    with pytest.raises(InputError, match="only once"):
        frontier.add([20], pool.take([20]))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_added_rows_are_found_and_erased_ones_are_not(structure):
    points = clusters(400, 6)[0]
    grown = Pool(points).without([7])
    frontier = FaissFrontier(grown, structure)
    frontier.add([0, 1], grown.take([0, 1]))
    new = grown.extend(points[:3] + np.float32(1e-3))
    frontier.extend()
    assert new[0] in frontier.nearest(4).rows
    grown.withdraw([int(new[0]), 1])
    assert frontier.positives == 1
    found = frontier.nearest(500)
    assert len(found.rows) == 403 - 3
    assert not {7, 1, int(new[0])} & set(found.rows.tolist())
    assert set(found.sources.tolist()) == {0}
    # Rows that come after an erasure, one of them erased at once, have the right numbers.
    later = grown.extend(points[:3] + np.float32(1e-4))
    grown.withdraw(later[1:2])
    frontier.extend()
    assert frontier.nearest(2, without=[0]).rows[0] == later[0]
    frontier.add([-1], points[2:3])
    assert frontier.nearest(3, without=[0, 2]).rows.tolist()[:2] == [later[0], later[2]]
    assert not {7, 1, int(new[0]), int(later[1])} & set(frontier.nearest(500).rows.tolist())


def test_a_pool_of_which_everything_is_erased():
    gone = Pool(np.ones((3, 2))).without([0, 1, 2])
    for structure in STRUCTURES:
        frontier = FaissFrontier(gone, structure)
        frontier.add(-1 - np.arange(12), np.ones((12, 2), np.float32))
        assert len(frontier.nearest(3).rows) == 0
        frontier.remove([-3])
        assert frontier.positives == 11


def test_an_erased_row_is_overwritten_in_the_index():
    points = clusters(300, 6)[0]
    erased = Pool(points)
    frontier = FaissFrontier(erased)
    erased.withdraw([17])
    frontier.nearest(1)
    index = frontier._index.index
    stored = faiss.vector_to_array(faiss.downcast_index(index.storage).codes).view(np.float32).reshape(300, 6)
    assert not (stored == points[17]).all(axis=1).any()


def test_closed_rows_are_not_read(pool, index, monkeypatch):
    """Their vectors may be gone by then."""
    read = set()
    settle = module.kernel.settle_rows

    def watched(vectors, rows, *others):
        read.update(rows.ravel().tolist())
        settle(vectors, rows, *others)

    monkeypatch.setattr(module.kernel, "settle_rows", watched)
    frontier = FaissFrontier(pool, index=index)
    closed = np.arange(0, 3000, 2)
    frontier.retire(closed)
    frontier.add([1, 5], pool.take([1, 5]))
    frontier.nearest(1000)
    assert len(read) > 100
    assert not read & set(closed.tolist())


def test_the_same_pool_gives_the_same_index(pool):
    runs = []
    for _ in range(2):
        frontier = FaissFrontier(pool)
        frontier.add([5], pool.take([5]))
        runs.append(frontier.nearest(500).rows.tolist())
    assert runs[0] == runs[1]


def test_several_threads_may_ask_at_once(pool):
    frontier = FaissFrontier(pool)
    frontier.add([5], pool.take([5]))
    expected = FaissFrontier(pool, index=frontier._index.index)
    expected.add([5], pool.take([5]))
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(frontier.nearest, [800, 50, 2000, 1]))
    assert [answer.rows.tolist() for answer in answers] == [
        expected.nearest(k).rows.tolist() for k in (800, 50, 2000, 1)
    ]


# -- an index that exists already --------------------------------------------------------------------


def flat(points: np.ndarray) -> "faiss.Index":
    index = faiss.IndexFlatL2(points.shape[1])
    index.add(np.ascontiguousarray(points, np.float32))
    return index


def test_an_index_of_ones_own_as_an_object_and_as_a_file(pool, tmp_path):
    raw = pool.vectors + np.float32(0)
    index = flat(raw)
    faiss.write_index(index, str(tmp_path / "mine.faiss"))
    exact = ExactFrontier(pool)
    exact.add([9], pool.take([9]))
    for given_index in (index, tmp_path / "mine.faiss", str(tmp_path / "mine.faiss")):
        frontier = FaissFrontier(pool, index=given_index)
        frontier.add([9], pool.take([9]))
        assert frontier.nearest(500).rows.tolist() == exact.nearest(500).rows.tolist()


def test_an_index_of_values_that_the_pool_has_centred():
    points = clusters(500, 4)[0] + np.float32(1000)
    moved = Pool(points)
    assert moved.origin.any()
    frontier = FaissFrontier(moved, index=flat(points))
    exact = ExactFrontier(moved)
    for one in (frontier, exact):
        one.add([3], moved.take([3]))
    assert compare_orders(frontier.nearest(50).rows, exact.nearest(50).rows).overlap > 0.99


def test_an_index_that_does_not_fit(pool, tmp_path):
    points = np.asarray(pool.vectors)
    with pytest.raises(InputError, match="2999 vectors of 12 dimensions, the pool 3000 of 12"):
        FaissFrontier(pool, index=flat(points[:-1]))
    with pytest.raises(InputError, match="3000 vectors of 11 dimensions"):
        FaissFrontier(pool, index=flat(points[:, :-1]))
    with pytest.raises(InputError, match="ids are not the pool's row numbers"):
        FaissFrontier(pool, index=flat(points[::-1]))
    named = faiss.IndexIDMap(faiss.IndexFlatL2(12))
    named.add_with_ids(points, np.arange(3000) + 10**9)
    with pytest.raises(InputError, match="ids are not the pool's row numbers"):
        FaissFrontier(pool, index=named)
    product = faiss.IndexFlatIP(12)
    product.add(points)
    with pytest.raises(InputError, match="does not use the pool"):
        FaissFrontier(pool, index=product)
    (tmp_path / "broken").write_bytes(b"no index")
    with pytest.raises(InputError, match="broken: cannot be read as a FAISS index"):
        FaissFrontier(pool, index=tmp_path / "broken")
    with pytest.raises(InputError, match="no such file"):
        FaissFrontier(pool, index=tmp_path / "missing")
    with pytest.raises(InputError, match="give a FAISS index"):
        FaissFrontier(pool, index=7)
    with pytest.raises(InputError, match="unknown structure"):
        FaissFrontier(pool, "lsh")


def test_a_missing_extra_is_one_line(pool, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'activecover\[faiss\]'"):
        choose_frontier(pool, "faiss-hnsw")


def test_it_is_never_chosen_on_its_own():
    for dimensions in (2, 12, 300):
        assert choose_frontier(Pool(np.eye(dimensions))).exact


# -- how near it comes -------------------------------------------------------------------------------


def test_measured_recall_sees_a_poor_index(pool, index, monkeypatch):
    good = measure_recall(pool, FaissFrontier(pool, index=index), ExactFrontier(pool), sample=50)
    assert good > 0.97
    poor = faiss.IndexIVFFlat(faiss.IndexFlatL2(12), 12, 200)
    poor.cp.min_points_per_centroid = 1
    poor.train(np.asarray(pool.vectors))
    poor.add(np.asarray(pool.vectors))
    monkeypatch.setattr("activecover.frontier._faiss_index._LEAST_CELLS", 1)
    bad = measure_recall(pool, FaissFrontier(pool, index=poor, reach=10), ExactFrontier(pool), sample=50)
    assert bad < 0.9
    frontier = ExactFrontier(pool)
    frontier.add([1], pool.take([1]))
    with pytest.raises(InputError, match="without positives"):
        measure_recall(pool, frontier, ExactFrontier(pool))


def aucs(pool: Pool, positive: np.ndarray, sample: list[int], percent: float = 0.05) -> tuple[float, float]:
    batch = round(percent * (len(pool) - len(sample)))
    exact, ours = (
        metrics.auc(simulate_one(pool, positive, ExploreCommit(sample, name), batch=batch))
        for name in ("exact", "faiss-hnsw")
    )
    return exact, ours


def test_the_recall_curve_on_clusters():
    points, positive = clusters(4000, seed=3)
    exact, ours = aucs(Pool(points), positive, list(range(60)))
    assert ours >= 0.99 * exact


def mnist_trial(folder: Path, rows: int | None, label: str):
    data = load_dataset("mnist", folder)
    trial = prepare_trial(data, label, 0)
    if rows is None:
        return trial.pool, data.positive(label), trial.sample.tolist()
    others = np.setdiff1d(np.random.default_rng(0).permutation(len(data))[:rows], trial.sample)
    part = np.concatenate([trial.sample, others])
    return Pool(trial.pool.vectors[part]), data.positive(label)[part], list(range(len(trial.sample)))


def test_the_recall_curve_on_mnist(data_dir):
    exact, ours = aucs(*mnist_trial(data_dir, 4000, "3"))
    assert ours >= 0.99 * exact


@pytest.mark.deep
@pytest.mark.parametrize("label", ["3", "8"])
def test_the_recall_curve_on_all_of_mnist(data_dir, label):
    exact, ours = aucs(*mnist_trial(data_dir, None, label))
    assert ours >= 0.99 * exact
