"""The process in which one backend is measured: ``python -m activecover.lab.grid._frontier_worker TASK``."""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from typing import Any

import numpy as np

from activecover.errors import ActiveCoverError
from activecover.frontier import Frontier, choose_frontier, measure_recall
from activecover.lab.grid._frontier import open_stored
from activecover.pool import PackedBits, Pool, VectorsLike, bit_vectors

_WARM_ROWS = 200
_RECALL_SAMPLE = 50
_SAY_EVERY = 0.5


class Memory:
    """Tracks the peak growth of this process's own memory, without mapped files.

    A thread samples it while the backend is built. Afterwards it is sampled only on request, since a second thread
    would disturb the timed steps.
    """

    def __init__(self) -> None:
        self._before = self.peak = own_memory()
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()

    def _look(self) -> None:
        while not self._done.wait(0.005):
            self.peak = max(self.peak, own_memory())

    def stop_looking(self) -> None:
        """End the thread."""
        self._done.set()
        self._watch.join()

    def growth(self) -> int:
        """Peak growth in bytes over all samples so far."""
        self.peak = max(self.peak, own_memory())
        return self.peak - self._before


def own_memory() -> int:
    """Bytes of memory of this process, without mapped files if the system reports them separately."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            sizes = {line.partition(":")[0]: line.split()[1] for line in status if line.startswith("RssAnon")}
        return 1024 * int(sizes["RssAnon"])
    except (OSError, KeyError):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def say(**what: object) -> None:
    """Print one line of JSON for the parent process."""
    print(json.dumps(what), flush=True)


def warm_up(task: dict[str, Any], pool: Pool) -> None:
    """Load compiled code and libraries before timing starts."""
    rows = np.setdiff1d(np.arange(min(_WARM_ROWS, len(pool))), task["withdrawn"])
    if len(rows) < 3:
        return
    part: VectorsLike = pool.take(rows)
    if pool.kind == "bits":
        part = PackedBits(bit_vectors(pool.take(rows)).view(np.uint8)[:, : -(-pool.dimensions // 8)], pool.dimensions)
    small = Pool(part, metric=pool.metric)
    frontier = choose_frontier(small, task["backend"])
    for row in (0, 1):
        frontier.retire([row])
        frontier.add([row], small.take([row]))
        frontier.nearest(1)


def sequence(frontier: Frontier, pool: Pool, task: dict[str, Any]) -> tuple[list[int], list[float]]:
    """The rows in the order asked, all labelled positive, and the seconds of each step."""
    order: list[int] = []
    seconds: list[float] = []
    end = time.perf_counter() + task["seconds"]
    said = 0.0
    found = frontier.nearest(1).rows
    while len(found) and len(order) < task["steps"] and time.perf_counter() < end:
        started = time.perf_counter()
        frontier.retire(found)
        frontier.add(found, pool.take(found))
        following = frontier.nearest(1).rows
        seconds.append(time.perf_counter() - started)
        order.append(int(found[0]))
        found = following
        if time.perf_counter() - said > _SAY_EVERY:
            said = time.perf_counter()
            say(done=len(order))
    return order, seconds


def throughput(frontier: Frontier, pool: Pool, task: dict[str, Any]) -> tuple[float | None, list[int]]:
    """Rows per second in batches, all labelled positive, and the rows."""
    rows: list[int] = []
    started = time.perf_counter()
    for _ in range(task["batches"]):
        found = frontier.nearest(task["batch"]).rows
        if not len(found) or time.perf_counter() - started > task["seconds"]:
            break
        frontier.retire(found)
        frontier.add(found, pool.take(found))
        rows += found.tolist()
    return (len(rows) / (time.perf_counter() - started) if rows else None), rows


def measure(task: dict[str, Any]) -> dict[str, Any]:
    """All figures of one backend."""
    pool = open_stored(task)
    warm_up(task, pool)
    gc.collect()
    memory = Memory()
    started = time.perf_counter()
    frontier = choose_frontier(pool, task["backend"])
    build = time.perf_counter() - started
    memory.stop_looking()
    say(done=0)
    start = task["start"]
    frontier.retire(start)
    frontier.add(start, pool.take(start))
    order, seconds = sequence(frontier, pool, task)
    rate, more = throughput(frontier, pool, task)
    growth = memory.growth()
    recall = None
    if not frontier.exact:
        frontier.remove([*start, *order, *more])
        frontier.restore([*start, *order, *more])
        recall = measure_recall(pool, frontier, choose_frontier(pool), sample=_RECALL_SAMPLE, seed=task["seed"])
    return {
        "exact": frontier.exact, "build_seconds": build, "memory": growth, "order": order,
        "step_p50": float(np.percentile(seconds, 50)) if seconds else None,
        "step_p99": float(np.percentile(seconds, 99)) if seconds else None,
        "batch_rows_per_second": rate, "recall": recall,
    }  # fmt: skip


def main(argument: str) -> None:
    """Run the task and print its measurements."""
    try:
        say(**measure(json.loads(argument)))
    except ActiveCoverError as wrong:
        say(refused=str(wrong), input=True)
    except MemoryError:
        say(refused="not enough memory")


if __name__ == "__main__":
    main(sys.argv[1])
