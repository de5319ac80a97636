"""Readings of what the paper leaves open about its one-class methods, each compared with its figures.

    python benchmarks/readings.py [--datasets mnist,letters] [--methods O-LS,O-RS] [--readings paper] [--runs 2] [--write]

The paper tunes its one-class methods on "a grid of powers of two" and says neither where the grids end nor how rows of
equal score are ordered. A reading settles that, and perhaps one thing more. Cells that are in results/readings.csv are
not computed again. --write puts the table of means into docs/results-notes.md. Data sets that are not in the data
folder are left out.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.svm import OneClassSVM

from _page import write_parts
from activecover.errors import ActiveCoverError
from activecover.files import replacing
from activecover.lab.datasets import DATASETS, Dataset, Experiment, load_dataset
from activecover.lab.grid import READINGS as GRIDS
from activecover.lab.grid import Trial, paper_auc, prepare_trial
from activecover.learners import Learner, OneClass, make_learner
from activecover.learners._one_class import DETECTORS
from activecover.metrics import auc
from activecover.parallel import one_blas_thread
from activecover.simulate import batch_size, simulate_one

ROOT = Path(__file__).resolve().parents[1]
CELLS = ROOT / "results" / "readings.csv"
PAGE = ROOT / "docs" / "results-notes.md"
COLUMNS = ("dataset", "label", "method", "reading", "run", "auc")
METHODS = ("O", "EC", "O-LS", "A-LS", "O-RS", "A-RS", "O-IF", "A-IF", "O-RC", "A-RC")
#: A few labels of each data set: some on which the paper's methods do well, and some on which they do not.
LABELS = {
    "letters": "ACEHLT",
    "mnist": "01257",
    "fashion_mnist": "01579",
    "cifar10": "0136",
    "svhn": "0127",
}
#: A mean this close to the paper's counts as the same, in points of AUC.
CLOSE = 5.0
Key = tuple[str, str, str, str, int]
Grid = Mapping[str, Sequence[float]]


class ByVerdict:
    """Mixed into a detector: rows are ordered by its verdict, inlier or outlier, and not by its score."""

    def score_samples(self, points: Any) -> Any:
        return self.predict(points)  # type: ignore[attr-defined]


class VerdictMachine(ByVerdict, OneClassSVM):  # type: ignore[misc]
    pass


class VerdictForest(ByVerdict, IsolationForest):  # type: ignore[misc]
    def decision_function(self, points: Any) -> Any:
        return IsolationForest.score_samples(self, points) - self.offset_


class VerdictEnvelope(ByVerdict, EllipticEnvelope):  # type: ignore[misc]
    def decision_function(self, points: Any) -> Any:
        return EllipticEnvelope.score_samples(self, points) - self.offset_


VERDICTS: Mapping[str, Callable[[], Any]] = {
    "linear-svm": lambda: VerdictMachine(kernel="linear"),
    "rbf-svm": VerdictMachine,
    "isolation-forest": VerdictForest,
    "robust-covariance": VerdictEnvelope,
}


@dataclass(frozen=True)
class Reading:
    """What differs from our settings: grids by detector, the order of rows, the network's training."""

    summary: str
    grids: Mapping[str, Grid] = field(default_factory=dict)
    by_verdict: bool = False
    experiment: Mapping[str, Any] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)


_PAPER = GRIDS["paper"].grids
_SMALL = {"letters": GRIDS["paper"].scales["letters"], "mnist": 1 / 255, "fashion_mnist": 1 / 255}
READINGS = {
    "ours": Reading("ours"),
    "nu-1": Reading("nu up to 1, where the threshold is infinite and all rows tie", {
        name: {**({"gamma": [2.0**i for i in range(-16, 3, 2)]} if name == "rbf-svm" else {}), "nu": _PAPER[name]["nu"]}
        for name in ("linear-svm", "rbf-svm")
    }),
    "gamma-6": Reading("gamma from 2⁻⁶: with activations in the hundreds the kernel underflows, and rows tie", {
        "rbf-svm": {"nu": [2.0**-i for i in (1, 3, 5, 7)], "gamma": _PAPER["rbf-svm"]["gamma"]},
    }),
    "verdict": Reading("rows ordered by predict (inliers first) in place of the score", by_verdict=True),
    "scaled": Reading("inputs of the network scaled to at most 1", scales=_SMALL),
    "one-epoch": Reading("the network trained for one epoch", experiment={"epochs": 1}),
    "scaled-paper": Reading("the grids of `paper`, all inputs of the network scaled to at most 1", _PAPER, scales=_SMALL),
    "paper": Reading("nu up to 1, gamma from 2⁻⁶, 1 to 256 trees, and Letters scaled to at most 1", _PAPER, scales=GRIDS["paper"].scales),
}  # fmt: skip


def learner_of(method: str, reading: Reading, sample: list[int]) -> Learner:
    learner = make_learner(method, explore=sample)
    if not isinstance(learner, OneClass):
        return learner
    name = str(learner.detector)
    grid = reading.grids.get(name)
    if not reading.by_verdict:
        return learner if grid is None else learner.replace(grid=grid)
    return learner.replace(detector=VERDICTS[name](), grid=DETECTORS[name][1] if grid is None else grid)


