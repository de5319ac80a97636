"""A second component that the exploration sample missed: found with insurance, at the price that the plan says.

A pool with two components of positives far from each other, in a cloud of other rows around the first. The first is
known. Live campaigns, with and without insurance; counted are the labels until the second component is hit.
Finished runs are kept in results/insurance.csv; the table goes into docs/stopping.md. Exits with 1 if the mean cost is
not within 15 % of the prediction, or if the plain learner gets there before it has exhausted the surroundings.

    python benchmarks/insurance.py [--runs 400] [--no-page]
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from _page import write_parts
from activecover import Campaign, Pool
from activecover.stopping import labels_to_hit

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "stopping.md"
KEPT = ROOT / "results" / "insurance.csv"
FIRST, SECOND, OTHERS = 60, 40, 1900
SHARES = (0.1, 0.2)
MOST_OFF = 0.15


def make_pool() -> Pool:
    random = np.random.default_rng(0)
    first = random.normal(size=(FIRST, 2)) * 0.3
    second = random.normal(size=(SECOND, 2)) * 0.3 + 100.0
    others = random.normal(size=(OTHERS, 2)) * 8
    return Pool(np.concatenate([first, second, others]))


def labels_until_hit(pool: Pool, seed: int, share: float | None) -> int:
    """Of a campaign in which only the first component is known."""
    campaign = Campaign(pool, "explore-commit", explore=0, known=["0"], seed=seed, random_share=share)
    count = 0
    while True:
        (item,) = campaign.ask()
        row = int(item.id)
        count += 1
        if FIRST <= row < FIRST + SECOND:
            return count
        campaign.tell(item.id, row < FIRST)


def read_kept() -> dict[tuple[float, int], int]:
    if not KEPT.exists():
        return {}
    with KEPT.open(newline="", encoding="utf-8") as file:
        return {(float(line["share"]), int(line["seed"])): int(line["labels"]) for line in csv.DictReader(file)}


def measured(pool: Pool, share: float, runs: int) -> list[int]:
    kept = read_kept()
    new = not KEPT.exists()
    with KEPT.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(["share", "seed", "labels"])
        for seed in range(runs):
            if (share, seed) not in kept:
                kept[share, seed] = labels_until_hit(pool, seed, share)
                writer.writerow([share, seed, kept[share, seed]])
                file.flush()
    return [kept[share, seed] for seed in range(runs)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="campaigns per share")
    parser.add_argument("--no-page", action="store_true", help="print only")
    given = parser.parse_args()
    pool = make_pool()
    near = FIRST - 1 + OTHERS
    alone = labels_until_hit(pool, 0, None)
    lines = [
        f"{given.runs} campaigns per share, {len(pool):,} rows, a component of {SECOND}, seeds 0 to {given.runs - 1}.",
        "",
        "| share of random draws | labels until it is hit, mean ± standard error | predicted | off by |",
        "|---:|---:|---:|---:|",
        f"| none | {alone:,} (all {near:,} nearer rows first) | | |",
    ]
    good = alone == near + 1
    for share in SHARES:
        costs = measured(pool, share, given.runs)
        predicted, mean = labels_to_hit(SECOND, len(pool) - 1, share), float(np.mean(costs))
        error = float(np.std(costs, ddof=1) / np.sqrt(len(costs)))
        good &= abs(mean / predicted - 1) <= MOST_OFF
        lines.append(
            f"| {share:g} | {mean:.0f} ± {error:.0f} | {predicted:.0f} | {100 * (mean / predicted - 1):+.1f} % |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    print(*lines, sep="\n")
    if not given.no_page:
        write_parts(PAGE, {"insurance": lines})
    print(f"found at the predicted price: {'yes' if good else 'NO'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
