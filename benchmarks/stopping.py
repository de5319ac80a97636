"""The stopping rules' promises, measured: who stops too early, who stops in time, and what it costs.

Simulated campaigns over several rankings, a look after every label. Finished cells are kept in
results/stopping.csv and not computed again, so an interrupted run goes on with the same command; the tables go into
docs/stopping.md between its markers. Exits with 1 if a valid rule stops below the target more often than
its alpha plus three standard errors, or if no valid rule ends the benign campaign within 40 % of the pool.

    python benchmarks/stopping.py [--runs 2000] [--jobs 1] [--no-page]
    python benchmarks/stopping.py --kept    # only what is finished: the page shows a dash for all else
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from _page import write_parts
from activecover.stopping import Rule, make_rule, standard_rules
from activecover.testing import RANKINGS, Coverage, measure_coverage

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "stopping.md"
KEPT = ROOT / "results" / "stopping.csv"
TARGETS, ALPHAS = (0.8, 0.9, 0.95, 0.99), (0.05, 0.2)
SHOWN = (0.9, 0.05)
LARGE = "benign, 20,000"
MOST_OF_THE_POOL = 0.4
SEED = 7

Cell = dict[tuple[float, float], Coverage]
Job = tuple[str, str, int]


def rules() -> list[str]:
    return [rule.name for rule in standard_rules()]


def is_valid(name: str) -> bool:
    return bool(make_rule(name).valid)


def versioned(name: str) -> str:
    return f"{name}@{make_rule(name).version}"


def shown_name(name: str) -> str:
    return name if is_valid(name) else f"*{name}*"


def measured(job: Job) -> Cell:
    rule, ranking, runs = job

    def make(target: float, confidence: float) -> Rule:
        return make_rule(rule, target=target, confidence=confidence)

    return measure_coverage(make, RANKINGS[ranking], targets=TARGETS, alphas=ALPHAS, runs=runs, seed=SEED)


def jobs_for(runs: int) -> list[Job]:
    # Heuristics promise nothing that could be measured to the last standard error.
    return [
        (rule, ranking, runs if is_valid(rule) else max(1, runs // 4))
        for ranking in sorted(RANKINGS, key=lambda name: RANKINGS[name].rows)
        for rule in rules()
    ]


def read_kept() -> dict[Job, Cell]:
    """Finished cells of the rules as they are now."""
    cells: dict[Job, Cell] = {}
    if not KEPT.exists():
        return cells
    now = {versioned(name): name for name in rules()}
    with KEPT.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            if line["rule"] in now and int(line["seed"]) == SEED:
                job = (now[line["rule"]], line["ranking"], int(line["runs"]))
                cells.setdefault(job, {})[float(line["target"]), float(line["alpha"])] = _parsed(line)
    return {job: cell for job, cell in cells.items() if len(cell) == len(TARGETS) * len(ALPHAS)}


def _parsed(line: dict[str, str]) -> Coverage:
    figures = {name: float(line[name]) for name in ("labels", "recall", "low", "high")}
    return Coverage(runs=int(line["runs"]), early=int(line["early"]), **figures)


def keep(job: Job, cell: Cell) -> None:
    lines: list[dict[str, Any]] = [
        {"rule": versioned(job[0]), "ranking": job[1], "target": target, "alpha": alpha, "seed": SEED}
        | {name: f"{value:.6g}" for name, value in asdict(found).items()}
        for (target, alpha), found in cell.items()
    ]
    new = not KEPT.exists()
    with KEPT.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(lines)


def cells_for(jobs: list[Job], processes: int) -> dict[tuple[str, str], Cell]:
    kept = read_kept()
    missing = [job for job in jobs if job not in kept]
    for job, cell in _computed(missing, processes):
        keep(job, cell)
        kept[job] = cell
        print(f"{job[0]}, {job[1]}: {_shown(cell[SHOWN])}", file=sys.stderr, flush=True)
    return {job[:2]: kept[job] for job in jobs}


def _computed(jobs: list[Job], processes: int) -> Iterable[tuple[Job, Cell]]:
    if processes == 1:
        yield from ((job, measured(job)) for job in jobs)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from zip(jobs, pool.map(measured, jobs), strict=True)


def error_table(cells: dict[tuple[str, str], Cell]) -> list[str]:
    lines = [
        "| rule | " + " | ".join(RANKINGS) + " |",
        "|---|" + "---:|" * len(RANKINGS),
    ]
    for rule in rules():
        shown = [_shown(cells[rule, ranking][SHOWN]) if (rule, ranking) in cells else "-" for ranking in RANKINGS]
        lines.append(f"| {shown_name(rule)} | " + " | ".join(shown) + " |")
    return lines


def _shown(found: Coverage) -> str:
    spread = math.sqrt(found.error * (1 - found.error) / found.runs)
    return f"{100 * found.error:.1f} ± {100 * spread:.1f} ({100 * found.labels:.0f})"


def worst_table(cells: dict[tuple[str, str], Cell]) -> tuple[list[str], bool]:
    lines = [
        "| rule | α = .05: worst of all cells | where | α = .2: worst | where | within α + 3 standard errors |",
        "|---|---:|---|---:|---|---|",
    ]
    good = True
    for rule in rules():
        parts: list[str] = []
        within = True
        for alpha in ALPHAS:
            found = {
                (ranking, target): cells[rule, ranking][target, alpha]
                for ranking in RANKINGS
                for target in TARGETS
                if (rule, ranking) in cells
            }
            place = max(found, key=lambda key: found[key].error)
            within &= all(coverage.within(alpha) for coverage in found.values())
            parts += [f"{100 * found[place].error:.1f} %", f"{place[0]}, target {place[1]:g}"]
        good &= within or not is_valid(rule)
        lines.append(f"| {shown_name(rule)} | " + " | ".join(parts) + f" | {'yes' if within else 'no'} |")
    return lines, good


def benign_table(cells: dict[tuple[str, str], Cell]) -> tuple[list[str], bool]:
    """Labels until the end on a good ranking of 20,000 rows with 5 % positives."""
    lines = ["| rule | median share of the pool | middle half | mean recall |", "|---|---:|---:|---:|"]
    found = {rule: cells[rule, LARGE][SHOWN] for rule in rules()}
    lines = [f"{found['qbcb'].runs:,} campaigns ({found['knee'].runs:,} for heuristics), seed {SEED}.", "", *lines]
    for rule, coverage in found.items():
        lines.append(
            f"| {shown_name(rule)} | {100 * coverage.labels:.1f} % | "
            f"{100 * coverage.low:.1f} to {100 * coverage.high:.1f} % | {coverage.recall:.3f} |"
        )
    return lines, min(coverage.labels for rule, coverage in found.items() if is_valid(rule)) <= MOST_OF_THE_POOL


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, help="campaigns per cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--no-page", action="store_true", help="print only")
    parser.add_argument("--kept", action="store_true", help="compute nothing: show what is finished")
    given = parser.parse_args()
    jobs = jobs_for(given.runs)
    if given.kept:
        kept = read_kept()
        cells = {job[:2]: kept[job] for job in jobs if job in kept}
    else:
        cells = cells_for(jobs, given.jobs)
    worst, sound = worst_table(cells)
    counts = f"{given.runs:,} campaigns per cell ({max(1, given.runs // 4):,} for heuristics), seed {SEED}."
    if len(cells) < len(jobs):
        counts += f" {len(jobs) - len(cells)} of {len(jobs)} cells are not measured yet (-)."
    parts = {"counts": [counts], "errors": error_table(cells), "worst": worst}
    cheap: bool | None = None
    if all((rule, LARGE) in cells for rule in rules()):
        parts["benign"], cheap = benign_table(cells)
    for name, lines in parts.items():
        print(f"\n{name}", *lines, sep="\n")
    if not given.no_page:
        write_parts(PAGE, parts)
    for what, holds in (("valid rules keep their promise", sound), ("a valid rule is in time", cheap)):
        print(f"{what}: {'not measured yet' if holds is None else 'yes' if holds else 'NO'}")
    return 0 if sound and cheap else 1


if __name__ == "__main__":
    sys.exit(main())
