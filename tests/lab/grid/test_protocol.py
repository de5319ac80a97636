"""The paper's protocol on Letters, at reduced counts (``make deep`` runs the full ones)."""

import numpy as np
import pytest

from activecover.lab.datasets import load_letters
from activecover.lab.grid import METHODS, paper_auc, prepare_trial, run_trial
from activecover.learners import LEARNERS
from activecover.metrics import auc


@pytest.fixture(scope="module")
def trials():
    letters = load_letters()
    return [prepare_trial(letters, "A", run) for run in range(4)]


def test_the_papers_figures_are_complete():
    tasks = {(dataset, label) for dataset, label, _ in paper_auc()}
    assert len(tasks) == 106
    assert {method for _, _, method in paper_auc()} == set(METHODS)
    assert paper_auc()["celeba", "Bald", "A-RC"] is None
    assert all(LEARNERS[method].code == method for method in METHODS)


def test_a_trial_is_the_same_for_every_method_and_differs_by_run(trials):
    again = prepare_trial(load_letters(), "B", 1)
    assert again.sample.tolist() == trials[1].sample.tolist()
    assert (again.pool.vectors == trials[1].pool.vectors).all()
    assert trials[0].sample.tolist() != trials[1].sample.tolist()
    counts = np.unique(trials[0].dataset.labels[trials[0].sample], return_counts=True)[1]
    assert len(counts) == 26
    assert set(counts.tolist()) <= {3, 4}


def test_batches_are_of_fixed_size(trials):
    trace = run_trial(trials[0], "H", "EC")
    assert trace.batches == 20
    assert set(np.bincount(trace.batch)[1:-1].tolist()) == {995}
    assert sorted(trace.rows[trace.batch == 0].tolist()) == sorted(trials[0].sample.tolist())


@pytest.mark.parametrize("label", "AHKS")
def test_close_to_the_paper_and_explore_commit_above_offline(trials, label):
    mean = {m: np.mean([auc(run_trial(trial, label, m)) for trial in trials]) for m in ("O", "EC")}
    for method, value in mean.items():
        # Four runs: single labels scatter by about two points around the mean of a hundred.
        assert value == pytest.approx(paper_auc()["letters", label, method], abs=6)
    assert mean["EC"] > mean["O"] + 2


@pytest.mark.parametrize("method", ["A-RS", "O-IF"])
def test_explore_commit_beats_a_baseline(trials, method):
    assert auc(run_trial(trials[0], "A", "EC")) > auc(run_trial(trials[0], "A", method)) + 1
