"""Tables from a grid, in the paper's layout and for programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from activecover.lab.datasets import DATASETS
from activecover.lab.grid._cells import Result
from activecover.lab.grid._paper import paper_auc, paper_best
from activecover.lab.grid._protocol import METHODS
from activecover.metrics import Score, score_of_curves, ties

Task = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """One method on one task."""

    dataset: str
    label: str
    method: str
    score: Score
    best: bool


def summarise(results: Iterable[Result]) -> dict[Task, dict[str, Score]]:
    """Scores by task and method, tasks and methods in the paper's order."""
    curves: dict[tuple[Task, str], list[tuple[float, ...]]] = defaultdict(list)
    reasons: dict[tuple[Task, str], list[str]] = defaultdict(list)
    for result in results:
        key = ((result.cell.dataset, result.cell.label), result.cell.method)
        if result.curve is None:
            reasons[key].append(result.reason or "not available")
        else:
            curves[key].append(result.curve)
    scores: dict[Task, dict[str, Score]] = defaultdict(dict)
    for task, method in sorted({*curves, *reasons}, key=_in_order):
        scores[task][method] = score_of_curves(curves[task, method], reasons[task, method])
    return dict(scores)


def table_rows(scores: Mapping[Task, Mapping[str, Score]]) -> list[Row]:
    """One row per task and method; the best method and those tied with it are flagged."""
    rows = []
    for (dataset, label), by_method in scores.items():
        best = ties(by_method)
        rows += [Row(dataset, label, method, score, method in best) for method, score in by_method.items()]
    return rows


@dataclass(frozen=True, slots=True)
class Comparison:
    """Our results compared with the paper's, for one data set."""

    dataset: str
    tasks: int
    #: Mean difference and mean absolute difference by method, for tasks with both results.
    difference: dict[str, tuple[float, float]]
    #: Mean rank correlation of the methods over tasks; NaN if fewer than three methods were run.
    rank_agreement: float
    #: Tasks in which EC is best or tied with the best: in our results, and in the paper on the same tasks.
    wins: int
    paper_wins: int
    #: In how many of these no other method is tied with EC.
    alone: int = 0
    paper_alone: int = 0


def compare(scores: Mapping[Task, Mapping[str, Score]]) -> list[Comparison]:
    """Ours minus the paper's, per data set."""
    by_dataset: dict[str, list[Task]] = defaultdict(list)
    for task in scores:
        if (*task, "EC") in paper_auc():
            by_dataset[task[0]].append(task)
    return [_compare_one(dataset, tasks, scores) for dataset, tasks in by_dataset.items()]


def _compare_one(dataset: str, tasks: Sequence[Task], scores: Mapping[Task, Mapping[str, Score]]) -> Comparison:
    paper, bold = paper_auc(), paper_best()
    gaps: dict[str, list[float]] = defaultdict(list)
    agreements, wins, paper_wins, alone, paper_alone = [], 0, 0, 0, 0
    for task in tasks:
        pairs = [
            (score.mean, theirs)
            for method, score in scores[task].items()
            if score.available and (theirs := paper.get((*task, method))) is not None
        ]
        for method, score in scores[task].items():
            theirs = paper.get((*task, method))
            if score.available and theirs is not None:
                gaps[method].append(score.mean - theirs)
        if len(pairs) > 2:
            ours, theirs_all = np.array(pairs).T
            # Imported here, as importing it takes longer than the rest of the package.
            from scipy.stats import spearmanr

            agreements.append(float(spearmanr(ours, theirs_all).statistic))
        best, their_best = ties(scores[task]), {method for method in METHODS if (*task, method) in bold}
        wins += "EC" in best
        paper_wins += "EC" in their_best
        alone += best == {"EC"}
        paper_alone += their_best == {"EC"}
    difference = {m: (float(np.mean(g)), float(np.mean(np.abs(g)))) for m, g in sorted(gaps.items(), key=_method)}
    agreement = float(np.mean(agreements)) if agreements else float("nan")
    return Comparison(dataset, len(tasks), difference, agreement, wins, paper_wins, alone, paper_alone)


def _in_order(key: tuple[Task, str]) -> tuple[int, str, str, int, str]:
    (dataset, label), method = key
    names = [entry.name for entry in DATASETS]
    return names.index(dataset) if dataset in names else len(names), dataset, label, *_method((method, None))


def _method(item: tuple[str, object]) -> tuple[int, str]:
    name = item[0]
    return METHODS.index(name) if name in METHODS else len(METHODS), name
