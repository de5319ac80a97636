"""The committed results hold what they are there to show."""

from pathlib import Path

import numpy as np
import pytest

from activecover.lab.grid import Grid, compare, paper_auc, summarise
from activecover.metrics import Score

CELLS = Path(__file__).parents[3] / "results" / "cells.csv.gz"


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    with Grid(tmp_path_factory.mktemp("grid"), create=True) as grid:
        assert grid.include(CELLS) > 5000
        return summarise(grid.results())


def of(scores: dict, dataset: str, method: str) -> dict[str, Score]:
    return {label: by[method] for (name, label), by in scores.items() if name == dataset and method in by}


@pytest.mark.parametrize("method", ["O", "EC"])
def test_letters_by_a_hundred_runs(scores, method):
    found = of(scores, "letters", method)
    assert len(found) == 26
    assert all(score.runs == 100 for score in found.values())
    gaps = [score.mean - paper_auc()["letters", label, method] for label, score in found.items()]
    assert abs(np.mean(gaps)) <= 1
    assert max(abs(gap) for gap in gaps) <= 3


def test_explore_commit_above_offline_on_every_letter(scores):
    offline, committed = of(scores, "letters", "O"), of(scores, "letters", "EC")
    assert all(committed[label].mean > offline[label].mean for label in offline)


@pytest.mark.parametrize(("dataset", "most"), [("letters", 1.5), ("mnist", 2), ("fashion_mnist", 2), ("svhn", 5)])
def test_explore_commit_is_close_to_the_paper(scores, dataset, most):
    (found,) = [one for one in compare(scores) if one.dataset == dataset]
    assert found.difference["EC"][1] <= most


@pytest.mark.parametrize(("dataset", "tasks"), [("letters", 26), ("mnist", 10)])
def test_explore_commit_wins_or_ties_wherever_the_paper_says_so(scores, dataset, tasks):
    (found,) = [one for one in compare(scores) if one.dataset == dataset]
    assert (found.tasks, found.wins, found.paper_wins) == (tasks, tasks, tasks)
