"""Computing cells: alone, in several processes, within a budget of time."""

from __future__ import annotations

import multiprocessing
import os
import platform
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from activecover.bench._grid import Cell, Grid, Result
from activecover.bench._protocol import METHODS, Trial, prepare_trial, run_trial, trial_key
from activecover.datasets import DATASETS, Dataset, data_folder, load_dataset, need
from activecover.embed import EmbeddingCache
from activecover.errors import ActiveCoverError, InputError
from activecover.learners import LEARNERS, make_learner
from activecover.metrics import recall_by_batch
from activecover.parallel import one_blas_thread

#: Called with how many cells are finished, and how many there are.
Watcher = Callable[[int, int], None]
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Plan:
    """Which cells to compute: every combination, or only some labels of some data sets."""

    cells: tuple[Cell, ...]
    seed: int = 0
    data_dir: Path | None = None

    def __len__(self) -> int:
        return len(self.cells)


def make_plan(
    datasets: Sequence[str],
    *,
    labels: Sequence[str] | None = None,
    methods: Sequence[str] = METHODS,
    runs: int = 1,
    seed: int = 0,
    data_dir: Path | None = None,
) -> Plan:
    """All cells of some data sets, labels and methods, run by run so that every task gets its share."""
    if runs < 1:
        raise InputError(f"{runs} runs: give a number from 1")
    codes = [_code(method) for method in dict.fromkeys(methods)]
    tasks: list[tuple[str, str]] = []
    for name in dict.fromkeys(datasets):
        known = _labels_of(name, data_dir)
        for label in labels if labels is not None else known:
            if label not in known:
                raise InputError(f"{name} has no label {label!r} (labels are: {', '.join(known)})")
            tasks.append((name, label))
    cells = [Cell(name, label, code, run) for run in range(runs) for name, label in tasks for code in codes]
    return Plan(tuple(cells), seed, data_dir)


def run_plan(
    plan: Plan,
    out: Path,
    *,
    jobs: int = 1,
    budget: float | None = None,
    watch: Watcher | None = None,
) -> bool:
    """Compute what is missing of a plan; whether all of it is done now.

    Parameters
    ----------
    plan : Plan
        The cells.
    out : path
        The folder of the grid; cells that are there already are kept.
    jobs : int
        Processes; each keeps BLAS to one thread.
    budget : float, optional
        Seconds after which no further cell is begun.
    watch : callable, optional
        Told of progress.
    """
    if jobs < 1:
        raise InputError(f"{jobs} jobs: give a number from 1")
    deadline = None if budget is None else time.time() + budget
    with Grid(out, create=True) as grid:
        grid.check_setting("seed", str(plan.seed))
        wanted = set(plan.cells)
        context = multiprocessing.get_context("spawn")
        complaints = context.SimpleQueue()
        arguments = (plan, out, deadline, complaints)
        workers = [context.Process(target=_work, args=arguments, daemon=True) for _ in range(jobs)]
        for worker in workers:
            worker.start()
        try:
            # Cells of other plans in the same folder stay as many as they are, unless someone else is at work.
            others = len(grid) - len(wanted & grid.done())
            while any(worker.is_alive() for worker in workers):
                if watch is not None:
                    watch(min(len(grid) - others, len(wanted)), len(wanted))
                for worker in workers:
                    worker.join(_POLL_SECONDS / jobs)
        finally:
            # An interruption loses the cells under way and nothing else.
            for worker in workers:
                worker.terminate()
                worker.join()
        if not complaints.empty():
            raise InputError(complaints.get())
        left = wanted - grid.done()
        if watch is not None:
            watch(len(wanted) - len(left), len(wanted))
        failed = [worker.exitcode for worker in workers if worker.exitcode]
        if failed and left:
            raise ActiveCoverError(
                f"{len(failed)} of {jobs} workers ended early (exit code {failed[0]}); run it again to go on"
            )
        return not left


def _work(plan: Plan, out: Path, deadline: float | None, complaints: Any) -> None:
    """One process; what is wrong with the input is for the parent to say."""
    try:
        _one_thread()
        _compute_cells(plan, out, deadline)
    except ActiveCoverError as wrong:
        complaints.put(str(wrong))
    except KeyboardInterrupt:
        return


