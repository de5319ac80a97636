"""How many labels it takes to find the positives of real reviews and tables, learner by learner.

Every learner has the same starts: one known positive and one known negative, one question at a time. With
``--from-question`` it starts from the question of the review alone (reviews/questions.csv), or, if it takes none, from
nothing. Which pools are for development and which judge a finished design is fixed in fewest_labels.toml. Runs that are finished are kept, so
that the command goes on where it was ended, and several can run at once.

    python benchmarks/fewest_labels.py FOLDER [--learners mixture,auto] [--pools Donners_2021] [--starts 5]
    python benchmarks/fewest_labels.py FOLDER --compare mixture,asreview [--final]
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

import pools
from _packed import read_lines, write_lines
from activecover.errors import ActiveCoverError
from activecover.intake import make_pool, read_table
from activecover.learners import Learner, Mixture, Negatives, Rows, Scores, SearchState, make_learner
from activecover.pool import Pool, as_positive
from activecover.simulate import simulate_one

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "results" / "fewest-labels.csv.gz"
COLUMNS = ("pool", "learner", "start", "positives", "found_after", "seconds")
FRACTIONS = (0.8, 0.95, 1.0)
RESAMPLED = 2_000

Flags = npt.NDArray[np.bool_]
Key = tuple[str, str, int]


@dataclass(frozen=True)
class Task:
    """A pool, what is to be found in it, and the question that led to it, if there was one."""

    name: str
    pool: Pool
    truth: Flags
    question: str | None = None


def task_names(*, final: bool) -> dict[str, list[str]]:
    """The names of the pools, by kind."""
    with (HERE / "fewest_labels.toml").open("rb") as file:
        names: dict[str, list[str]] = tomllib.load(file)["final" if final else "development"]
    return names


def read_task(folder: Path, kind: str, name: str) -> Task:
    """Read one pool; of a large table the same sample every time."""
    if kind == "reviews":
        table = read_table(folder / "reviews" / f"{name}.csv")
        made = make_pool(table, embed="tfidf:title,abstract", label_column="label_included")
        assert made.labels is not None
        with (folder / "reviews" / "questions.csv").open(encoding="utf-8", newline="") as file:
            questions = {line["name"]: line["question"] for line in csv.DictReader(file)}
        return Task(name, made.pool, as_positive([str(label) for label in made.labels], "1"), questions.get(name))
    if kind == "pools":
        return Task(name, *pools.read_pool(folder / "pools", name, whole=False))
    with np.load(folder / "tables" / f"{name}.npz") as file:
        points, truth = np.asarray(file["X"], np.float64), np.asarray(file["y"]) > 0
    rows = pools.sampled_rows(len(truth), whole=False)
    spread = points[rows].std(axis=0)
    return Task(name, Pool((points[rows] - points[rows].mean(axis=0)) / np.where(spread > 0, spread, 1)), truth[rows])


def build(learner: str, start: list[int] | int, question: str | None) -> Learner:
    """A learner by name; ``forest`` and ``boosting`` are scikit-learn's, by greedy probability."""
    if learner in ("forest", "boosting"):
        return Greedy(learner, explore=start)
    if question is not None and learner == "mixture":
        return Mixture(question=question)
    return make_learner(learner, explore=start)


class Greedy(Learner):
    """A classifier as it comes, refitted when the labels have grown by a tenth."""

    negatives: ClassVar[Negatives] = "all"

    def __init__(self, model: str, explore: int | Sequence[int] = 0) -> None:
        self.model = model
        self.explore = explore

    def score(self, state: SearchState, rows: Rows) -> Scores:
        from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

        labels, count = state.labels, 2
        while (after := max(count + 1, int(1.1 * count))) <= len(state.labels):
            count = after

        def fit() -> Scores:
            first = labels.take(slice(0, count))
            forest = RandomForestClassifier(random_state=0)
            model = forest if self.model == "forest" else HistGradientBoostingClassifier(random_state=0)
            model.fit(state.vectors(first.rows), first.positive)
            return np.asarray(model.predict_proba(state.pool.vectors)[:, -1], np.float64)

        if labels.positive[:count].all() or not labels.positive[:count].any():
            return state.lots[rows]
        return state.kept_for(("fitted", self), count, fit)[rows]


