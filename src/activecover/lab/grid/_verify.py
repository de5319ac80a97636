"""Recomputed cells: identical to the last digit, or close to it for a known reason."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from activecover.errors import InputError
from activecover.lab.datasets import DATASETS, data_folder
from activecover.lab.grid._cells import Cell, Result
from activecover.lab.grid._compute import Plan
from activecover.lab.grid._grid import Grid, reading_of
from activecover.lab.grid._provenance import causes, parts_of
from activecover.lab.grid._run import Watcher, run_plan

#: AUC points by which a cell may change if the processor, a version or the code differs.
TOLERANCE = 0.05
Verdict = Literal["same", "close", "differs"]


@dataclass(frozen=True, slots=True)
class Check:
    """A cell compared with its recomputation: the verdict, the AUC difference in points, and other differences."""

    cell: Cell
    verdict: Verdict
    difference: float
    causes: tuple[str, ...]


def verify(
    results: Iterable[Result],
    *,
    sample: int,
    seed: int = 0,
    data_dir: Path | None = None,
    jobs: int = 1,
    watch: Watcher | None = None,
) -> list[Check]:
    """Compute random cells again and compare them.

    Parameters
    ----------
    results : iterable of Result
        The earlier results.
    sample : int
        Number of cells to compute; every method of every data set is chosen once before any is chosen twice.
    seed : int
        Seed for the choice.
    data_dir : path, optional
        The folder of the data sets; cells of missing data sets are skipped.
    jobs, watch
        As for :func:`run_plan`.

    Returns
    -------
    list of Check
    """
    if sample < 1:
        raise InputError(f"sample {sample}: give a number of cells from 1")
    here = [result for result in results if _is_here(result.cell.dataset, data_dir)]
    if not here:
        raise InputError("none of the cells can be computed again: their data sets are missing")
    chosen = choose(here, sample, seed)
    again = _compute([result.cell for result in chosen], *_made_of(chosen), data_dir, jobs, watch)
    return [compare_cells(result, again[result.cell]) for result in chosen]


def choose(results: Sequence[Result], sample: int, seed: int) -> list[Result]:
    """Random cells, spread over the methods of all data sets."""
    random = np.random.default_rng(seed)
    columns: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for place in random.permutation(len(results)):
        result = results[place]
        columns[result.cell.dataset, result.cell.method].append(result)
    turns = [(turn, column) for column, members in columns.items() for turn in range(len(members))]
    # Sorting preserves the order of the columns, which is random.
    taken = sorted(turns, key=lambda turn: turn[0])[:sample]
    return sorted((columns[column][turn] for turn, column in taken), key=lambda one: one.cell)


def compare_cells(before: Result, now: Result) -> Check:
    """The verdict on one cell."""
    why = tuple(causes(before.made_with, now.made_with))
    if before.curve == now.curve and (before.curve is not None or before.reason == now.reason):
        return Check(before.cell, "same", 0.0, why)
    if before.auc is None or now.auc is None:
        return Check(before.cell, "differs", float("nan"), why)
    difference = abs(before.auc - now.auc)
    return Check(before.cell, "close" if why and difference <= TOLERANCE else "differs", difference, why)


def _compute(
    cells: list[Cell], seed: int, reading: str, data_dir: Path | None, jobs: int, watch: Watcher | None
) -> dict[Cell, Result]:
    # By run, like a grid, since cells of a run share its vectors.
    plan = Plan(tuple(sorted(cells, key=lambda cell: (cell.dataset, cell.run))), seed, data_dir, reading)
    with tempfile.TemporaryDirectory(prefix="activecover-verify-") as folder:
        run_plan(plan, Path(folder), jobs=jobs, watch=watch)
        with Grid(folder) as grid:
            return {result.cell: result for result in grid.results()}


def _is_here(dataset: str, data_dir: Path | None) -> bool:
    known = any(entry.name == dataset for entry in DATASETS)
    return known and (DATASETS.build(dataset).bundled or (data_folder(data_dir) / dataset).exists())


def _made_of(results: Sequence[Result]) -> tuple[int, str]:
    """The seed and the reading of results, which are the same for all cells of a grid."""
    made = {(int(parts_of(result.made_with).get("seed", "0")), reading_of(result)) for result in results}
    if len(made) > 1:
        raise InputError(
            f"the cells were made with {len(made)} different seeds or readings: verify those of one grid at a time"
        )
    return made.pop()
