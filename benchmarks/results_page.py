"""Write docs/results.md and its figures from a folder of finished cells.

    python benchmarks/results_page.py [build/grid]

The sentences under "Where ours differs from the paper's, and why" are those of docs/results-notes.md.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from activecover.cli._bench import markdown_table
from activecover.errors import ActiveCoverError
from activecover.lab.datasets import DATASETS
from activecover.lab.draw import draw_grid
from activecover.lab.grid import METHODS, Grid, Result, compare, paper_auc, summarise, table_rows
from activecover.metrics import Score

ROOT = Path(__file__).resolve().parents[1]
Scores = Mapping[tuple[str, str], Mapping[str, Score]]

INTRODUCTION = """\
# Results

The paper's experiments, done again. Written by `make results`; do not edit. How to run them and how to read
the tables: [bench.md](bench.md). A cell is one run of one method on one task (a label of a data set as the positive class).

Figures are AUC in percent (the mean, over batches, of the percentage of positives found;
[simulation.md](simulation.md) has the formula) ± a 95 % band over the runs. **Bold**: best, or tied with the best, which
means that the bands overlap. NA: no model could be fitted. -: not run. Methods with different numbers of runs stand side
by side; the line above each table says how many each has. A band from two or three runs is rough, and a wide one makes a
tie by itself. A single run has no band and ties only if its figure lies within the best one's.
"""
#: What a reader must know before comparing a data set's figures with the paper's.
REMARKS = {
    "celeba": (
        "Ours is a subset: 20,000 images of the train split. **These rows cannot be compared with the paper's**, "
        "and the comparison above leaves them out."
    ),
}


def page(results: Sequence[Result], notes: str, pictures: Path) -> str:
    scores = summarise(results)
    there = list(dict.fromkeys(dataset for dataset, _ in scores))
    parts = [INTRODUCTION, basis(results), comparison(scores, results)]
    parts.append(f"## Where ours differs from the paper's, and why\n\n{notes.strip()}\n")
    parts += [section(name, [r for r in results if r.cell.dataset == name], pictures) for name in there]
    return "\n".join(parts).rstrip() + "\n"


def basis(results: Sequence[Result]) -> str:
    """What was computed, with what, and how long it took."""
    seconds = sum(result.seconds for result in results)
    lines = [
        "## What they rest on",
        "",
        f"{len(results):,} cells, {seconds / 3600:.1f} hours of computing in all, embeddings not counted.",
        "",
        "| made with | cells |",
        "|---|---:|",
    ]
    counts: dict[str, int] = defaultdict(int)
    for result in results:
        counts[result.made_with] += 1
    lines += [f"| {made.replace('=', ' ').replace('|', '/')} | {count:,} |" for made, count in sorted(counts.items())]
    return "\n".join(lines) + "\n"


def comparison(scores: Scores, results: Sequence[Result]) -> str:
    """Ours against the paper's, by data set."""
    found = [one for one in compare(scores) if one.dataset not in REMARKS]
    lines = ["## Next to the paper's", ""]
    if not found:
        return "\n".join([*lines, "None of the tasks can be compared with the paper's."]) + "\n"
    methods = [method for method in METHODS if any(method in one.difference for one in found)]
    lines += [
        "Mean over the tasks of a data set, ours / paper's, where both have a figure:",
        "",
        *table(
            ["data set", *methods],
            [[one.dataset, *(means(scores, one.dataset, method) for method in methods)] for one in found],
        ),
        "",
        "Mean difference and, in brackets, mean absolute difference over the same tasks, in points of AUC:",
        "",
        *table(
            ["data set", *methods],
            [[one.dataset, *(pair(one.difference.get(method)) for method in methods)] for one in found],
        ),
        "",
        "In how many tasks EC is best or tied with the best, and in how many it is so alone. Wide bands make ties, so every "
        "method of a task is taken with the same number of runs here; with a single one there are no bands and no ties.",
        "",
        *wins_table(results, [one.dataset for one in found]),
        "",
        "Mean rank correlation (Spearman) of the methods with the paper's: "
        + ", ".join(f"{one.dataset} {number(one.rank_agreement)}" for one in found)
        + ".",
        "",
        "The tables of means rest on the following runs:",
        "",
        *[f"- {one.dataset}: {runs_of(r for r in results if r.cell.dataset == one.dataset)}" for one in found],
    ]
    return "\n".join(lines) + "\n"


def wins_table(results: Sequence[Result], datasets: Sequence[str]) -> list[str]:
    """How often EC wins, with the same number of runs for all methods of a task."""
    alike = same_runs(results)
    runs: dict[str, set[int]] = defaultdict(set)
    for (dataset, _), by_method in summarise(alike).items():
        runs[dataset] |= {score.runs for score in by_method.values() if score.available}
    means = summarise(results)
    rows = []
    for one in compare(summarise(alike)):
        if one.dataset in datasets:
            highest = sum(
                max((score.mean, method) for method, score in by_method.items() if score.available)[1] == "EC"
                for (dataset, _), by_method in means.items()
                if dataset == one.dataset
            )
            low, high = min(runs[one.dataset]), max(runs[one.dataset])
            rows.append([
                one.dataset, str(one.tasks), f"{low}" if low == high else f"{low} to {high}", str(one.wins),
                str(one.paper_wins), str(one.alone), str(one.paper_alone), str(highest),
            ])  # fmt: skip
    heading = [
        "data set", "tasks", "runs", "best or tied: ours", "paper's", "alone: ours", "paper's",
        "highest mean over all runs",
    ]  # fmt: skip
    return table(heading, rows)


