"""The paper's protocol on Letters, next to the published figures.

    python benchmarks/letters.py                       # O and EC on all 26 labels, 100 runs each
    python benchmarks/letters.py --methods all --labels A,E,H,K,S --runs 5

Finished cells are kept in the file named by --cells, so that an interrupted run goes on where it was.
Exits with 1 if a bound of the comparison does not hold.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from activecover.bench import METHODS, paper_auc, prepare_trial, run_trial
from activecover.datasets import load_letters
from activecover.metrics import auc

Cell = tuple[str, str, int]


def read_cells(path: Path) -> dict[Cell, float]:
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            (row["label"], row["method"], int(row["run"])): float(row["auc"])
            for row in csv.DictReader(file)
            if row["auc"]
        }


def compute(cells: dict[Cell, float], path: Path, labels: list[str], methods: list[str], runs: int) -> None:
    """Compute what is missing, run by run, so that all methods of a run share one embedding."""
    letters = load_letters()
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text("label,method,run,auc\n")
    with path.open("a") as file:
        for run in range(runs):
            missing = [(a, m) for m in methods for a in labels if (a, m, run) not in cells]
            trial = prepare_trial(letters, labels[0], run) if missing else None
            for label, method in missing:
                assert trial is not None
                trace = run_trial(trial, label, method)
                value = float("nan") if trace.unavailable else auc(trace)
                cells[label, method, run] = value
                file.write(f"{label},{method},{run},{value:.4f}\n")
                file.flush()
            if missing:
                print(f"run {run + 1} of {runs}", file=sys.stderr, flush=True)


def report(cells: dict[Cell, float], labels: list[str], methods: list[str], runs: int) -> bool:
    grouped: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (label, method, run), value in cells.items():
        if run < runs:
            grouped[label, method].append(value)
    mean = {key: float(np.nanmean(values)) for key, values in grouped.items()}
    paper = {(label, m): paper_auc()["letters", label, m] or float("nan") for label in labels for m in methods}
    print(f"Letters, the paper's protocol: mean AUC in percent over {runs} runs, ours / paper's")
    print("label " + "".join(f"{method:>15}" for method in methods))
    for label in labels:
        print(f"{label:<6}" + "".join(f"{mean[label, m]:8.2f} /{paper[label, m]:6.2f}" for m in methods))
    ours_all = {m: np.mean([mean[label, m] for label in labels]) for m in methods}
    paper_all = {m: np.mean([paper[label, m] for label in labels]) for m in methods}
    print("mean  " + "".join(f"{ours_all[m]:8.2f} /{paper_all[m]:6.2f}" for m in methods))
    worst = {m: max(abs(mean[label, m] - paper[label, m]) for label in labels) for m in methods}
    print("worst " + "".join(f"{worst[m]:15.2f}" for m in methods))
    checks: list[tuple[str, bool]] = []
    if {"O", "EC"} <= set(methods):
        checks += [
            (f"{m}: mean over labels within 1 of the paper's", bool(abs(ours_all[m] - paper_all[m]) <= 1))
            for m in ("O", "EC")
        ]
        checks += [(f"{m}: no label off by more than 3", worst[m] <= 3) for m in ("O", "EC")] if runs >= 50 else []
        checks.append(("EC above O on every label", all(mean[a, "EC"] > mean[a, "O"] for a in labels)))
    if set(METHODS) <= set(methods):
        rivals = [m for m in METHODS if m not in ("O", "EC")]
        beaten = all(mean[a, "EC"] > mean[a, m] for a in labels for m in rivals)
        checks.append(("EC above all eight one-class baselines on every label", beaten))
        for m in ("A-RS", "A-IF", "A-RC"):
            off = np.mean([abs(mean[a, m] - paper[a, m]) for a in labels])
            checks.append((f"{m}: on average {off:.2f} points from the paper's, at most 6", bool(off <= 6)))
    for text, holds in checks:
        print(f"{'holds' if holds else 'FAILS'}: {text}")
    return all(holds for _, holds in checks)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", default=",".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    parser.add_argument("--methods", default="O,EC")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--cells", type=Path, default=Path("results/letters-cells.csv"))
    given = parser.parse_args()
    labels = given.labels.split(",")
    methods = list(METHODS) if given.methods == "all" else given.methods.split(",")
    cells = read_cells(given.cells)
    compute(cells, given.cells, labels, methods, given.runs)
    return 0 if report(cells, labels, methods, given.runs) else 1


if __name__ == "__main__":
    sys.exit(main())
