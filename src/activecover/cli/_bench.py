"""``activecover bench``: the paper's experiments, its tables and its figure."""

from __future__ import annotations

import io
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from activecover.cli import _bench_frontier, _bench_verify
from activecover.cli import _options as options
from activecover.cli._show import err, meter, out, print_json, print_table
from activecover.draw import check_picture
from activecover.errors import InputError
from activecover.files import check_writable
from activecover.lab.datasets import DATASETS
from activecover.lab.draw import draw_grid
from activecover.lab.grid import METHODS, Grid, Row, compare, make_plan, paper_auc, run_plan, summarise, table_rows
from activecover.metrics import Score
from activecover.spreadsheet import GuardedWriter

app = typer.Typer(help="Run the paper's experiments, and report on them.", no_args_is_help=True)
app.command("frontier")(_bench_frontier.frontier)
app.command("verify")(_bench_verify.verify_command)

Folder = Annotated[Path, typer.Argument(help="The folder given to bench run as --out.")]
_UNITS = {"s": 1, "m": 60, "h": 3600}
_DEFAULT_PICTURE = "curves.png"


@app.command("run")
def run(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the finished cells; an existing one is resumed.")],
    datasets: Annotated[str, typer.Option("--datasets", help="Data sets, comma-separated, or all.")] = "letters",
    labels: Annotated[
        str | None, typer.Option("--labels", help="Positive classes, comma-separated; default: all.")
    ] = None,
    methods: Annotated[
        str, typer.Option("--methods", help="Methods by code or name, comma-separated, or all.")
    ] = "all",
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs per task and method.")] = 1,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Number of processes.")] = 1,
    budget: Annotated[str | None, typer.Option("--budget", help="Stop after this time: 90s, 30m, 2h.")] = None,
    engine: Annotated[str, typer.Option("--engine", help="process (this machine), or ray (a cluster).")] = "process",
    address: Annotated[
        str | None,
        typer.Option("--address", help="Address of the Ray cluster to join; default: start one on this machine."),
    ] = None,
    reading: Annotated[
        str, typer.Option("--reading", help="Grids of the one-class methods: ours, or paper (closest to its figures).")
    ] = "ours",
    seed: options.Seed = 0,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="Folder of the data sets.")] = None,
    json: options.Json = False,
) -> int:
    """Compute cells (data set, label, method, run); finished ones are kept and never recomputed."""
    names = [entry.name for entry in DATASETS] if datasets == "all" else options.split_names(datasets) or []
    chosen = list(METHODS) if methods == "all" else options.split_names(methods) or []
    seconds = None if budget is None else parse_time(budget)
    plan = make_plan(
        names, labels=options.split_names(labels), methods=chosen, runs=runs, seed=seed, data_dir=data_dir,
        reading=reading,
    )  # fmt: skip
    try:
        with meter("cells", quiet=json) as shown:
            complete = run_plan(
                plan, out_dir, jobs=jobs, budget=seconds, watch=lambda done, all_: shown.update("cells", done, all_),
                engine=engine, address=address,
            )  # fmt: skip
    except KeyboardInterrupt:
        err().print("interrupted: the finished cells are kept; run the same command again to resume")
        return 130
    with Grid(out_dir) as grid:
        done = len(set(plan.cells) & grid.done())
    if json:
        print_json({"out": str(out_dir), "cells": len(plan), "done": done, "complete": complete})
        return 0
    more = "" if complete else "; run the same command again to resume"
    out().print(f"{done:,} of {len(plan):,} cells in {out_dir}{more}", markup=False)
    return 0


@app.command("table")
def table(
    folder: Folder,
    form: Annotated[str, typer.Option("--format", help="text, markdown, latex or csv.")] = "text",
    json: options.Json = False,
) -> None:
    """Show mean AUC and band of every method on every task, with the best and its ties in bold."""
    scores = _scores(folder)
    rows = table_rows(scores)
    writers = {"markdown": markdown_table, "latex": latex_table, "csv": csv_table}
    if json:
        print_json([_plain(row) for row in rows])
    elif form in writers:
        sys.stdout.write(writers[form](rows))
    elif form == "text":
        _text_table(rows)
    else:
        raise InputError(f"--format {form!r} is unknown: choose text, markdown, latex or csv")


