"""Computing cells on a Ray cluster: the driver claims and stores cells, and workers compute them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from activecover.errors import ActiveCoverError, InputError
from activecover.frontier.ray import Actor, connect, disconnect, import_ray
from activecover.lab.grid._cells import Cell, Result
from activecover.lab.grid._compute import CellRunner, Plan, fits, one_thread
from activecover.lab.grid._grid import Grid
from activecover.parallel import one_blas_thread

_POLL_SECONDS = 0.5
#: Attempts at a cell whose worker is lost each time.
_ATTEMPTS = 3


class Worker:
    """One worker process; its results go back to the driver, which holds the grid."""

    def __init__(self, plan: Plan, out: Path) -> None:
        one_thread()
        # On a node without access to the folder, embeddings are not shared between workers.
        self._runner = CellRunner(plan, out / "embeddings" if out.is_dir() else None)

    def compute(self, cell: Cell) -> Result:
        """Compute a cell."""
        with one_blas_thread():
            return self._runner.compute(cell)

    def drop(self, cell: Cell, through: tuple[bool, bool]) -> None:
        """Drop the embedding of a cell, if nothing needs it any more."""
        self._runner.drop(cell, through)

    def finish_writing(self) -> None:
        """Do nothing; the answer shows that all earlier calls are done."""


class _Staff:
    """The workers, and the current cell of each."""

    def __init__(self, plan: Plan, out: Path, jobs: int) -> None:
        self._ray = import_ray()
        self._plan, self._out = plan, out.resolve()
        room = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._idle = [self._hire() for _ in range(min(jobs, room))]
        self._busy: dict[Any, tuple[Any, Cell]] = {}
        self._begun: Counter[Cell] = Counter()

    @property
    def free(self) -> bool:
        return bool(self._idle)

    @property
    def at_work(self) -> bool:
        return bool(self._busy)

    def give(self, cell: Cell) -> None:
        """Let an idle worker compute a cell."""
        worker = self._idle.pop(0)
        self._begun[cell] += 1
        self._busy[worker.compute.remote(cell)] = (worker, cell)

    def results(self) -> Iterator[Result]:
        """New results; a cell whose worker was lost is started again by another."""
        errors = self._ray.exceptions
        ready, _ = self._ray.wait(list(self._busy), timeout=_POLL_SECONDS)
        for reference in ready:
            worker, cell = self._busy.pop(reference)
            try:
                result: Result = self._ray.get(reference)
            except errors.RayTaskError as wrong:
                raise _complaint(wrong.cause) from None
            except errors.RayError as lost:
                self._ray.kill(worker)
                self._idle.append(self._hire())
                if self._begun[cell] >= _ATTEMPTS:
                    reason = str(lost).strip().partition("\n")[0]
                    raise ActiveCoverError(
                        f"the worker was lost {_ATTEMPTS} times with {cell.dataset} {cell.label} {cell.method} "
                        f"({reason}); run the command again to resume"
                    ) from None
                self.give(cell)
                continue
            self._idle.append(worker)
            yield result

    def drop(self, cell: Cell, through: tuple[bool, bool]) -> None:
        """Let an idle worker drop an embedding, without waiting for it."""
        if any(through) and self._idle:
            self._idle[-1].drop.remote(cell, through)

    def dismiss(self) -> None:
        """End all workers, even busy ones."""
        for worker in [*self._idle, *(worker for worker, _ in self._busy.values())]:
            self._ray.kill(worker)

    def finish_writing(self) -> None:
        """Wait until the workers have finished their last calls."""
        self._ray.wait(
            [worker.finish_writing.remote() for worker in self._idle], num_returns=len(self._idle), timeout=10
        )

    def _hire(self) -> Actor:
        hired: Actor = self._ray.remote(Worker).options(num_cpus=1, max_restarts=0).remote(self._plan, self._out)
        return hired


def compute_on_ray(
    plan: Plan,
    grid: Grid,
    *,
    jobs: int,
    deadline: float | None,
    address: str | None,
    progress: Callable[[], None],
) -> None:
    """Compute the missing cells of a plan; results are stored here as they arrive."""
    started = connect(address, cpus=jobs)
    staff = None
    try:
        staff = _Staff(plan, grid.folder, jobs)
        _go_through(plan, grid, staff, deadline, progress)
    finally:
        # An interruption loses only the cells in progress.
        if staff is not None:
            staff.dismiss()
        if started:
            disconnect()


def _go_through(plan: Plan, grid: Grid, staff: _Staff, deadline: float | None, progress: Callable[[], None]) -> None:
    runner = CellRunner(plan, None)
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for result in grid.results():
        seconds[result.cell.dataset, result.cell.method].append(result.seconds)
    done = grid.done()
    left = iter([cell for cell in plan.cells if cell not in done])
    more = True
    while True:
        while more and staff.free:
            cell = next(left, None)
            # Continuing with faster cells would favour their methods.
            more = cell is not None and fits(seconds[cell.dataset, cell.method], deadline)
            if more and cell is not None and grid.claim(cell):
                staff.give(cell)
        if not staff.at_work:
            staff.finish_writing()
            return
        for result in staff.results():
            grid.finish([result])
            seconds[result.cell.dataset, result.cell.method].append(result.seconds)
            staff.drop(result.cell, runner.through(result.cell, grid))
        progress()


def _complaint(cause: BaseException) -> ActiveCoverError:
    if isinstance(cause, ActiveCoverError):
        return InputError(str(cause))
    return ActiveCoverError(f"a worker failed: {type(cause).__name__}: {cause}".partition("\n")[0])
