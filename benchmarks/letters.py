"""The paper's protocol on Letters, next to the published figures.

    python benchmarks/letters.py                       # O and EC on all 26 labels, 100 runs each
    python benchmarks/letters.py --methods all --labels A,E,H,K,S --runs 5

Finished cells are kept in the folder named by --out, and those committed in results/ are taken in first,
unless --afresh is given. Exits with 1 if a bound of the comparison does not hold.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from activecover.lab.grid import METHODS, Grid, make_plan, paper_auc, run_plan

COMMITTED = Path(__file__).resolve().parents[1] / "results" / "cells.csv.gz"
Cell = tuple[str, str, int]


def compute(out: Path, labels: list[str], methods: list[str], runs: int, jobs: int, afresh: bool) -> dict[Cell, float]:
    """AUC of every cell, computed where it is not there yet; NaN where there is no result."""
    if COMMITTED.exists() and not afresh:
        with Grid(out, create=True) as grid:
            grid.include(COMMITTED)
    run_plan(make_plan(["letters"], labels=labels, methods=methods, runs=runs), out, jobs=jobs)
    with Grid(out) as grid:
        return {
            (result.cell.label, result.cell.method, result.cell.run): float("nan") if result.auc is None else result.auc
            for result in grid.results()
            if result.cell.dataset == "letters"
        }


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
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/grid"))
    parser.add_argument("--afresh", action="store_true", help="compute all cells, the committed ones too")
    given = parser.parse_args()
    labels = given.labels.split(",")
    methods = list(METHODS) if given.methods == "all" else given.methods.split(",")
    cells = compute(given.out, labels, methods, given.runs, given.jobs, given.afresh)
    return 0 if report(cells, labels, methods, given.runs) else 1


if __name__ == "__main__":
    sys.exit(main())
