"""A critical-difference picture: which learners differ over tasks, and which cannot be told apart.

Left, the paper's grid: every task (data set and label) ranks the methods by their mean AUC over the runs that all of
them have. Right, the pools: every pool ranks the learners by their mean labels to 95 % over the starts that all have.
Friedman's test asks whether ranks differ at all; a bar joins learners whose mean ranks differ by less than Nemenyi's
critical difference at .05 (Demšar 2006). Only what is in results/ is drawn.

    python benchmarks/critical_difference.py [--out docs/images/critical-difference.png]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from activecover.draw import pyplot
from learners_page import ROOT, SINGLE, TITLES, at_most_sampled, labels_to, read_places

METHODS = {"O": "offline", "EC": "explore-commit", "AP": "auto-positives", "AU": "auto"}
LEARNERS = ("auto", *SINGLE)

Ranks = npt.NDArray[np.float64]


def grid_ranks() -> tuple[Ranks, list[str]]:
    """The rank of each method on each task of the grid; 1 is best."""
    auc: dict[tuple[str, str], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for name in ("cells", "learners"):
        with gzip.open(ROOT / "results" / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                if line["method"] in METHODS and line["curve"]:
                    value = float(np.mean(json.loads(line["curve"])))
                    auc[line["dataset"], line["label"]][line["method"]][int(line["run"])] = value
    ranks, names = [], []
    for (dataset, label), by_method in sorted(auc.items()):
        runs = set.intersection(*(set(by_method[method]) for method in METHODS))
        if runs:
            means = [np.mean([by_method[method][run] for run in runs]) for method in METHODS]
            ranks.append(stats.rankdata(-np.array(means)))
            names.append(f"{dataset} {label}")
    return np.array(ranks), names


def pool_ranks() -> tuple[Ranks, list[str]]:
    """The rank of each learner on each pool; 1 is best."""
    ranks, names = [], []
    for pool, by_learner in read_places(ROOT / "results" / "pools.csv.gz").items():
        if not at_most_sampled(pool) or not set(LEARNERS) <= set(by_learner):
            continue
        starts = set.intersection(*(set(by_learner[name]) for name in LEARNERS))
        if starts:
            means = [np.mean([labels_to(by_learner[name][start], 0.95) for start in starts]) for name in LEARNERS]
            ranks.append(stats.rankdata(means))
            names.append(pool)
    return np.array(ranks), names


def critical_difference(learners: int, tasks: int) -> float:
    """Nemenyi's: mean ranks that differ by more differ significantly at .05."""
    quantile = stats.studentized_range.ppf(0.95, learners, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(learners * (learners + 1) / (6 * tasks)))


def groups(means: npt.NDArray[np.float64], width: float) -> list[tuple[float, float]]:
    """The longest stretches of mean ranks that lie within the critical difference."""
    ordered = np.sort(means)
    found: list[tuple[float, float]] = []
    for first in ordered:
        last = float(ordered[ordered <= first + width][-1])
        if last > first and (not found or last > found[-1][1]):
            found.append((float(first), last))
    return found


def draw(axes: Any, ranks: Ranks, names: list[str], title: str) -> None:
    """One scale of ranks, the best on the left, a name per learner and a bar per group."""
    means, count = ranks.mean(axis=0), len(names)
    width = critical_difference(count, len(ranks))
    test = stats.friedmanchisquare(*ranks.T).pvalue
    axes.set(xlim=(0.7, count + 0.3), ylim=(-count - 1.2, 1.6), yticks=[])
    axes.xaxis.set_ticks_position("top")
    axes.set_xticks(range(1, count + 1))
    axes.set_title(f"{title}: {len(ranks)} tasks, Friedman p = {test:.1g}", fontsize=10, pad=22)
    axes.spines[["left", "right", "bottom"]].set_visible(False)
    axes.plot([1, 1 + width], [1.0, 1.0], color="black", linewidth=1.6)
    axes.text(1 + width / 2, 1.15, f"critical difference {width:.2f}", ha="center", va="bottom", fontsize=8)
    bars = groups(means, width)
    for place, (first, last) in enumerate(bars):
        height = 0.45 - 0.3 * place
        axes.plot([first - 0.04, last + 0.04], [height, height], color="#0072B2", linewidth=3.5, solid_capstyle="butt")
    below = 0.45 - 0.3 * len(bars)
    for place, learner in enumerate(np.argsort(means, kind="stable").tolist()):
        height = below - 0.6 - place * (count + 0.4 + below) / count
        axes.plot([means[learner]] * 2, [1.6, height], color="0.55", linewidth=0.8)
        left = means[learner] < (count + 1) / 2
        axes.text(
            means[learner] + (0.06 if left else -0.06), height, f"{names[learner]}  {means[learner]:.2f}",
            ha="left" if left else "right", va="center", fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images" / "critical-difference.png")
    given = parser.parse_args()
    (grid, tasks), (pools, names) = grid_ranks(), pool_ranks()
    if len(grid) < 2 or len(pools) < 2:
        print("too few tasks are finished for a picture", file=sys.stderr)
        return 1
    figure, both = pyplot().subplots(1, 2, figsize=(11, 3.6), layout="constrained")
    sets = [title for name, title in TITLES.items() if any(task.startswith(f"{name} ") for task in tasks)]
    draw(both[0], grid, list(METHODS.values()), f"AUC, {', '.join(sets)}")
    draw(both[1], pools, list(LEARNERS), "Labels to 95 %, pools")
    figure.savefig(given.out, dpi=110)
    print(f"{given.out.name}: {len(tasks)} tasks; {', '.join(names)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
