"""How much of a class the first batch of the paper's protocol can find on Letters, by many rankings.

A batch is a twentieth of the pool, ranked by what about four positives and 96 negatives say. Besides the learners of
the package there are scikit-learn's classifiers, and rankings that know more than any learner may: to which of the 26
letters each of the hundred labelled rows belongs. With one run per embedding, all letters.

    python benchmarks/first_batch.py [--runs 5] [--out FILE]
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from activecover.lab.datasets import load_dataset
from activecover.lab.grid import Trial, prepare_trial
from activecover.learners import Labels, SpreadPosterior, make_learner
from activecover.learners._auto5._ground import balanced_ground
from activecover.pool import Pool, dense_vectors

OUT = Path(__file__).resolve().parents[1] / "results" / "first-batch.csv"
LEARNERS = (
    "explore-commit", "density-commit", "spread-commit", "contrast", "knn-posterior", "spread-posterior", "rocchio",
    "linear", "auto",
)  # fmt: skip
#: How much the model of all letters weighs beside the scores spread over the graph, on the scale of logarithms.
WEIGHTS = (0.25, 0.5, 1.0)
Scores = npt.NDArray[np.float64]


class Task:
    """One letter of one run: the pool, the sample, and what is true."""

    def __init__(self, trial: Trial, letters: npt.NDArray[np.str_], letter: str, run: int) -> None:
        self.pool, self.sample, self.run = trial.pool, trial.sample, run
        self.letters, self.letter = letters[trial.sample], letter
        self.truth = letters == letter
        self.batch = round(0.05 * (len(letters) - len(self.sample)))
        ground = balanced_ground(self.pool)
        assert ground is not None
        self.balanced: Pool = ground.pool

    def recall(self, rows: npt.NDArray[np.int64]) -> float:
        """The share of the positives, those of the sample not counted, that a batch finds."""
        return 100.0 * float(self.truth[rows].sum() / (self.truth.sum() - self.truth[self.sample].sum()))

    def best(self, scores: Scores) -> npt.NDArray[np.int64]:
        scores = scores.copy()
        scores[self.sample] = -np.inf
        return np.argsort(-scores, kind="stable")[: self.batch]

    def labels(self) -> Labels:
        return Labels.of(np.arange(len(self.sample)), self.sample, self.truth[self.sample], True)


def by_learner(task: Task, name: str) -> npt.NDArray[np.int64]:
    learner = make_learner(name, explore=task.sample.tolist()).begin(task.pool, seed=task.run)
    learner.tell(task.labels())
    return learner.propose(task.batch).rows


def by_svm(task: Task) -> Scores:
    """A kernel machine in the balanced space, the kernel as wide as rows are spread."""
    rows = dense_vectors(task.balanced.vectors).astype(np.float64)
    machine = SVC(C=10.0, gamma=1.0 / rows.var(axis=0).sum(), class_weight="balanced")
    return np.asarray(machine.fit(rows[task.sample], task.truth[task.sample]).decision_function(rows))


def by_spreading(task: Task) -> Scores:
    """The scores of spread-posterior in the balanced space, where auto uses it, in no other order of the best."""
    learner = SpreadPosterior(explore=task.sample.tolist()).begin(task.balanced, seed=task.run)
    known_before = -1 - np.arange(len(task.sample))
    learner.tell(Labels.of(known_before, task.sample, task.truth[task.sample], True))
    return learner.all_scores(learner.state_)


def by_all_letters(task: Task) -> Scores:
    """How likely the letter is by a model that was told which letter each labelled row is."""
    rows = dense_vectors(task.pool.vectors).astype(np.float64)
    rows = (rows - rows.mean(axis=0)) / np.sqrt(rows.var(axis=0).sum())
    model = LogisticRegression(C=100.0, max_iter=2000).fit(rows[task.sample], task.letters)
    found: Scores = model.predict_proba(rows)[:, list(model.classes_).index(task.letter)]
    return found


def both(task: Task, weight: float) -> Scores:
    return np.log(np.maximum(by_spreading(task), 0.0) + 1e-6) + weight * np.log(by_all_letters(task) + 1e-6)


def rankings() -> dict[str, Callable[[Task], npt.NDArray[np.int64]]]:
    """By name, what gives the rows of a first batch."""
    found: dict[str, Callable[[Task], npt.NDArray[np.int64]]] = {
        name: lambda task, name=name: by_learner(task, name)  # type: ignore[misc]
        for name in LEARNERS
    }
    found["spread-posterior, balanced space"] = lambda task: task.best(by_spreading(task))
    found["kernel SVM"] = lambda task: task.best(by_svm(task))
    found["told all letters: logistic regression"] = lambda task: task.best(by_all_letters(task))
    for weight in WEIGHTS:
        found[f"told all letters: spread + {weight} x logistic regression"] = lambda task, weight=weight: task.best(  # type: ignore[misc]
            both(task, weight)
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    data = load_dataset("letters")
    by_run: dict[str, list[float]] = defaultdict(list)
    for run in range(given.runs):
        values: dict[str, list[float]] = defaultdict(list)
        trial = prepare_trial(data, data.classes[0], run)
        letters = np.asarray(data.targets(data.classes[0])).astype(str)
        for letter in sorted(set(letters)):
            task = Task(trial, letters, letter, run)
            for name, ranking in rankings().items():
                values[name].append(task.recall(ranking(task)))
        for name, recalls in values.items():
            by_run[name].append(float(np.mean(recalls)))
        print(f"run {run}: " + ", ".join(f"{name} {means[-1]:.1f}" for name, means in by_run.items()), flush=True)
    with given.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("ranking", "run", "recall"))
        for name, means in by_run.items():
            writer.writerows((name, run, round(mean, 3)) for run, mean in enumerate(means))
    return 0


if __name__ == "__main__":
    sys.exit(main())
