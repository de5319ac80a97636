"""What a batch costs under each rule, as a ratio to explore-commit.

Clustered vectors (as in core.py), 100 random labels and then batches of 5 %, of which a few are timed: the
proposal and the telling. All rules are told the same rows, those that explore-commit asks for, so that they
work on the same labels. Processor time is counted, so that other work on the machine does not matter. The neighbour
graph is made before and timed on its own; where it is approximate, its recall is measured.

    python benchmarks/learners.py [--rows 100000] [--dimensions 50] [--batches 2] [--full] [--out FILE]
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

import numpy as np

from activecover import Pool, make_learner
from activecover.graph import graph_recall, shared_graph
from activecover.learners import Labels, Learner
from core import make_task

RULES = [
    "explore-commit", "density-commit", "spread-commit", "local-contrast", "knn-posterior", "spread-posterior", "rocchio",
    "contrast", "linear", "auto-positives", "auto",
]  # fmt: skip
SAMPLE = 100
OUT = Path(__file__).resolve().parents[1] / "results" / "learner-cost.csv"


def begin(name: str, pool: Pool, first: Labels) -> Learner:
    learner = make_learner(name, explore=first.rows.tolist()).begin(pool)
    learner.tell(first)
    return learner


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=50)
    parser.add_argument("--batches", type=int, default=2)
    parser.add_argument("--full", action="store_true", help="1,000,000 rows as well")
    parser.add_argument("--rules", default=",".join(RULES))
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    for rows in [given.rows, 1_000_000] if given.full else [given.rows]:
        keep(given.out, rows, measure(rows, given.dimensions, given.batches, given.rules.split(",")))
    return 0


def keep(path: Path, rows: int, ratios: dict[str, float]) -> None:
    """Write the ratios, in place of those that were measured before on as many rows."""
    kept: dict[tuple[int, str], float] = {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            kept = {(int(line["rows"]), line["rule"]): float(line["ratio"]) for line in csv.DictReader(file)}
    kept.update({(rows, rule): round(ratio, 2) for rule, ratio in ratios.items()})
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("rows", "rule", "ratio"))
        writer.writerows((*key, ratio) for key, ratio in sorted(kept.items()))


def measure(rows: int, dimensions: int, batches: int, rules: list[str]) -> dict[str, float]:
    """The cost of each rule, explore-commit's being 1."""
    points, truth = make_task(rows, dimensions, 0)
    pool = Pool(points)
    print(f"{rows:,} x {dimensions}, {int(truth.sum()):,} positives, batches of 5 %")
    started = time.process_time()
    shared_graph(pool)
    print(f"neighbour graph, once: {time.process_time() - started:.1f} s; recall {graph_recall(pool):.3f}", flush=True)
    sample = np.random.default_rng(0).permutation(rows)[:SAMPLE]
    first = Labels.of(np.arange(SAMPLE), sample, truth[sample], True)
    leader, told = begin("explore-commit", pool, first), []
    for number in range(batches):
        chosen = leader.propose(rows // 20).rows
        told.append(Labels.of(SAMPLE + number * len(chosen) + np.arange(len(chosen)), chosen, truth[chosen], False))
        leader.tell(told[-1])
    taken: dict[str, float] = {}
    for name in ["explore-commit", *(rule for rule in rules if rule != "explore-commit")]:
        learner = begin(name, pool, first)
        started = time.process_time()
        for labels in told:
            learner.propose(rows // 20)
            learner.tell(labels)
        learner.propose(rows // 20)
        seconds = (time.process_time() - started) / batches
        taken[name] = seconds
        ratio = seconds / taken["explore-commit"]
        print(f"{name:18} {seconds:8.2f} s per batch, {ratio:6.2f} times explore-commit", flush=True)
    return {name: seconds / taken["explore-commit"] for name, seconds in taken.items()}


if __name__ == "__main__":
    sys.exit(main())