@app.command("plot")
def plot(
    folder: Folder,
    picture: Annotated[
        Path | None, typer.Option("--out", help=f"File for the picture; default: {_DEFAULT_PICTURE} in the folder.")
    ] = None,
    datasets: Annotated[str | None, typer.Option("--datasets", help="Only these data sets.")] = None,
    labels: Annotated[str | None, typer.Option("--labels", help="Only these labels.")] = None,
    json: options.Json = False,
) -> None:
    """Draw the paper's figure: positives found after each batch by all methods, one panel per task."""
    path = picture or folder / _DEFAULT_PICTURE
    check_picture(path)
    wanted_sets, wanted_labels = options.split_names(datasets), options.split_names(labels)
    with Grid(folder) as grid:
        check_writable(path)
        chosen = [
            result for result in grid.results()
            if (wanted_sets is None or result.cell.dataset in wanted_sets)
            and (wanted_labels is None or result.cell.label in wanted_labels)
        ]  # fmt: skip
    draw_grid(path, chosen)
    if json:
        print_json({"picture": str(path)})
    else:
        out().print(f"picture: {path}", markup=False)


@app.command("compare")
def compare_command(folder: Folder, json: options.Json = False) -> None:
    """Compare with the paper: differences by task and method, ranks, and tasks in which EC wins or ties."""
    scores = _scores(folder)
    found = compare(scores)
    if not found:
        raise InputError(f"{folder}: the paper has none of these tasks")
    if json:
        print_json(
            [
                {
                    "dataset": one.dataset,
                    "tasks": one.tasks,
                    "wins": one.wins,
                    "paper_wins": one.paper_wins,
                    "rank_agreement": None if math.isnan(one.rank_agreement) else one.rank_agreement,
                    "difference": {m: {"mean": a, "mean_absolute": b} for m, (a, b) in one.difference.items()},
                }
                for one in found
            ]
        )
        return
    _print_differences(scores)
    methods = _methods(table_rows(scores))
    print_table(
        "Mean difference and mean |difference| from the paper, in points of AUC",
        ["data set", "tasks", *methods],
        [[one.dataset, one.tasks, *(_pair(one.difference.get(method)) for method in methods)] for one in found],
    )
    print_table(
        "Tasks in which EC is best or tied with the best; correlation of the methods' ranks with the paper's",
        ["data set", "tasks", "ours", "paper", "ranks"],
        [[one.dataset, one.tasks, one.wins, one.paper_wins, _figure(one.rank_agreement)] for one in found],
    )


@app.command("export")
def export(
    folder: Folder,
    path: Annotated[Path, typer.Argument(help="The file to write: .csv or .csv.gz.")],
    json: options.Json = False,
) -> None:
    """Write all finished cells to one file, to keep or to use elsewhere."""
    with Grid(folder) as grid:
        count = grid.export(path)
    _say({"cells": count, "file": str(path)}, f"{count:,} cells written to {path}", json)


@app.command("include")
def include(
    folder: Folder,
    path: Annotated[Path, typer.Argument(help="A file written by bench export.")],
    json: options.Json = False,
) -> None:
    """Add cells that were computed elsewhere."""
    with Grid(folder, create=True) as grid:
        count = grid.include(path)
    _say({"new": count, "file": str(path)}, f"{count:,} new cells from {path}", json)


def parse_time(text: str) -> float:
    """Seconds from 90s, 30m or 2h.

    Examples
    --------
    >>> parse_time("2h"), parse_time("90s"), parse_time("1.5m")
    (7200.0, 90.0, 90.0)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    if match is None or float(match[1]) == 0:
        raise InputError(f"time {text!r}: write a time such as 90s, 30m or 2h")
    return float(match[1]) * _UNITS[match[2]]


def markdown_table(rows: Sequence[Row]) -> str:
    """A Markdown table: a row per task, a column per method."""
    methods = _methods(rows)
    lines = [f"| task | {' | '.join(methods)} |", f"|---|{'---:|' * len(methods)}"]
    for task, by_method in _by_task(rows).items():
        cells = [_marked(by_method.get(method), "**{}**") for method in methods]
        lines.append(f"| {' '.join(task)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def latex_table(rows: Sequence[Row]) -> str:
    """A LaTeX tabular, as in the paper's appendix."""
    methods = _methods(rows)
    lines = [r"\begin{tabular}{l" + "r" * len(methods) + "}", "task & " + " & ".join(methods) + r" \\ \hline"]
    for task, by_method in _by_task(rows).items():
        cells = [_marked(by_method.get(method), r"\textbf{{{}}}").replace("±", r"$\pm$") for method in methods]
        lines.append(" ".join(task).replace("_", r"\_") + " & " + " & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\end{tabular}"]) + "\n"


