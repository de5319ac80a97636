"""Computing cells: alone, in several processes, within a budget of time."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from activecover.errors import ActiveCoverError, InputError
from activecover.lab.datasets import DATASETS, data_folder, load_dataset, need
from activecover.lab.grid._cells import Cell
from activecover.lab.grid._desk import Desk, Plan, fits, one_thread
from activecover.lab.grid._grid import Grid
from activecover.lab.grid._protocol import METHODS
from activecover.lab.grid._ray import compute_on_ray
from activecover.lab.grid._reading import OURS, check_reading
from activecover.learners import LEARNERS, make_learner
from activecover.parallel import one_blas_thread

#: Called with how many cells are finished, and how many there are.
Watcher = Callable[[int, int], None]
ENGINES = ("process", "ray")
_POLL_SECONDS = 0.5


def make_plan(
    datasets: Sequence[str],
    *,
    labels: Sequence[str] | None = None,
    methods: Sequence[str] = METHODS,
    runs: int = 1,
    seed: int = 0,
    data_dir: Path | None = None,
    reading: str = OURS,
) -> Plan:
    """All cells of some data sets, labels and methods, run by run so that every task gets its share."""
    if runs < 1:
        raise InputError(f"{runs} runs: give a number from 1")
    check_reading(reading)
    codes = [_code(method) for method in dict.fromkeys(methods)]
    tasks: list[tuple[str, str]] = []
    for name in dict.fromkeys(datasets):
        known = _labels_of(name, data_dir)
        for label in labels if labels is not None else known:
            if label not in known:
                raise InputError(f"{name} has no label {label!r} (labels are: {', '.join(known)})")
            tasks.append((name, label))
    cells = [Cell(name, label, code, run) for run in range(runs) for name, label in tasks for code in codes]
    return Plan(tuple(cells), seed, data_dir, reading)


def run_plan(
    plan: Plan,
    out: Path,
    *,
    jobs: int = 1,
    budget: float | None = None,
    watch: Watcher | None = None,
    engine: str = "process",
    address: str | None = None,
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
    engine : {"process", "ray"}
        Where the processes are: on this machine, or on the nodes of a Ray cluster.
    address : str, optional
        The Ray cluster to join; where not given, one is started on this machine.
    """
    if jobs < 1:
        raise InputError(f"{jobs} jobs: give a number from 1")
    if engine not in ENGINES:
        raise InputError(f"unknown engine {engine!r}: choose {' or '.join(ENGINES)}")
    if address is not None and engine != "ray":
        raise InputError(f"address {address!r} is that of a Ray cluster: use engine ray")
    deadline = None if budget is None else time.time() + budget
    with Grid(out, create=True) as grid:
        grid.check_setting("seed", str(plan.seed))
        grid.check_reading(plan.reading)
        wanted = set(plan.cells)
        # Cells of other plans in the same folder stay as many as they are, unless someone else is at work.
        others = len(grid) - len(wanted & grid.done())

        def progress() -> None:
            if watch is not None:
                watch(min(len(grid) - others, len(wanted)), len(wanted))

        failed: list[int] = []
        if engine == "ray":
            compute_on_ray(plan, grid, jobs=jobs, deadline=deadline, address=address, progress=progress)
        else:
            failed = _compute_in_processes(plan, out, jobs, deadline, progress)
        left = wanted - grid.done()
        if watch is not None:
            watch(len(wanted) - len(left), len(wanted))
        if failed and left:
            raise ActiveCoverError(
                f"{len(failed)} of {jobs} workers ended early (exit code {failed[0]}); run it again to go on"
            )
        return not left


def _compute_in_processes(
    plan: Plan, out: Path, jobs: int, deadline: float | None, progress: Callable[[], None]
) -> list[int]:
    """Let processes of this machine share the cells; the exit codes of those that failed."""
    context = multiprocessing.get_context("spawn")
    complaints = context.SimpleQueue()
    arguments = (plan, out, deadline, complaints)
    workers = [context.Process(target=_work, args=arguments, daemon=True) for _ in range(jobs)]
    with _sigint_blocked():
        for worker in workers:
            worker.start()
    try:
        while any(worker.is_alive() for worker in workers):
            progress()
            for worker in workers:
                worker.join(_POLL_SECONDS / jobs)
    finally:
        # An interruption loses the cells under way and nothing else.
        for worker in workers:
            worker.terminate()
            worker.join()
    if not complaints.empty():
        raise InputError(complaints.get())
    return [worker.exitcode for worker in workers if worker.exitcode]


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Let workers inherit that SIGINT is blocked: Ctrl-C in a terminal reaches all, and this process ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(plan: Plan, out: Path, deadline: float | None, complaints: Any) -> None:
    """One process; what is wrong with the input is for the parent to say."""
    try:
        one_thread()
        _compute_cells(plan, out, deadline)
    except ActiveCoverError as wrong:
        complaints.put(str(wrong))


def _compute_cells(plan: Plan, out: Path, deadline: float | None) -> None:
    """Claim a cell, compute it, keep it, until nothing is left to claim."""
    desk = Desk(plan, out / "embeddings")
    with Grid(out) as grid, one_blas_thread():
        done = grid.done()
        seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        for result in grid.results():
            seconds[result.cell.dataset, result.cell.method].append(result.seconds)
        for cell in plan.cells:
            if cell in done:
                continue
            if not fits(seconds[cell.dataset, cell.method], deadline):
                return  # going on with quicker cells would favour their methods
            if _is_orphan():
                return
            if grid.claim(cell):
                result = desk.compute(cell)
                grid.finish([result])
                seconds[cell.dataset, cell.method].append(result.seconds)
                desk.tidy(cell, grid)


def _is_orphan() -> bool:
    """Whether the process that started this one was killed: nobody waits for more."""
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()


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