def _compute_cells(plan: Plan, out: Path, deadline: float | None) -> None:
    """Claim a cell, compute it, keep it, until nothing is left to claim."""
    desk = _Desk(plan, out)
    with Grid(out) as grid, one_blas_thread():
        done = grid.done()
        seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        for result in grid.results():
            seconds[result.cell.dataset, result.cell.method].append(result.seconds)
        for cell in plan.cells:
            if cell in done:
                continue
            if not _fits(seconds[cell.dataset, cell.method], deadline):
                return  # going on with quicker cells would favour their methods
            if grid.claim(cell):
                result = desk.compute(cell)
                grid.finish([result])
                seconds[cell.dataset, cell.method].append(result.seconds)
                desk.tidy(cell, grid)


def _fits(known: Sequence[float], deadline: float | None) -> bool:
    """Whether a cell of this kind is likely to be done in time, by those before it."""
    if deadline is None:
        return True
    return time.time() + (float(np.mean(known)) if known else 0.0) < deadline


def _one_thread() -> None:
    os.environ["ACTIVECOVER_THREADS"] = "1"
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        import torch
    except ImportError:
        return
    # Sums are split by threads: with one thread an embedding is the same to the bit in every process.
    torch.set_num_threads(1)


class _Desk:
    """What a worker keeps at hand: the data set and the trial that it used last."""

    def __init__(self, plan: Plan, out: Path) -> None:
        self._plan = plan
        self._needed: Counter[tuple[str, int, str | None]] = Counter()
        for cell in plan.cells:
            self._needed[cell.dataset, cell.run, None] += 1
            self._needed[cell.dataset, cell.run, cell.label] += 1
        self._cache = out / "embeddings"
        self._dataset: Dataset | None = None
        self._trial: tuple[Any, Trial] | None = None

    def compute(self, cell: Cell) -> Result:
        trial = self._trial_of(cell)
        started = time.perf_counter()
        try:
            trace = run_trial(trial, cell.label, cell.method)
            curve, reason = tuple(recall_by_batch(trace).tolist()), trace.unavailable
        except (ValueError, ArithmeticError, MemoryError, np.linalg.LinAlgError) as wrong:
            # One cell that fails is a result too; the others go on.
            curve, reason = (), f"{type(wrong).__name__}: {wrong}".splitlines()[0]
        return Result(
            cell, None if reason else curve, reason, time.perf_counter() - started, made_with(self._plan.seed)
        )

    def tidy(self, cell: Cell, grid: Grid) -> None:
        """Drop an embedding once every cell that needs it is done."""
        dataset = self._dataset_of(cell)
        label = None if dataset.shared else cell.label
        # Cells of another plan may be among those counted: then the embedding is dropped a little early,
        # and made again.
        if grid.count(cell.dataset, cell.run, label) >= self._needed[cell.dataset, cell.run, label]:
            recipe = DATASETS.build(dataset.name).recipe
            key = trial_key(dataset, recipe, cell.label, cell.run, self._plan.seed)
            EmbeddingCache(self._cache).drop(key)

    def _trial_of(self, cell: Cell) -> Trial:
        dataset = self._dataset_of(cell)
        key = (cell.dataset, cell.run, "" if dataset.shared else cell.label)
        if self._trial is None or self._trial[0] != key:
            self._trial = None  # the old vectors go before the new ones come
            trial = prepare_trial(dataset, cell.label, cell.run, seed=self._plan.seed, cache=self._cache)
            self._trial = (key, trial)
        return self._trial[1]

    def _dataset_of(self, cell: Cell) -> Dataset:
        if self._dataset is None or self._dataset.name != cell.dataset:
            self._dataset, self._trial = None, None
            self._dataset = load_dataset(cell.dataset, self._plan.data_dir)
        return self._dataset


def made_with(seed: int) -> str:
    """The seed and the versions that a result rests on."""
    import scipy
    import sklearn

    from activecover import __version__

    parts = {
        "seed": str(seed),
        "activecover": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    if "torch" in sys.modules:
        parts["torch"] = sys.modules["torch"].__version__
    return " ".join(f"{name}={version}" for name, version in parts.items())


def _code(method: str) -> str:
    """A method as tables call it, after a try whether it can be put on a sample at all."""
    entry = LEARNERS[method]
    make_learner(method, explore=0)
    return entry.code or entry.name


def _labels_of(name: str, data_dir: Path | None) -> list[str]:
    source = DATASETS.build(name)
    if not source.bundled:
        need(data_folder(data_dir) / source.name, source.name)
    return list(source.counts) or load_dataset(name, data_dir).classes
