"""Simulation: limits, seeds, batches."""

import numpy as np
import pytest

from activecover import ExploreCommit, InputError, Pool, simulate
from activecover.metrics import auc
from activecover.simulate import batch_size, simulate_one


@pytest.fixture(scope="module")
def blobs():
    random = np.random.default_rng(0)
    points = np.concatenate([random.normal(0, 1, (1800, 5)), random.normal(4, 1, (200, 5))])
    return Pool(points), np.arange(2000) >= 1800


def test_passive_is_random(blobs):
    """At 20 batches of a twentieth each the expected curve is 5, 10, …, 100: a mean of 52.5."""
    pool, positive = blobs
    score = simulate(pool, positive, "passive", runs=150).score
    assert score.mean == pytest.approx(52.5, abs=0.5)
    assert score.band < 1


def test_optimal_needs_as_many_queries_as_there_are_positives(blobs):
    pool, positive = blobs
    summary = simulate(pool, positive, "optimal", batch=1).summary()
    assert summary["labels_100%"] == 200
    assert summary["excess_query_cost"] == 0
    assert summary["precision"] == 1.0


def test_explore_commit_beats_offline_beats_passive(blobs):
    pool, positive = blobs
    aucs = [simulate(pool, positive, name, batch="1%", explore=50).score.mean for name in ("EC", "O", "passive")]
    assert aucs == sorted(aucs, reverse=True)


def test_runs_differ_and_repeat(blobs):
    pool, positive = blobs
    first = simulate(pool, positive, "EC", runs=3, seed=5)
    again = simulate(pool, positive, "EC", runs=3, seed=5)
    assert [t.rows.tolist() for t in first.traces] == [t.rows.tolist() for t in again.traces]
    assert first.traces[0].rows.tolist() != first.traces[1].rows.tolist()
    assert simulate(pool, positive, "EC", seed=6).traces[0].rows.tolist() == first.traces[1].rows.tolist()


def test_batches_know_only_what_was_told_before(blobs):
    pool, positive = blobs
    trace = simulate_one(pool, positive, ExploreCommit(explore=20), batch=50, seed=0)
    assert (np.bincount(trace.batch)[1:-1] == 50).all()
    assert trace.batches == -(-(2000 - (trace.batch == 0).sum()) // 50)


def test_limits(blobs):
    pool, positive = blobs
    assert len(simulate(pool, positive, "EC", budget=130, batch=50).traces[0]) == 130
    trace = simulate(pool, positive, "EC", batches=2, batch=30, explore=100).traces[0]
    assert len(trace) == 160
    assert trace.batches == 2
    whole = simulate(pool, positive, "EC", to_the_end=True, batch="10%").traces[0]
    assert sorted(whole.rows.tolist()) == list(range(2000))
    short = simulate(pool, positive, "EC", batch="10%").traces[0]
    assert len(short) < 2000
    assert auc(short) == auc(whole)


def test_stratified_samples_hold_their_share(blobs):
    pool, positive = blobs
    for trace in simulate(pool, positive, "EC", runs=5, explore=100, strata=positive).traces:
        assert trace.positive[trace.batch == 0].sum() == 10


@pytest.mark.parametrize("positives", [1, 2000])
def test_one_positive_and_all_positive(blobs, positives):
    pool, _ = blobs
    result = simulate(pool, np.arange(2000) < positives, "EC", explore=10)
    assert result.traces[0].found == positives
    assert np.isfinite(result.score.mean)


@pytest.mark.parametrize("learner", ["active-linear-svm", "active-rbf-svm", "offline-rbf-svm"])
def test_all_positive_leaves_nothing_to_tune_on_but_runs(learner):
    pool = Pool(np.random.default_rng(0).normal(size=(150, 2)))
    assert simulate(pool, np.ones(150, bool), learner, explore=20).traces[0].found == 150


def test_exploring_more_than_the_pool_labels_it_all():
    result = simulate(Pool(np.eye(8)), np.arange(8) < 2, "EC", explore=100)
    assert len(result.traces[0]) == 8
    assert result.score.mean == 100


@pytest.mark.parametrize(
    ("batch", "size"), [("5%", 995), ("1%", 199), (7, 7), ("7", 7), ("0.001%", 1), ("100%", 19900)]
)
def test_batch_sizes(batch, size):
    assert batch_size(batch, 19_900) == size


@pytest.mark.parametrize(
    "batch", ["", "x", "0", "-1", "0%", "-5%", "101%", "nan%", "inf%", "1e400", "5 percent", 0, -3, 2.5]
)
def test_bad_batches(batch):
    with pytest.raises(InputError, match="batch"):
        batch_size(batch, 100)


def test_bad_labels(blobs):
    pool, positive = blobs
    for labels, message in [
        (np.zeros(2000, bool), "nothing to find"),
        (positive[:-1], "1999 labels"),
        (np.full(2000, 3), "neither booleans nor 0 and 1"),
        (np.array(["a"] * 2000), "neither booleans nor 0 and 1"),
    ]:
        with pytest.raises(InputError, match=message):
            simulate(pool, labels)
    with pytest.raises(InputError, match="runs"):
        simulate(pool, positive, runs=0)