def csv_table(rows: Sequence[Row]) -> str:
    """CSV with the columns dataset,label,method,auc,band,runs,best."""
    text = io.StringIO()
    writer = GuardedWriter(text, lineterminator="\n")
    writer.write(["dataset", "label", "method", "auc", "band", "runs", "best"])
    for row in rows:
        auc = "" if math.isnan(row.score.mean) else f"{row.score.mean:.4f}"
        band = "" if math.isnan(row.score.band) else f"{row.score.band:.4f}"
        writer.write([row.dataset, row.label, row.method, auc, band, row.score.runs, int(row.best)])
    return text.getvalue()


def _text_table(rows: Sequence[Row]) -> None:
    methods = _methods(rows)
    terminal = sys.stdout.isatty()
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("task", no_wrap=True)
    for method in methods:
        shown.add_column(method, justify="right", no_wrap=True)
    for task, by_method in _by_task(rows).items():
        cells = []
        for method in methods:
            row = by_method.get(method)
            mark = "" if terminal or row is None or not row.best else "*"
            cells.append(Text(_figures(row) + mark, style="bold" if row is not None and row.best else ""))
        shown.add_row(Text(" ".join(task)), *cells)
    out().print(shown)
    counts = sorted({row.score.runs for row in rows if row.score.available})
    runs = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0] if counts else 0}"
    for row in rows:
        if row.score.failed and row.score.available:
            text = f"{row.dataset} {row.label} {row.method}: {row.score.failed} further runs have no result ({row.score.unavailable})"
            out().print(text, markup=False)
    best = "bold" if terminal else "*"
    out().print(
        f"AUC in percent ± 95 % band over {runs} runs; {best} = best or tied with the best; NA = no fit", markup=False
    )


def _print_differences(scores: Mapping[tuple[str, str], Mapping[str, Score]]) -> None:
    paper = paper_auc()
    methods = _methods(table_rows(scores))
    rows = []
    for task, by_method in scores.items():
        cells: list[str | None] = []
        for method in methods:
            theirs = paper.get((*task, method))
            known = method in by_method and by_method[method].available and theirs is not None
            cells.append(f"{by_method[method].mean - (theirs or 0):+.1f}" if known else None)
        rows.append([" ".join(task), *cells])
    print_table("Ours minus the paper's, in points of AUC", ["task", *methods], rows)


def _scores(folder: Path) -> dict[tuple[str, str], dict[str, Score]]:
    with Grid(folder) as grid:
        scores = summarise(grid.results())
    if not scores:
        raise InputError(f"{folder}: no cell is finished yet")
    return scores


def _by_task(rows: Sequence[Row]) -> dict[tuple[str, str], dict[str, Row]]:
    tasks: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        tasks.setdefault((row.dataset, row.label), {})[row.method] = row
    return tasks


def _methods(rows: Sequence[Row]) -> list[str]:
    there = {row.method for row in rows}
    return [method for method in METHODS if method in there] + sorted(there - set(METHODS))


def _figures(row: Row | None) -> str:
    if row is None:
        return "-"
    if not row.score.available:
        return "NA"
    band = "" if math.isnan(row.score.band) else f" ±{row.score.band:.1f}"
    return f"{row.score.mean:.1f}{band}"


def _marked(row: Row | None, bold: str) -> str:
    return bold.format(_figures(row)) if row is not None and row.best else _figures(row)


def _pair(difference: tuple[float, float] | None) -> str | None:
    return None if difference is None else f"{difference[0]:+.1f} {difference[1]:.1f}"


def _figure(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 2)


def _plain(row: Row) -> dict[str, object]:
    return {
        "dataset": row.dataset, "label": row.label, "method": row.method, "auc": _figure(row.score.mean),
        "band": _figure(row.score.band), "runs": row.score.runs, "best": row.best, "reason": row.score.unavailable, "failed": row.score.failed,
    }  # fmt: skip


def _say(data: dict[str, object], text: str, json: bool) -> None:
    if json:
        print_json(data)
    else:
        out().print(text, markup=False)
