"""Measurements of every backend on one pool: build time, memory, time per step, and order."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError, check_count
from activecover.frontier import FRONTIERS, compare_orders
from activecover.pool import PackedBits, Pool, bit_vectors, dense_vectors

#: Called with the backend's name, the steps done, and the total.
Watcher = Callable[[str, int, int], None]
_WORKER = "activecover.lab.grid._frontier_worker"


@dataclass(frozen=True, slots=True)
class Measurement:
    """The cost of one backend on a pool, or the ``reason`` why it could not be measured.

    Times are in seconds; memory is the peak growth of the process in bytes. ``same_order`` tells whether the steps
    asked in the exact order. For an approximate backend, ``recall`` is the fraction of exact nearest rows found, and
    ``overlap`` the fraction of rows that its steps have in common with the exact ones.
    """

    backend: str
    exact: bool | None = None
    build_seconds: float | None = None
    memory: int | None = None
    steps: int = 0
    step_p50: float | None = None
    step_p99: float | None = None
    batch_rows_per_second: float | None = None
    same_order: bool | None = None
    recall: float | None = None
    overlap: float | None = None
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """All figures by name."""
        return asdict(self)


def measure_frontiers(
    pool: Pool,
    backends: Sequence[str] | None = None,
    *,
    positives: Sequence[int] | npt.NDArray[np.integer] | None = None,
    steps: int = 200,
    batch: int = 100,
    batches: int = 5,
    limit: float = 300.0,
    seed: int = 0,
    watch: Watcher | None = None,
) -> list[Measurement]:
    """Measure frontiers on a pool, each in its own process.

    A run starts from some positives. A *step* labels one row positive (closes it and adds it as a positive) and asks
    for the nearest row. Every label is positive, which is the most expensive case. Batches follow.

    Parameters
    ----------
    pool : Pool
        The pool; erased rows stay erased.
    backends : sequence of str, optional
        Names of frontiers; by default all that support this kind of pool.
    positives : sequence of int, optional
        Rows to start from; by default ten at random.
    steps, batch, batches : int
        Number of single-row steps, rows per batch, and number of batches.
    limit : float
        Seconds per backend; one that takes longer is stopped and reported.
    seed : int
        Seed for drawing rows.
    watch : callable, optional
        Called with the progress.

    Returns
    -------
    list of Measurement
    """
    for name, value in (("steps", steps), ("batch", batch), ("batches", batches)):
        check_count(name, value)
    check_count("seed", seed, 0)
    there = np.flatnonzero(~pool.withdrawn)
    if len(there) < 2:
        raise InputError(f"a pool of {len(there)} rows: there is nothing to measure")
    if positives is None:
        positives = np.random.default_rng(seed).choice(there, min(10, len(there) // 2), replace=False)
    task = {
        "start": np.asarray(positives, np.int64).tolist(), "steps": steps, "batch": batch, "batches": batches,
        "seconds": limit / 3, "seed": seed,
    }  # fmt: skip
    chosen = fitting(pool) if backends is None else [FRONTIERS[name].name for name in dict.fromkeys(backends)]
    with _stored(pool) as stored:
        answers = []
        for name in chosen:
            answers.append(_measure(name, task | stored, limit, watch or _nobody))
            # A backend that was named but is unavailable is an error; one that merely does not apply is skipped.
            if backends is not None and answers[-1].get("input"):
                raise InputError(f"{name}: {answers[-1]['refused']}")
        exact = next((answer["order"] for answer in answers if answer.get("exact")), None)
        if exact is None and any("order" in answer for answer in answers):
            # No exact backend was requested, but one is needed for comparison.
            exact = _measure("auto", task | stored, limit, watch or _nobody).get("order")
    return [_judged(answer, exact) for answer in answers]


def fitting(pool: Pool) -> list[str]:
    """The frontiers that support a pool's kind."""
    return [entry.name for entry in FRONTIERS if getattr(entry.build, "kind", "dense") == pool.kind]


def _nobody(backend: str, done: int, total: int) -> None:
    pass


@contextmanager
def _stored(pool: Pool) -> Iterator[dict[str, Any]]:
    """Write the stored vectors to a file for the other processes; distances stay the same."""
    with tempfile.TemporaryDirectory(prefix="activecover-bench-") as folder:
        rows, columns = len(pool), pool.dimensions
        path = Path(folder) / ("pool.npz" if pool.kind == "sparse" else "pool.npy")
        if pool.kind == "sparse":
            sparse.save_npz(path, sparse.csr_matrix(pool.vectors), compressed=False)
        else:
            np.save(path, _plain(pool))
        withdrawn = np.flatnonzero(pool.withdrawn).tolist()
        yield {"path": str(path), "kind": pool.kind, "rows": rows, "columns": columns, "withdrawn": withdrawn}


def _plain(pool: Pool) -> npt.NDArray[Any]:
    """The array to write: packed bits, or dense vectors with finite values in erased rows."""
    if pool.kind == "bits":
        packed = np.ascontiguousarray(bit_vectors(pool.vectors)).view(np.uint8)
        return np.ascontiguousarray(packed[:, : -(-pool.dimensions // 8)])
    vectors = np.ascontiguousarray(dense_vectors(pool.vectors))
    return np.nan_to_num(vectors) if pool.withdrawn.any() else vectors


def open_stored(task: dict[str, Any]) -> Pool:
    """Open the pool stored by the parent process."""
    if task["kind"] == "sparse":
        pool = Pool(sparse.csr_array(sparse.load_npz(task["path"])))
    elif task["kind"] == "bits":
        pool = Pool(PackedBits(np.load(task["path"]), task["columns"]), metric="jaccard")
    else:
        pool = Pool(np.load(task["path"], mmap_mode="r"))
    return pool.without(task["withdrawn"]) if task["withdrawn"] else pool


def _measure(backend: str, task: dict[str, Any], limit: float, watch: Watcher) -> dict[str, Any]:
    """Measure one backend in a separate process, and return its reports."""
    watch(backend, 0, task["steps"])
    command = [sys.executable, "-m", _WORKER, json.dumps(task | {"backend": backend})]
    answer: dict[str, Any] = {}
    slow = threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:

        def stop() -> None:
            slow.set()
            worker.kill()

        clock = threading.Timer(limit, stop)
        clock.start()
        try:
            assert worker.stdout is not None
            assert worker.stderr is not None
            for line in worker.stdout:
                answer = json.loads(line)
                if "done" in answer:
                    watch(backend, answer["done"], task["steps"])
            said = worker.stderr.read().strip()
        finally:
            clock.cancel()
            if worker.poll() is None:
                worker.kill()
    if "order" in answer or "refused" in answer:
        return answer | {"backend": backend}
    if slow.is_set():
        return {"backend": backend, "refused": f"not finished within {limit:g} s"}
    last = said.splitlines()[-1] if said else f"its process ended with code {worker.returncode}"
    return {"backend": backend, "refused": last}


def _judged(answer: dict[str, Any], exact: list[int] | None) -> Measurement:
    if "refused" in answer:
        return Measurement(answer["backend"], reason=answer["refused"])
    compared = None if exact is None else compare_orders(answer["order"], exact)
    return Measurement(
        backend=answer["backend"], exact=answer["exact"], build_seconds=answer["build_seconds"],
        memory=answer["memory"], steps=len(answer["order"]), step_p50=answer["step_p50"], step_p99=answer["step_p99"],
        batch_rows_per_second=answer["batch_rows_per_second"], recall=answer["recall"],
        same_order=None if compared is None else compared.same, overlap=None if compared is None else compared.overlap,
    )  # fmt: skip
