"""The stopping rules' promises, measured: who stops too early, who stops in time, and what it costs.

Simulated campaigns over several rankings, a look after every label; the tables go into docs/stopping.md
between its markers. Exits with 1 if a valid rule stops below the target more often than its alpha plus three
standard errors, if no valid rule ends the benign campaign within 40 % of the pool, or if the time of a replay
does not grow in step with the labels.

    python benchmarks/stopping.py [--runs 2000] [--jobs 2] [--no-page]
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from activecover.stopping import RULES, Rule, campaign_for, make_rule, replay, standard_rules
from activecover.testing import RANKINGS, Coverage, measure_coverage
from activecover.trace import Trace

PAGE = Path(__file__).resolve().parents[1] / "docs" / "stopping.md"
TARGETS, ALPHAS = (0.8, 0.9, 0.95, 0.99), (0.05, 0.2)
SHOWN = (0.9, 0.05)
MOST_OF_THE_POOL = 0.4
#: A label of a run of 10^5 may cost so many times one of a run of 10^4.
MOST_GROWTH = 2.0

Cell = dict[tuple[float, float], Coverage]


def rules() -> list[str]:
    return [rule.name for rule in standard_rules() if rule.name != "distance-gap"]


def is_valid(name: str) -> bool:
    return bool(make_rule(name).valid)


def measured(job: tuple[str, str, int]) -> Cell:
    rule, ranking, runs = job

    def make(target: float, confidence: float) -> Rule:
        return make_rule(rule, target=target, confidence=confidence)

    # Heuristics promise nothing that could be measured to the last standard error.
    return measure_coverage(
        make,
        RANKINGS[ranking],
        targets=TARGETS,
        alphas=ALPHAS,
        runs=runs if is_valid(rule) else max(1, runs // 4),
        seed=7,
    )


def error_table(cells: dict[tuple[str, str], Cell]) -> list[str]:
    lines = [
        "| rule | " + " | ".join(RANKINGS) + " |",
        "|---|" + "---:|" * len(RANKINGS),
    ]
    for rule in rules():
        shown = [_shown(cells[rule, ranking][SHOWN]) for ranking in RANKINGS]
        lines.append(f"| {rule if is_valid(rule) else f'*{rule}*'} | " + " | ".join(shown) + " |")
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
                (ranking, target): cells[rule, ranking][target, alpha] for ranking in RANKINGS for target in TARGETS
            }
            place = max(found, key=lambda key: found[key].error)
            within &= all(coverage.within(alpha) for coverage in found.values())
            parts += [f"{100 * found[place].error:.1f} %", f"{place[0]}, target {place[1]:g}"]
        good &= within or not is_valid(rule)
        name = rule if is_valid(rule) else f"*{rule}*"
        lines.append(f"| {name} | " + " | ".join(parts) + f" | {'yes' if within else 'no'} |")
    return lines, good


def benign(runs: int) -> tuple[list[str], bool]:
    """Labels until the end on a good ranking of 20,000 rows with 5 % positives."""
    ranking = replace(RANKINGS["benign"], rows=20_000, positives=1000)
    lines = ["| rule | median share of the pool | middle half | mean recall |", "|---|---:|---:|---:|"]
    best = 1.0
    for name in rules():
        rule = make_rule(name, target=SHOWN[0], confidence=1 - SHOWN[1])
        ends, recalls = [], []
        for run in range(runs):
            truth = ranking.draw(ranking.rows, ranking.positives, np.random.default_rng([11, run]))
            record = campaign_for(rule, truth, np.random.default_rng([11, run, 1]))
            end = rule.stop_time(record)
            end = len(record) if end is None else end
            ends.append(end / ranking.rows)
            recalls.append(record.found[end] / ranking.positives)
        low, middle, high = np.quantile(ends, [0.25, 0.5, 0.75])
        best = min(best, float(middle)) if rule.valid else best
        lines.append(
            f"| {name if rule.valid else f'*{name}*'} | {100 * middle:.1f} % | {100 * low:.1f} to {100 * high:.1f} % "
            f"| {np.mean(recalls):.3f} |"
        )
    return lines, best <= MOST_OF_THE_POOL


def timing() -> tuple[list[str], bool]:
    """Seconds to replay a run against every rule, by labels."""
    lines = ["| labels | seconds for all rules | microseconds a label |", "|---:|---:|---:|"]
    each = []
    for rows in (1000, 10_000, 100_000):
        truth = RANKINGS["benign"].draw(rows, rows // 20, np.random.default_rng(rows))
        clock = np.arange(rows)
        trace = Trace(clock, truth, clock, clock < 0, pool_rows=rows, positives=rows // 20)
        started = time.process_time()
        replay(trace, target=0.9)
        seconds = time.process_time() - started
        each.append(seconds / rows)
        lines.append(f"| {rows:,} | {seconds:.2f} | {1e6 * seconds / rows:.0f} |")
    return lines, each[2] <= MOST_GROWTH * each[1]


def write(parts: Mapping[str, Sequence[str]]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        head, _, rest = text.partition(begin)
        _, _, tail = rest.partition(end)
        if not rest or not tail:
            raise SystemExit(f"{PAGE}: no part {name!r} between markers")
        text = head + begin + "\n" + "\n".join(lines) + "\n\n" + end + tail
    PAGE.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, help="campaigns per cell")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--no-page", action="store_true", help="print only")
    given = parser.parse_args()
    assert all(name in [entry.name for entry in RULES] for name in rules())
    jobs = [(rule, ranking, given.runs) for ranking in RANKINGS for rule in rules()]
    cells: dict[tuple[str, str], Cell] = {}
    with ProcessPoolExecutor(given.jobs) as pool:
        for job, cell in zip(jobs, pool.map(measured, jobs), strict=True):
            cells[job[:2]] = cell
            print(f"{job[0]}, {job[1]}: {_shown(cell[SHOWN])}", file=sys.stderr, flush=True)
    worst, sound = worst_table(cells)
    ends, cheap = benign(max(20, given.runs // 20))
    times, linear = timing()
    counts = (
        f"{given.runs:,} campaigns per cell ({max(1, given.runs // 4):,} for heuristics), seed 7, "
        f"{max(20, given.runs // 20)} for the benign pool of 20,000 rows, seed 11."
    )
    parts = {"counts": [counts], "errors": error_table(cells), "worst": worst, "benign": ends, "timing": times}
    for name, lines in parts.items():
        print(f"\n{name}", *lines, sep="\n")
    if not given.no_page:
        write(parts)
    for what, holds in (
        ("valid rules keep their promise", sound),
        ("a valid rule is in time", cheap),
        ("linear", linear),
    ):
        print(f"{what}: {'yes' if holds else 'NO'}")
    return 0 if sound and cheap and linear else 1


if __name__ == "__main__":
    sys.exit(main())