def run(task: Task, learner: str, number: int, *, question: bool) -> list[int]:
    """After how many labels each positive was found; a positive that the start gave is left out."""
    start = pools.start(task.truth, number)
    if question:
        # Without a question `auto@5` begins as a campaign did: with 100 random rows.
        ready = build(learner, 100 if learner != "mixture" else 0, task.question)
        trace = simulate_one(task.pool, task.truth, ready, batch=1, seed=number)
        return [int(place) + 1 for place in np.flatnonzero(trace.positive)]
    trace = simulate_one(task.pool, task.truth, build(learner, start, None), batch=1, seed=number)
    return [int(place) - 1 for place in np.flatnonzero(trace.positive)[1:]]


def labels_needed(found: Sequence[int], positives: int) -> list[float]:
    """Labels to each fraction of the positives, and the mean time of discovery."""
    given = positives - len(found)
    needed = [max(0, int(np.ceil(fraction * positives)) - given) for fraction in FRACTIONS]
    return [float(found[max(0, count - 1)]) for count in needed] + [float(np.mean(found))]


class Results:
    """The finished runs; read anew before each is added, since another command may have added some."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: dict[Key, tuple[int, list[int], float]] = {
            (line["pool"], line["learner"], int(line["start"])): (
                int(line["positives"]),
                json.loads(line["found_after"]),
                float(line["seconds"]),
            )
            for line in read_lines(path)
        }

    def add(self, key: Key, positives: int, found: list[int], seconds: float) -> None:
        self.runs = Results(self.path).runs
        self.runs[key] = (positives, found, round(seconds, 1))
        lines = [(*one, count, json.dumps(places), took) for one, (count, places, took) in sorted(self.runs.items())]
        write_lines(self.path, COLUMNS, lines)


def compare(results: Results, names: list[str], first: str, second: str) -> str:
    """Labels of one learner over those of another: geometric means over pools, with bands from resampling pools."""
    rows, ratios = [], []
    for name in names:
        starts = sorted({key[2] for key in results.runs if key[:2] == (name, first)})
        both = [start for start in starts if (name, second, start) in results.runs]
        if not both:
            continue
        means = [
            np.mean(
                [
                    labels_needed(results.runs[name, learner, start][1], results.runs[name, learner, start][0])
                    for start in both
                ],
                axis=0,
            )
            for learner in (first, second)
        ]
        ratios.append(np.log(means[0] / means[1]))
        cells = " ".join(f"{one:6.0f}/{other:6.0f}" for one, other in zip(*means, strict=True))
        rows.append(f"{name:26s} {len(both)}  {cells}  {np.exp(ratios[-1]).round(2).tolist()}")
    if not ratios:
        return f"{first} and {second} have no start in common"
    every = np.array(ratios)
    random = np.random.default_rng(0)
    drawn = every[random.integers(0, len(every), (RESAMPLED, len(every)))].mean(axis=1)
    low, high = np.exp(np.percentile(drawn, [2.5, 97.5], axis=0))
    columns = [*(f"{fraction:.0%}" for fraction in FRACTIONS), "mean"]
    for place, column in enumerate(columns):
        middle = np.exp(every[:, place].mean())
        rows.append(f"{column}: {middle:.3f} [{low[place]:.3f}, {high[place]:.3f}] of {second}")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--learners", default="mixture")
    parser.add_argument("--kinds", default="reviews,tables,pools")
    parser.add_argument("--pools", default="")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--from-question", action="store_true")
    parser.add_argument("--final", action="store_true")
    parser.add_argument("--compare", default="")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    names = {kind: some for kind, some in task_names(final=given.final).items() if kind in given.kinds.split(",")}
    if given.compare:
        first, second = given.compare.split(",")
        print(compare(Results(given.out), [name for some in names.values() for name in some], first, second))
        return 0
    try:
        for kind, some in names.items():
            for name in [one for one in some if not given.pools or one in given.pools.split(",")]:
                run_all(given, partial(read_task, given.folder, kind, name), name)
    except ActiveCoverError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    return 0


def run_all(given: argparse.Namespace, read: Callable[[], Task], name: str) -> None:
    """All runs on one pool that are not there yet."""
    mark = "+question" if given.from_question else ""
    wanted = [(name, one + mark, start) for start in range(given.starts) for one in given.learners.split(",")]
    missing = [key for key in wanted if key not in Results(given.out).runs]
    if not missing:
        return
    task = read()
    for key in missing:
        began = time.perf_counter()
        found = run(task, key[1].removesuffix("+question"), key[2], question=given.from_question)
        Results(given.out).add(key, int(task.truth.sum()), found, time.perf_counter() - began)
        needed = labels_needed(found, int(task.truth.sum()))
        print(f"{name} {key[1]} {key[2]}: 95 % after {needed[1]:.0f}, all after {needed[2]:.0f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
