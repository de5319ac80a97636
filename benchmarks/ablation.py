"""What each rule of the portfolio is worth: auto with one rule left out at a time.

On some letters under the paper's protocol (AUC), and on some pools one question at a time (labels to 95 %), the same
runs and starts for all. What is finished is kept; lines go to results/ablation.csv.gz.

    python benchmarks/ablation.py [FOLDER] [--labels B,K,S,Z] [--runs 3] [--pools german_credit,systematic_review] [--starts 3]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import pools
from _packed import read_lines, write_lines
from activecover.lab.datasets import load_dataset
from activecover.lab.grid import prepare_trial
from activecover.learners import Auto
from activecover.learners._auto5._auto import DENSE, SPARSE
from activecover.metrics import recall_by_batch
from activecover.parallel import one_blas_thread
from activecover.simulate import batch_size, simulate_one

OUT = Path(__file__).resolve().parents[1] / "results" / "ablation.csv.gz"
COLUMNS = ("task", "without", "run", "value")
SAMPLE = 100

Key = tuple[str, str, int]


class Results:
    """The finished lines of a file, written anew as a whole whenever one is added."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Key, float] = {}
        for line in read_lines(path):
            self.lines[line["task"], line["without"], int(line["run"])] = float(line["value"])

    def add(self, key: Key, value: float) -> None:
        self.lines[key] = round(value, 4)
        write_lines(self.path, COLUMNS, ((*one, number) for one, number in sorted(self.lines.items())))
        print(*key, round(value, 2), flush=True)


def portfolios(kind: str = "dense") -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """What is left out, and the rules that stay."""
    whole = DENSE if kind == "dense" else SPARSE
    yield "", None
    for gone in whole:
        yield gone, tuple(name for name in whole if name != gone)


def on_letters(results: Results, labels: list[str], runs: int) -> None:
    dataset = load_dataset("letters", None)
    for run in range(runs):
        missing = [
            (label, gone, rules)
            for label in labels
            for gone, rules in portfolios()
            if (f"letters {label}", gone, run) not in results.lines
        ]
        trial = prepare_trial(dataset, labels[0], run) if missing else None
        for label, gone, rules in missing:
            assert trial is not None
            batch = batch_size(trial.experiment.percent, len(dataset) - SAMPLE)
            learner = Auto(explore=trial.sample.tolist(), rules=rules)
            truth = dataset.positive(label)
            trace = simulate_one(
                trial.pool, truth, learner, batch=batch, batches=trial.experiment.batches, seed=trial.seed, run=run
            )
            results.add((f"letters {label}", gone, run), float(np.mean(recall_by_batch(trace))))


def on_pools(results: Results, folder: Path, names: list[str], starts: int) -> None:
    for name in names:
        pool, truth = pools.read_pool(folder, name, whole=False)
        needed = int(np.ceil(0.95 * truth.sum() - 1e-9)) - 1
        for number in range(starts):
            for gone, rules in portfolios(pool.kind):
                if (name, gone, number) not in results.lines:
                    learner = Auto(explore=pools.start(truth, number), rules=rules)
                    trace = simulate_one(pool, truth, learner, batch=1, seed=number, run=number)
                    place = np.flatnonzero(trace.positive)[needed]
                    results.add((name, gone, number), float(place - 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", default="B,K,S,Z")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--pools", default="german_credit,systematic_review")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    given = pools.with_folder(parser)
    results = Results(given.out)
    with one_blas_thread():
        on_letters(results, given.labels.split(","), given.runs)
        on_pools(results, given.folder, given.pools.split(","), given.starts)
    print(f"{len(results.lines):,} runs are in {given.out.name}; benchmarks/learners_page.py makes a table of them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
