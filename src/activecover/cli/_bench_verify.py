"""``activecover bench verify``: recompute some cells and compare."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from activecover.cli import _options as options
from activecover.cli._show import meter, out, print_json
from activecover.errors import InputError
from activecover.lab.grid import TOLERANCE, Check, Grid, Result, verify


def verify_command(
    cells: Annotated[Path, typer.Argument(help="A file written by bench export, or the folder of a grid.")],
    sample: Annotated[int, typer.Option("--sample", min=1, help="How many cells to recompute.")] = 30,
    datasets: Annotated[str | None, typer.Option("--datasets", help="Only these data sets.")] = None,
    methods: Annotated[str | None, typer.Option("--methods", help="Only these methods, by code.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Number of processes.")] = 1,
    seed: options.Seed = 0,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="Folder of the data sets.")] = None,
    json: options.Json = False,
) -> int:
    """Recompute random cells: with the same code on the same machine, they agree to the last digit."""
    wanted_sets, wanted_methods = options.split_names(datasets), options.split_names(methods)
    chosen = [
        result for result in _read(cells)
        if (wanted_sets is None or result.cell.dataset in wanted_sets)
        and (wanted_methods is None or result.cell.method in wanted_methods)
    ]  # fmt: skip
    if not chosen:
        raise InputError(f"{cells}: no cell has the given data sets and methods")
    with meter("cells", quiet=json) as shown:
        checks = verify(
            chosen, sample=sample, seed=seed, data_dir=data_dir, jobs=jobs,
            watch=lambda done, all_: shown.update("cells", done, all_),
        )  # fmt: skip
    wrong = sum(check.verdict == "differs" for check in checks)
    if json:
        print_json({"cells": [_plain(check) for check in checks], "differ": wrong})
    else:
        for check in checks:
            out().print(_line(check), markup=False, soft_wrap=True)
        same = sum(check.verdict == "same" for check in checks)
        close = len(checks) - same - wrong
        out().print(
            f"{len(checks):,} cells recomputed: {same:,} the same to the last digit, {close:,} within "
            f"{TOLERANCE:g} points of AUC, {wrong:,} different",
            markup=False,
        )
    return 1 if wrong else 0


def _read(cells: Path) -> list[Result]:
    if cells.is_dir():
        with Grid(cells) as grid:
            return list(grid.results())
    with tempfile.TemporaryDirectory(prefix="activecover-verify-") as folder, Grid(folder, create=True) as grid:
        grid.include(cells)
        return list(grid.results())


def _line(check: Check) -> str:
    cell = check.cell
    text = f"{cell.dataset} {cell.label} {cell.method} run {cell.run}: {check.verdict}"
    if check.verdict == "same":
        return text
    by = "one of them has no result" if math.isnan(check.difference) else f"by {check.difference:.4f} points"
    return f"{text} {by} ({'; '.join(check.causes) or 'computed with the same code, processor and versions'})"


def _plain(check: Check) -> dict[str, object]:
    cell = check.cell
    return {
        "dataset": cell.dataset,
        "label": cell.label,
        "method": cell.method,
        "run": cell.run,
        "verdict": check.verdict,
        "difference": None if math.isnan(check.difference) else check.difference,
        "causes": list(check.causes),
    }
