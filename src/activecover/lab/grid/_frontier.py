"""Every backend on one pool: build time, memory, time per step, and whether the order is the exact one."""

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

#: Called with the backend's name, steps done, and steps in all.
Watcher = Callable[[str, int, int], None]
_WORKER = "activecover.lab.grid._frontier_worker"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one backend costs on a pool; ``reason`` says why where it could not be measured.

    Times are in seconds, memory in bytes: by how much the process grew at the most. ``same_order`` is
    whether the steps asked in the exact order; for an approximate backend ``recall`` is the share of
    exact nearest rows found, and ``overlap`` the share of rows that its steps share with the exact ones.
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
    """Measure frontiers on a pool, each in a process of its own.

    A run starts from some positives. A *step* tells one yes (the row is closed and added as a positive)
    and asks for the nearest row; every answer is yes, which is what costs most. Then come batches.

    Parameters
    ----------
    pool : Pool
        The pool; erased rows are left as they are.
    backends : sequence of str, optional
        Names of frontiers; by default all that serve this kind of pool.
    positives : sequence of int, optional
        Rows to start from; by default ten at random.
    steps, batch, batches : int
        Steps one row at a time, rows per batch, and how many batches.
    limit : float
        Seconds per backend; one that takes longer is stopped and says so.
    seed : int
        Of the rows that are drawn.
    watch : callable, optional
        Told of progress.

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
            # What was asked for by name and cannot be had is an error; what merely does not fit is left out.
            if backends is not None and answers[-1].get("input"):
                raise InputError(f"{name}: {answers[-1]['refused']}")
        exact = next((answer["order"] for answer in answers if answer.get("exact")), None)
        if exact is None and any("order" in answer for answer in answers):
            # Nobody asked for an exact backend; there has to be one to compare with.
            exact = _measure("auto", task | stored, limit, watch or _nobody).get("order")
    return [_judged(answer, exact) for answer in answers]


def fitting(pool: Pool) -> list[str]:
    """The frontiers that serve a pool's kind."""
    return [entry.name for entry in FRONTIERS if getattr(entry.build, "kind", "dense") == pool.kind]


def _nobody(backend: str, done: int, total: int) -> None:
    pass


@contextmanager
def _stored(pool: Pool) -> Iterator[dict[str, Any]]:
    """The stored vectors in a file that every process can open; its distances are the pool's own."""
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
    """What to put into a file: bits as they are packed, and something finite where rows were erased."""
    if pool.kind == "bits":
        packed = np.ascontiguousarray(bit_vectors(pool.vectors)).view(np.uint8)
        return np.ascontiguousarray(packed[:, : -(-pool.dimensions // 8)])
    vectors = np.ascontiguousarray(dense_vectors(pool.vectors))
    return np.nan_to_num(vectors) if pool.withdrawn.any() else vectors


def open_stored(task: dict[str, Any]) -> Pool:
    """The pool that the parent process has stored."""
    if task["kind"] == "sparse":
        pool = Pool(sparse.csr_array(sparse.load_npz(task["path"])))
    elif task["kind"] == "bits":
        pool = Pool(PackedBits(np.load(task["path"]), task["columns"]), metric="jaccard")
    else:
        pool = Pool(np.load(task["path"], mmap_mode="r"))
    return pool.without(task["withdrawn"]) if task["withdrawn"] else pool


def _measure(backend: str, task: dict[str, Any], limit: float, watch: Watcher) -> dict[str, Any]:
    """What a process of its own has to say about one backend."""
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
        return {"backend": backend, "refused": f"not done within {limit:g} s"}
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