def experiment_of(dataset: str, reading: Reading) -> Experiment:
    experiment = replace(DATASETS.build(dataset).experiment, **reading.experiment)
    return replace(experiment, scale=reading.scales.get(dataset, experiment.scale))


def compute(wanted: Sequence[Key], done: dict[Key, float]) -> Iterator[tuple[Key, float]]:
    """The cells that are missing, data set by data set and run by run."""
    dataset: Dataset | None = None
    trials: dict[tuple[str, int, str], Trial] = {}
    for key in wanted:
        if key in done:
            continue
        name, label, method, reading_name, run = key
        if dataset is None or dataset.name != name:
            dataset, trials = load_dataset(name), {}
        experiment = experiment_of(name, READINGS[reading_name])
        if (name, run, str(experiment)) not in trials:
            trials = {(name, run, str(experiment)): prepare_trial(dataset, label, run, experiment=experiment)}
        trial = trials[name, run, str(experiment)]
        with one_blas_thread():
            trace = simulate_one(
                trial.pool, dataset.positive(label),
                learner_of(method, READINGS[reading_name], trial.sample.tolist()),
                batch=batch_size(experiment.percent, len(dataset) - len(trial.sample)), batches=experiment.batches,
                seed=trial.seed, run=run, name=method,
            )  # fmt: skip
        yield key, float("nan") if trace.unavailable else auc(trace)


def read(path: Path) -> dict[Key, float]:
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (row["dataset"], row["label"], row["method"], row["reading"], int(row["run"])): float(row["auc"])
            for row in csv.DictReader(file)
        }


def write(path: Path, cells: Mapping[Key, float]) -> None:
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((*key, f"{value:.4f}") for key, value in sorted(cells.items()))


def means(cells: Mapping[Key, float]) -> dict[tuple[str, str, str], tuple[float, float]]:
    """By data set, method and reading: its mean and the paper's over the labels, where all of them are there."""
    groups: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (dataset, label, method, reading, _), value in cells.items():
        if np.isfinite(value):
            groups[dataset, method, reading][label].append(value)
    found = {}
    for (dataset, method, reading), by_label in groups.items():
        if set(by_label) != set(LABELS[dataset]):
            continue  # over other labels than those beside it
        pairs = [(np.mean(values), paper_auc()[dataset, label, method]) for label, values in by_label.items()]
        ours, theirs = zip(*[(mine, paper) for mine, paper in pairs if paper is not None], strict=True)
        found[dataset, method, reading] = (float(np.mean(ours)), float(np.mean(theirs)))
    return found


def table(cells: Mapping[Key, float]) -> list[str]:
    """Per data set and method, the paper's mean and that of each reading; in bold within five points."""
    found = means(cells)
    names = [name for name in READINGS if any(reading == name for *_, reading in found)]
    lines = [
        f"| data set | method | paper | {' | '.join(names)} |",
        f"|---|---|---:|{'---:|' * len(names)}",
    ]
    for dataset in LABELS:
        for method in METHODS:
            here = {name: found[dataset, method, name] for name in names if (dataset, method, name) in found}
            if here:
                paper = next(iter(here.values()))[1]
                shown = (shown_mean(here.get(name)) for name in names)
                lines.append(f"| {dataset} | {method} | {paper:.1f} | {' | '.join(shown)} |")
    lines += ["", *(f"- `{name}`: {READINGS[name].summary}" for name in names)]
    return lines


def shown_mean(pair: tuple[float, float] | None) -> str:
    if pair is None:
        return "-"
    return f"**{pair[0]:.1f}**" if abs(pair[0] - pair[1]) <= CLOSE else f"{pair[0]:.1f}"


def wanted_cells(datasets: Sequence[str], methods: Sequence[str], readings: Sequence[str], runs: int) -> list[Key]:
    return [
        (dataset, label, method, reading, run)
        for dataset in datasets
        for run in range(runs)
        # Readings that train the network in the same way stand together: they share its vectors.
        for reading in sorted(readings, key=lambda name: str(experiment_of(dataset, READINGS[name])))
        for label in LABELS[dataset]
        for method in methods
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default=",".join(LABELS))
    parser.add_argument("--methods", default="O-LS,O-RS,O-IF,O-RC")
    parser.add_argument("--readings", default=",".join(READINGS))
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=CELLS)
    parser.add_argument("--write", action="store_true", help="put the table into docs/results-notes.md")
    given = parser.parse_args()
    cells = read(given.out)
    for dataset in given.datasets.split(","):
        wanted = wanted_cells([dataset], given.methods.split(","), given.readings.split(","), given.runs)
        try:
            for key, value in compute(wanted, cells):
                cells[key] = value
                write(given.out, cells)
                print(*key, f"{value:.2f}", flush=True)
        except ActiveCoverError as wrong:
            print(f"{dataset} left out: {wrong}", file=sys.stderr)
    lines = table(cells)
    print("\n".join(lines))
    if given.write:
        write_parts(PAGE, {"readings": lines})
    return 0


if __name__ == "__main__":
    sys.exit(main())
