"""Computing cells in one or more processes, within a time budget."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from activecover.errors import ActiveCoverError, InputError
from activecover.lab.datasets import DATASETS, data_folder, load_dataset, need
from activecover.lab.grid._cells import Cell
from activecover.lab.grid._compute import CellRunner, Plan, fits, one_thread
from activecover.lab.grid._grid import Grid
from activecover.lab.grid._protocol import METHODS
from activecover.lab.grid._ray import compute_on_ray
from activecover.lab.grid._reading import OURS, check_reading
from activecover.learners import LEARNERS, make_learner
from activecover.parallel import one_blas_thread

#: Called with the number of finished cells and the total.
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
    """All cells of some data sets, labels and methods, ordered by run so that every task gets its share."""
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
    """Compute the missing cells of a plan; return whether all are done.

    Parameters
    ----------
    plan : Plan
        The cells.
    out : path
        The folder of the grid; existing cells are kept.
    jobs : int
        Number of processes; each uses one BLAS thread.
    budget : float, optional
        Seconds after which no further cell is started.
    watch : callable, optional
        Called with the progress.
    engine : {"process", "ray"}
        Where the processes run: on this machine, or on the nodes of a Ray cluster.
    address : str, optional
        The Ray cluster to join; by default one is started on this machine.
    """
    if jobs < 1:
        raise InputError(f"{jobs} jobs: give a number from 1")
    if engine not in ENGINES:
        raise InputError(f"unknown engine {engine!r}: choose {' or '.join(ENGINES)}")
    if address is not None and engine != "ray":
        raise InputError(f"address {address!r} is for a Ray cluster: use engine ray")
    deadline = None if budget is None else time.time() + budget
    with Grid(out, create=True) as grid:
        grid.check_setting("seed", str(plan.seed))
        grid.check_reading(plan.reading)
        wanted = set(plan.cells)
        # The number of cells of other plans in the folder stays the same, unless other processes are running.
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
                f"{len(failed)} of {jobs} workers ended early (exit code {failed[0]}); run the command again to resume"
            )
        return not left


def _compute_in_processes(
    plan: Plan, out: Path, jobs: int, deadline: float | None, progress: Callable[[], None]
) -> list[int]:
    """Share the cells among processes on this machine; return the exit codes of those that failed."""
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
        # An interruption loses only the cells in progress.
        for worker in workers:
            worker.terminate()
            worker.join()
    if not complaints.empty():
        raise InputError(complaints.get())
    return [worker.exitcode for worker in workers if worker.exitcode]


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Start workers with SIGINT blocked: Ctrl-C reaches all processes, but this one ends the workers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(plan: Plan, out: Path, deadline: float | None, complaints: SimpleQueue[str]) -> None:
    """Run one worker process; input errors are reported by the parent."""
    try:
        one_thread()
        _compute_cells(plan, out, deadline)
    except ActiveCoverError as wrong:
        complaints.put(str(wrong))


def _compute_cells(plan: Plan, out: Path, deadline: float | None) -> None:
    """Claim, compute and store cells until none is left."""
    runner = CellRunner(plan, out / "embeddings")
    with Grid(out) as grid, one_blas_thread():
        done = grid.done()
        seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        for result in grid.results():
            seconds[result.cell.dataset, result.cell.method].append(result.seconds)
        for cell in plan.cells:
            if cell in done:
                continue
            if not fits(seconds[cell.dataset, cell.method], deadline):
                return  # continuing with faster cells would favour their methods
            if _is_orphan():
                return
            if grid.claim(cell):
                result = runner.compute(cell)
                grid.finish([result])
                seconds[cell.dataset, cell.method].append(result.seconds)
                runner.tidy(cell, grid)


def _is_orphan() -> bool:
    """Whether the parent process was killed, so that nothing waits for more results."""
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()


def _code(method: str) -> str:
    """A method's name as used in tables, after checking that it can run on a sample."""
    entry = LEARNERS[method]
    make_learner(method, explore=0)
    return entry.code or entry.name


def _labels_of(name: str, data_dir: Path | None) -> list[str]:
    source = DATASETS.build(name)
    if not source.bundled:
        need(data_folder(data_dir) / source.name, source.name)
    return list(source.counts) or load_dataset(name, data_dir).classes
