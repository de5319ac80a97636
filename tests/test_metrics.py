"""Figures from traces, against numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from activecover import InputError, Pool, metrics
from activecover.learners import ExploreCommit, Offline
from activecover.metrics import Score
from activecover.simulate import simulate_one
from activecover.trace import Trace


def trace(positive, batch=None, *, total=None, rows=10, batches=None, unavailable=None):
    positive = np.array(positive, bool)
    batch = np.zeros(len(positive), int) if batch is None else np.array(batch)
    total = int(positive.sum()) if total is None else total
    return Trace(np.arange(len(positive)), positive, batch, batch == 0, rows, total, batches, unavailable=unavailable)


def test_the_paper_curve_leaves_the_first_sample_out():
    made = trace([1, 0, 1, 1, 0, 1], [0, 0, 1, 1, 2, 2], batches=2)
    assert metrics.recall_by_batch(made).tolist() == pytest.approx([200 / 3, 100])
    assert metrics.auc(made) == pytest.approx(250 / 3)


def test_a_run_on_a_budget_stays_where_it_was():
    made = trace([1, 1, 0], [0, 1, 2], total=4, batches=4)
    assert metrics.recall_by_batch(made).tolist() == pytest.approx([100 / 3] * 4)


def test_everything_in_the_sample_counts_as_found():
    assert metrics.recall_by_batch(trace([1, 1], [0, 0], batches=3)).tolist() == [100, 100, 100]


def test_excess_query_cost_of_a_worked_example():
    """Positives at 0, 1, 2, 4 on a line, negatives at 2.6, -1.2 and 10; the support is [0, 4].

    From 0: 1 (d 1), then 2 (d 1), then 2.6 (d 0.6, negative), then -1.2 (d 1.2), then 4 (d 2): six
    queries. The support holds the four positives and 2.6: Q_opt = 5, so C = 1. Offline from 0 asks 1,
    -1.2, 2, 2.6, 4: six as well; without knowing of 2.6 in the support Q_opt is 4, and C = 2.
    """
    pool = Pool(np.array([[0.0], [1.0], [2.0], [4.0], [2.6], [-1.2], [10.0]]))
    positive = np.array([1, 1, 1, 1, 0, 0, 0], bool)
    committed = simulate_one(pool, positive, ExploreCommit(explore=[0]))
    assert committed.rows.tolist() == [0, 1, 2, 4, 5, 3]
    assert metrics.query_cost(committed) == 6
    assert metrics.excess_query_cost(committed, optimal=5) == 1
    offline = simulate_one(pool, positive, Offline(explore=[0]))
    assert offline.rows.tolist() == [0, 1, 5, 2, 4, 3]
    assert metrics.excess_query_cost(offline) == 2


def test_excess_cost_can_be_negative_and_is_never_clipped():
    assert metrics.excess_query_cost(trace([1, 1]), optimal=7) == -5
    assert metrics.excess_query_cost(trace([1, 0], total=2)) is None


@given(st.lists(st.booleans(), min_size=1, max_size=60).filter(any), st.floats(0.01, 1.0))
def test_labels_for_a_fraction_is_the_first_place_where_it_is_reached(found, fraction):
    made = trace(found)
    labels = metrics.labels_for(made, fraction)
    share = np.cumsum(found) / sum(found)
    assert share[labels - 1] >= fraction - 1e-9
    assert labels == 1 or share[labels - 2] < fraction


def test_hundred_percent_of_ninety_five_hundredths_is_not_one_too_many():
    assert metrics.labels_for(trace([1] * 100), 0.95) == 95


def test_precision_and_work_saved():
    made = trace([1] * 19 + [0] * 10 + [1], rows=100)
    assert metrics.precision(made) == pytest.approx(20 / 30)
    assert metrics.work_saved(made) == pytest.approx((100 - 19) / 100 - 0.05)
    assert metrics.precision(trace([])) == 0


def test_the_band_is_the_papers():
    curves = np.array([[10.0, 50.0], [20.0, 70.0], [30.0, 60.0]])
    score = metrics.score_of_curves(curves)
    assert score.mean == pytest.approx(40)
    assert score.band == pytest.approx(1.96 * 10 / np.sqrt(3))
    assert np.isnan(metrics.score_of_curves(curves[:1]).band)


def test_runs_without_a_result_do_not_count():
    good, bad = trace([1, 1], [0, 1], batches=1), trace([1, 0], [0, 1], batches=1, unavailable="why not")
    assert metrics.score([good, bad]).runs == 1
    assert metrics.score([bad]).unavailable == "why not"
    assert not metrics.score([bad]).available


def test_ties_are_overlapping_bands():
    nan = float("nan")
    scores = {"best": Score(90, 1, 5), "tied": Score(88.1, 1, 5), "worse": Score(87.9, 1, 5), "NA": Score(nan, nan, 0)}
    assert metrics.ties(scores) == {"best", "tied"}
    assert metrics.ties({}) == set()
    assert metrics.ties({"one run": Score(90, nan, 1), "other": Score(89, nan, 1)}) == {"one run"}


def test_a_live_trace_has_no_recall():
    live = Trace(np.arange(2), np.ones(2, bool), np.zeros(2, int), np.ones(2, bool), 10)
    for figure in (metrics.auc, metrics.query_cost, metrics.work_saved):
        with pytest.raises(InputError):
            figure(live)
