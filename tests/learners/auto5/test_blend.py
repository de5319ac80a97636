"""Three opinions, added up: what each is, and that neither order nor undo nor growth leaves a mark in sparse pools."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from activecover.learners import Auto, Blend, Labels
from activecover.learners import _topics as topics
from activecover.learners._auto5 import _auto as auto
from activecover.learners._auto5 import _blend as blend
from activecover.learners._auto5._blend import NEAREST, SHRINKAGE, TOPIC_WEIGHT, even
from activecover.learners._auto5._classifier import BalancedRidge
from activecover.learners._auto5._rocchio import Rocchio
from activecover.learners._topics import shared_topics
from activecover.pool import Pool
from activecover.simulate import simulate_one

SEEDS = st.integers(0, 10**6)
LEARNERS = [Blend, Auto]


def words(seed, rows=80, columns=30):
    """Rows of a few words, the first quarter of them about something of their own; and the truth."""
    random = np.random.default_rng(seed)
    counts = (random.random((rows, columns)) < 0.15) * random.integers(1, 4, (rows, columns))
    truth = np.arange(rows) < rows // 4
    counts[truth, :5] += random.random((int(truth.sum()), 5)) < 0.6
    counts[:, -1] += counts.sum(axis=1) == 0
    order = random.permutation(rows)
    return sparse.csr_array(counts[order].astype(float)), truth[order]


def pools(seed):
    rows, truth = words(seed)
    yield Pool(rows, metric="cosine"), truth
    yield Pool((rows.toarray() > 0).astype(int), metric="jaccard"), truth


def labels(truth, seed, count=24):
    rows = np.random.default_rng(seed).permutation(len(truth))[:count]
    rows = np.unique(np.concatenate([[np.flatnonzero(truth)[0], np.flatnonzero(~truth)[0]], rows]))
    return Labels.of(np.arange(len(rows)), rows, truth[rows], np.arange(len(rows)) < 4)


@given(SEEDS)
def test_the_sum_of_its_opinions(seed):
    vectors, truth = words(seed)
    pool, told = Pool(vectors, metric="cosine"), labels(truth, seed)
    learner, mean = Blend(explore=0).begin(pool), Rocchio(explore=0).begin(pool)
    learner.tell(told)
    mean.tell(told)
    rows = np.setdiff1d(np.arange(len(pool)), told.rows)
    unit = pool.vectors.toarray().astype(float)
    nearest = np.sort(unit[rows] @ unit[told.rows[told.positive]].T, axis=1)[:, -NEAREST:].mean(axis=1)
    about, models = shared_topics(pool), []
    for depth in about.depths:
        model = BalancedRidge(SHRINKAGE).fit(about.of(told.rows, depth), told.positive.astype(int))
        models.append(even(about.of(rows, depth) @ model.weights_))
    score = np.full(len(pool), -np.inf)
    score[rows] = even(mean._scores(rows)) + even(nearest) + TOPIC_WEIGHT * np.mean(models, axis=0)
    found = learner.propose(len(rows)).rows
    assert (np.diff(score[found]) < 1e-4).all()


def test_topics_are_shrunk_less_when_there_are_many_labels(monkeypatch):
    vectors, truth = words(1)
    pool, told = Pool(vectors, metric="cosine"), labels(truth, 1)
    rows = np.setdiff1d(np.arange(len(pool)), told.rows)
    learner = Blend(explore=0).begin(pool)
    learner.tell(told)
    monkeypatch.setattr(blend, "FEW_LABELS", len(told) / 10)
    loose = learner._modelled(rows)
    monkeypatch.setattr(blend, "FEW_LABELS", len(told))
    assert not np.allclose(loose, learner._modelled(rows))
    monkeypatch.setattr(blend, "SHRINKAGE", SHRINKAGE / 10)
    np.testing.assert_allclose(loose, learner._modelled(rows))


def test_in_a_dry_spell_what_was_expected_decides(monkeypatch):
    vectors, truth = words(2)
    for dryness, decides in ((auto.SPARSE_DRYNESS, "blend"), (0.0, "rocchio")):
        monkeypatch.setattr(auto, "SPARSE_DRYNESS", dryness)
        learner = Auto(explore=0).begin(Pool(vectors, metric="cosine"), seed=1)
        learner.tell(labels(truth, 2))
        # A rule that shared in many easy finds, and then nothing for a hundred questions.
        credits = np.zeros((500, len(learner.names_)), bool)
        credits[:400, learner.names_.index("rocchio")] = True
        learner._history.add(credits, np.arange(500) < 400)
        learner._asked += 500
        assert max(learner.yields(), key=learner.yields().__getitem__) == decides


@pytest.mark.parametrize("learner", LEARNERS)
def test_neither_order_nor_batches_nor_undo_leave_a_mark(learner):
    for pool, truth in pools(3):
        told = labels(truth, 3)
        whole, pieces, undone = (learner(explore=0).begin(pool, seed=1) for _ in range(3))
        whole.tell(told)
        for place in np.random.default_rng(4).permutation(len(told)):
            pieces.tell(told.take([place]))
            pieces.propose(1)
        undone.tell(told)
        more = undone.propose(12).rows
        undone.tell(Labels.of(len(told) + np.arange(12), more, truth[more], False))
        undone.propose(1)
        undone.untell(more)
        for other in (pieces, undone):
            assert other.propose(20).rows.tolist() == whole.propose(20).rows.tolist()


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_pool_that_has_grown_is_as_one_that_was_large_at_once(learner):
    vectors, truth = words(5)
    small, large = Pool(vectors[:50], metric="cosine"), Pool(vectors, metric="cosine")
    told = labels(truth[:50], 5)
    grown, whole = learner(explore=0).begin(small, seed=1), learner(explore=0).begin(large, seed=1)
    grown.tell(told)
    grown.propose(3)
    small.extend(vectors[50:])
    grown.extend()
    whole.tell(told)
    assert grown.propose(20).rows.tolist() == whole.propose(20).rows.tolist()


@pytest.mark.parametrize("learner", LEARNERS)
def test_without_negatives_and_in_tiny_pools(learner):
    vectors, truth = words(6)
    for rows in (1, 2, 5, len(truth)):
        pool = Pool(vectors[:rows], metric="cosine")
        started = learner(explore=0).begin(pool)
        started.tell(Labels.of([0], [0], [True], True))
        assert sorted(started.propose(rows).rows.tolist()) == list(range(1, rows))


def test_an_erased_positive_no_longer_shows_the_way():
    vectors, truth = words(7)
    told = labels(truth, 7)
    pool = Pool(vectors, metric="cosine")
    shared_topics(pool)
    gone = int(told.rows[told.positive][-1])
    after = Blend(explore=0).begin(pool)
    after.tell(told)
    after.propose(5)
    pool.withdraw([gone])
    without = Blend(explore=0).begin(pool)
    without.tell(told.take(told.rows != gone))
    assert after.propose(20).rows.tolist() == without.propose(20).rows.tolist()
    assert not shared_topics(pool).of(np.array([gone]), 2).any()


def test_a_copy_of_a_pool_wipes_topics_of_its_own():
    pool = Pool(words(8)[0], metric="cosine")
    before = shared_topics(pool).of(np.arange(80), 5)
    copy = pool.without([3])
    assert not shared_topics(copy).of(np.array([3]), 5).any()
    assert np.array_equal(shared_topics(pool).of(np.arange(80), 5), before)


def test_topics_are_learnt_from_a_sample_and_from_many_rows_alike(monkeypatch):
    vectors, _ = words(9, rows=300, columns=120)
    exact = topics.Topics(Pool(vectors, metric="cosine")).of(np.arange(300), 20)
    monkeypatch.setattr(topics, "DEPTHS", (10, 20))
    found = topics.Topics(Pool(vectors, metric="cosine")).of(np.arange(300), 20)
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, atol=1e-3)
    monkeypatch.setattr(topics, "MOST_FITTED", 100)
    assert len(topics.Topics(Pool(vectors, metric="cosine"))) == 300


def test_pools_too_large_for_topics_do_without(monkeypatch):
    monkeypatch.setattr("activecover.graph._graph.EXACT_ROWS", 3)
    vectors, truth = words(10)
    pool = Pool(vectors, metric="cosine")
    assert shared_topics(pool) is None
    assert simulate_one(pool, truth, Blend(explore=10), batch=5).found == truth.sum()