def same_runs(results: Sequence[Result]) -> list[Result]:
    """Of each task, as many runs of every method as all its methods have, the first ones."""
    there: dict[tuple[str, str], dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        there[result.cell.dataset, result.cell.label][result.cell.method].append(result)
    kept: list[Result] = []
    for by_method in there.values():
        count = min(len(members) for members in by_method.values())
        for members in by_method.values():
            kept += sorted(members, key=lambda one: one.cell.run)[:count]
    return kept


def section(name: str, results: Sequence[Result], pictures: Path) -> str:
    """One data set: its runs, its table, its differences to the paper, its figure."""
    scores = summarise(results)
    summary = next((entry.summary for entry in DATASETS if entry.name == name), "")
    lines = [f"## {name}", ""]
    if summary:
        lines += [f"{summary[0].upper()}{summary[1:]}.", ""]
    if name in REMARKS:
        lines += [REMARKS[name], ""]
    lines += [f"Runs per task: {runs_of(results)}.", "", markdown_table(table_rows(scores))]
    gone = sorted({(r.cell.label, r.cell.method, r.reason) for r in results if r.reason})
    if gone:
        lines += [f"{sum(r.reason is not None for r in results):,} cells had no result, for instance: "
                  + "; ".join(f"{label} {method}: {reason}" for label, method, reason in gone[:3]) + ".", ""]  # fmt: skip
    if name not in REMARKS:
        lines += differences(scores)
    if any(result.curve is not None for result in results):
        shown = results if name not in REMARKS else [as_subset(result) for result in results]
        picture = draw_grid(pictures / f"results-{name}.png", shown)
        lines += [f"![{name}: positives found after each batch](images/{picture.name})", ""]
        lines += ["Curves are means over the runs; methods with five runs or more have their 95 % band.", ""]
    return "\n".join(lines)


def as_subset(result: Result) -> Result:
    """The same, under a name that the picture shows as a subset."""
    return replace(result, cell=replace(result.cell, dataset=f"{result.cell.dataset} (subset)"))


def differences(scores: Scores) -> list[str]:
    """Ours minus the paper's, task by task, folded away."""
    paper = paper_auc()
    known = [task for task in scores if any((*task, method) in paper for method in scores[task])]
    if not known:
        return []
    methods = [method for method in METHODS if any(method in scores[task] for task in known)]
    rows = [[" ".join(task), *(gap(scores[task].get(m), paper.get((*task, m))) for m in methods)] for task in known]
    shown = table(["task", *methods], rows)
    return ["<details><summary>Ours minus the paper's, in points of AUC, the same runs</summary>", "", *shown, "",
            "</details>", ""]  # fmt: skip


def runs_of(results: Iterable[Result]) -> str:
    """The runs per task, methods with the same number together: "EC, O 100; A-IF 5"."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    labels = set()
    for result in results:
        counts[result.cell.method][result.cell.label] += 1
        labels.add(result.cell.label)
    groups: dict[str, list[str]] = defaultdict(list)
    for method in sorted(counts, key=lambda code: (code not in METHODS, METHODS.index(code) if code in METHODS else 0)):
        by_label = counts[method]
        low, high = min(by_label.values()), max(by_label.values())
        text = f"{low}" if low == high else f"{low} to {high}"
        if len(by_label) < len(labels):
            text += f" (on {len(by_label)} of {len(labels)} labels)"
        groups[text].append(method)
    return "; ".join(f"{', '.join(methods)} {text}" for text, methods in groups.items())


def means(scores: Scores, dataset: str, method: str) -> str:
    paper = paper_auc()
    pairs = [
        (by_method[method].mean, theirs)
        for (name, label), by_method in scores.items()
        if name == dataset and method in by_method and by_method[method].available
        and (theirs := paper.get((name, label, method))) is not None
    ]  # fmt: skip
    if not pairs:
        return "-"
    return " / ".join(f"{sum(side) / len(pairs):.1f}" for side in zip(*pairs, strict=True))


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(heading)} |", f"|---|{'---:|' * (len(heading) - 1)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]


def gap(ours: Score | None, theirs: float | None) -> str:
    return "-" if ours is None or not ours.available or theirs is None else f"{ours.mean - theirs:+.1f}"


def pair(difference: tuple[float, float] | None) -> str:
    return "-" if difference is None else f"{difference[0]:+.1f} ({difference[1]:.1f})"


def number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", nargs="?", type=Path, default=ROOT / "build" / "grid", help="folder of finished cells")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the page goes, and images/ beside it")
    given = parser.parse_args()
    notes = ROOT / "docs" / "results-notes.md"
    try:
        with Grid(given.grid) as grid:
            results = list(grid.results())
        if not results:
            raise ActiveCoverError(f"{given.grid}: no cell is finished yet")
        (given.docs / "images").mkdir(parents=True, exist_ok=True)
        text = page(results, notes.read_text(encoding="utf-8"), given.docs / "images")
    except (ActiveCoverError, OSError) as wrong:
        print(f"results_page.py: {wrong}", file=sys.stderr)
        return 2
    (given.docs / "results.md").write_text(text, encoding="utf-8")
    print(f"written: {given.docs / 'results.md'} from {len(results):,} cells")
    return 0


if __name__ == "__main__":
    sys.exit(main())
