"""Write the evidence in docs/learners.md from committed results, between its markers.

    python benchmarks/learners_page.py

Reads results/cells.csv.gz (explore-commit), results/learners.csv.gz (auto and auto-positives on the same samples and
embeddings) and results/pools.csv.gz (labels needed on real pools). What has not been computed is said to be missing.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "learners.md"
BEGIN, END = "<!-- evidence: begin -->", "<!-- evidence: end -->"
TITLES = {"letters": "Letters", "mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}
#: Runs that a data set is to have, and what is asked of auto: points over explore-commit, or a share of the way.
RUNS = {"letters": 20, "mnist": 5, "fashion_mnist": 5}
ASKED = {
    ("AU", "letters"): "+5",
    ("AU", "mnist"): "80 %",
    ("AU", "fashion_mnist"): "45 %",
    ("AP", "letters"): "+1.5",
    ("AP", "mnist"): "70 %",
    ("AP", "fashion_mnist"): "33 %",
}
SINGLE = ("explore-commit", "density-commit", "contrast", "knn-posterior", "rocchio", "linear")
#: Pools that were looked at while the portfolio was put together.
DESIGNED_ON = {"systematic_review"}
NAMES = {"AU": "auto", "AP": "auto-positives"}

Curves = dict[tuple[str, str], dict[str, dict[int, list[float]]]]
Places = dict[str, dict[str, dict[int, list[int]]]]


def read_curves(*paths: Path) -> Curves:
    """Curves by task (data set, label), method and run."""
    curves: Curves = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        if not path.exists():
            continue
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                if line["dataset"] in RUNS and line["method"] in ("EC", "AU", "AP") and line["curve"]:
                    curve = json.loads(line["curve"])
                    curves[line["dataset"], line["label"]][line["method"]][int(line["run"])] = curve
    return curves


def read_places(path: Path) -> Places:
    """After how many labels each positive was found, by pool, learner and start."""
    places: Places = defaultdict(lambda: defaultdict(dict))
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                name = f"{line['pool']} ({int(line['rows']):,})"
                places[name][line["learner"]][int(line["start"])] = json.loads(line["found_after"])
    return places


def best_possible(curves: Sequence[Sequence[float]], rows: int, positives: int) -> float:
    """The AUC of asking for all positives first, in as many batches."""
    batches = len(curves[0])
    batch = round(0.05 * (rows - 100))
    return float(np.mean(np.minimum(100.0, 100.0 * np.arange(1, batches + 1) * batch / positives)))


def holm(values: Mapping[str, float]) -> dict[str, float]:
    """p-values corrected for their number."""
    corrected, floor = {}, 0.0
    for place, (name, value) in enumerate(sorted(values.items(), key=lambda item: item[1])):
        floor = max(floor, min(1.0, value * (len(values) - place)))
        corrected[name] = floor
    return corrected


def against_explore_commit(curves: Curves, method: str, sizes: Mapping[tuple[str, str], tuple[int, int]]) -> list[str]:
    """One line per data set: the gain, the way to the best possible, and the tasks that lose."""
    lines = [
        f"| {NAMES[method]} on | runs × labels | explore-commit | {NAMES[method]} | gain | of the way | asked | worst task "
        "| tasks below by more than 1 | significantly below |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for dataset, title in TITLES.items():
        gains, worse, base, mine, room, runs = {}, {}, [], [], [], set()
        for (name, label), by_method in curves.items():
            both = sorted(set(by_method.get(method, {})) & set(by_method.get("EC", {})))
            both = [run for run in both if run < RUNS[dataset]]
            if name != dataset or not both:
                continue
            runs.add(len(both))
            old = np.array([np.mean(by_method["EC"][run]) for run in both])
            new = np.array([np.mean(by_method[method][run]) for run in both])
            gains[label] = float((new - old).mean())
            base.append(old.mean())
            mine.append(new.mean())
            room.append(best_possible([by_method["EC"][run] for run in both], *sizes[name, label]))
            if len(both) > 1:
                worse[label] = float(stats.ttest_rel(new, old, alternative="less").pvalue)
        if not gains:
            lines.append(f"| {title} | not run | | | | | {ASKED[method, dataset]} | | | |")
            continue
        way = 100 * (np.mean(mine) - np.mean(base)) / (np.mean(room) - np.mean(base))
        worst = min(gains, key=gains.__getitem__)
        below = sum(gain < -1 for gain in gains.values())
        significant = sum(value < 0.05 for value in holm(worse).values()) if worse else "-"
        counted = f"{min(runs)}" if len(runs) == 1 else f"{min(runs)} to {max(runs)}"
        lines.append(
            f"| {title} | {counted} × {len(gains)} | {np.mean(base):.2f} | {np.mean(mine):.2f} | "
            f"{np.mean(mine) - np.mean(base):+.2f} | {way:.0f} % | {ASKED[method, dataset]} | {worst} {gains[worst]:+.2f} | "
            f"{below} | {significant} |"
        )
    return [*lines, ""]


def labels_to(found: Sequence[int], share: float) -> int:
    """Labels after which a share of all positives, the known one included, was found."""
    needed = int(np.ceil(share * (len(found) + 1) - 1e-9)) - 1
    return found[needed - 1] if needed > 0 else 0


def pool_tables(places: Places) -> list[str]:
    """Labels to 95 % and to all, and auto against the best rule in hindsight."""
    if not places:
        return ["Pools: not run.", ""]
    learners = sorted({name for by in places.values() for name in by}, key=lambda name: (name != "auto", name))
    lines = []
    for share in (0.8, 0.95, 1.0):
        lines += [
            f"Labels to {share:.0%}".replace("%", " %")
            + " of the positives, mean over the starts that all learners of the pool have:",
            "",
            f"| pool | starts | {' | '.join(learners)} | auto / best single rule |",
            "|---" * (len(learners) + 3) + "|",
        ]
        ratios = []
        for pool, by_learner in places.items():
            starts = sorted(set.intersection(*(set(runs) for runs in by_learner.values())))
            if not starts:
                continue
            means = {
                name: float(np.mean([labels_to(runs[start], share) for start in starts]))
                for name, runs in by_learner.items()
            }
            single = [means[name] for name in SINGLE if name in means]
            ratio = "-"
            if "auto" in means and len(single) == len(SINGLE):
                ratios.append(means["auto"] / min(single))
                ratio = f"{ratios[-1]:.2f}"
            mark = "" if pool.split(" ")[0] in DESIGNED_ON else " *"
            shown = " | ".join(f"{means[name]:,.0f}" if name in means else "-" for name in learners)
            lines.append(f"| {pool}{mark} | {len(starts)} | {shown} | {ratio} |")
        if ratios:
            lines += [
                "",
                f"Geometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.2f}; worst {max(ratios):.2f}.",
            ]
        lines.append("")
    return [*lines, "\\* not looked at while the portfolio was put together.", ""]


def sizes() -> dict[tuple[str, str], tuple[int, int]]:
    """Rows and positives of every task."""
    from activecover.datasets import DATASETS

    found = {}
    for name in RUNS:
        counts = DATASETS.build(name).counts
        total = sum(counts.values())
        found.update({(name, label): (total, count) for label, count in counts.items()})
    return found


def main() -> int:
    curves = read_curves(ROOT / "results" / "cells.csv.gz", ROOT / "results" / "learners.csv.gz")
    task_sizes = sizes()
    lines = [
        "AUC in percent, the paper's protocol, the same samples and embeddings for all. *Of the way*: from explore-commit "
        "to asking for all positives first. *Significantly below*: tasks on which a one-sided paired t-test, corrected "
        "by Holm's method, says so at .05.",
        "",
        *against_explore_commit(curves, "AU", task_sizes),
        *against_explore_commit(curves, "AP", task_sizes),
        *pool_tables(read_places(ROOT / "results" / "pools.csv.gz")),
    ]
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    PAGE.write_text(f"{head}{BEGIN}\n" + "\n".join(lines) + f"{END}{tail}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
