"""The work of a grid worker, wherever it runs: computing cells one by one."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from activecover.lab.datasets import Dataset, load_dataset
from activecover.lab.grid._cells import Cell, Result
from activecover.lab.grid._grid import Grid
from activecover.lab.grid._protocol import Trial, prepare_trial, run_trial, trial_key
from activecover.lab.grid._provenance import made_with
from activecover.lab.grid._reading import OURS, experiment_of
from activecover.lab.networks import EmbeddingCache
from activecover.metrics import recall_by_batch


@dataclass(frozen=True, slots=True)
class Plan:
    """The cells to compute: every combination, or only some labels of some data sets."""

    cells: tuple[Cell, ...]
    seed: int = 0
    data_dir: Path | None = None
    #: Which grids the one-class methods are tuned on.
    reading: str = OURS

    def __len__(self) -> int:
        return len(self.cells)


def fits(known: Sequence[float], deadline: float | None) -> bool:
    """Whether a cell of this kind is likely to finish in time, given the earlier ones."""
    if deadline is None:
        return True
    return time.time() + (float(np.mean(known)) if known else 0.0) < deadline


def one_thread() -> None:
    """Keep this process to one thread, PyTorch's included."""
    os.environ["ACTIVECOVER_THREADS"] = "1"
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        import torch
    except ImportError:
        return
    # Threads split sums: with one thread an embedding is bit-identical in every process.
    torch.set_num_threads(1)


class CellRunner:
    """Computes cells, and keeps the data set and trial that were used last."""

    def __init__(self, plan: Plan, cache: Path | None) -> None:
        self._plan = plan
        self._needed: Counter[tuple[str, int, str | None]] = Counter()
        for cell in plan.cells:
            self._needed[cell.dataset, cell.run, None] += 1
            self._needed[cell.dataset, cell.run, cell.label] += 1
        self._cache = cache
        self._dataset: Dataset | None = None
        self._trial: tuple[Any, Trial] | None = None

    def compute(self, cell: Cell) -> Result:
        """Compute a cell."""
        trial = self._trial_of(cell)
        started = time.perf_counter()
        try:
            trace = run_trial(trial, cell.label, cell.method, self._plan.reading)
            curve, reason = tuple(recall_by_batch(trace).tolist()), trace.unavailable
        except (ValueError, ArithmeticError, MemoryError, np.linalg.LinAlgError) as wrong:
            # A cell that fails is also a result; the others continue.
            curve, reason = (), f"{type(wrong).__name__}: {wrong}".splitlines()[0]
        made = made_with(self._plan.seed, self._plan.reading)
        return Result(cell, None if reason else curve, reason, time.perf_counter() - started, made)

    def tidy(self, cell: Cell, grid: Grid) -> None:
        """Drop an embedding once every cell that needs it is done."""
        self.drop(cell, self.through(cell, grid))

    def through(self, cell: Cell, grid: Grid) -> tuple[bool, bool]:
        """Whether all cells of the same run are done, and all cells of the same run and label."""
        # If cells of another plan are counted too, the embedding is dropped a little early and computed again.
        run, label = (
            grid.count(cell.dataset, cell.run, label) >= self._needed[cell.dataset, cell.run, label]
            for label in (None, cell.label)
        )
        return run, label

    def drop(self, cell: Cell, through: tuple[bool, bool]) -> None:
        """Drop the embedding of a cell if nothing needs it any more, according to :meth:`through`."""
        if self._cache is None or not any(through):
            return
        dataset = self._dataset_of(cell)
        if through[0 if dataset.shared else 1]:
            experiment = experiment_of(dataset.name, self._plan.reading)
            key = trial_key(dataset, experiment, cell.label, cell.run, self._plan.seed)
            EmbeddingCache(self._cache).drop(key)

    def _trial_of(self, cell: Cell) -> Trial:
        dataset = self._dataset_of(cell)
        key = (cell.dataset, cell.run, "" if dataset.shared else cell.label)
        if self._trial is None or self._trial[0] != key:
            self._trial = None  # free the old vectors before making new ones
            experiment = experiment_of(dataset.name, self._plan.reading)
            trial = prepare_trial(
                dataset, cell.label, cell.run, seed=self._plan.seed, experiment=experiment, cache=self._cache
            )
            self._trial = (key, trial)
        return self._trial[1]

    def _dataset_of(self, cell: Cell) -> Dataset:
        if self._dataset is None or self._dataset.name != cell.dataset:
            self._dataset, self._trial = None, None
            self._dataset = load_dataset(cell.dataset, self._plan.data_dir)
        return self._dataset
