"""What a run asked and found; every table, plot and page is drawn from traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.tables import check_records, read_records, write_records


@dataclass(frozen=True, slots=True)
class Trace:
    """One run, simulated or live: the rows asked, in order, with their labels.

    Attributes
    ----------
    rows, positive, batch, explored : arrays, one value per label
        Row number, yes or no, number of the batch (0 is the first sample), whether drawn at random.
    pool_rows : int
        Size of the pool.
    positives : int, optional
        Positives in the pool; known only in simulations.
    batches : int, optional
        Batches planned after the first sample.
    learner, seed, run
        What made the choices.
    unavailable : str, optional
        Why the learner could not be used, if it could not.
    seconds : float
        Time spent choosing.
    """

    rows: npt.NDArray[np.int64]
    positive: npt.NDArray[np.bool_]
    batch: npt.NDArray[np.int64]
    explored: npt.NDArray[np.bool_]
    pool_rows: int
    positives: int | None = None
    batches: int | None = None
    learner: str = ""
    seed: int = 0
    run: int = 0
    unavailable: str | None = None
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def found(self) -> int:
        """Number of positives labelled."""
        return int(self.positive.sum())

    def records(self, ids: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """One flat record per label, for files and tables."""
        for label in range(len(self)):
            row = int(self.rows[label])
            yield {
                "learner": self.learner,
                "run": self.run,
                "seed": self.seed,
                "number": label,
                "batch": int(self.batch[label]),
                "row": row,
                "id": ids[row] if ids is not None else str(row),
                "positive": bool(self.positive[label]),
                "explored": bool(self.explored[label]),
            }


def write_traces(path: str | Path, traces: Sequence[Trace], ids: Sequence[str] | None = None) -> None:
    """Write traces as flat records to ``.parquet``, ``.csv`` or ``.jsonl``, all or nothing."""
    path = Path(path)
    check_traces(path)
    write_records(path, [record for trace in traces for record in trace.records(ids)])


def read_traces(path: str | Path, *, rows: int | None = None, positives: int | None = None) -> list[Trace]:
    """Read a file from :func:`write_traces`, which does not record the size of the pool.

    Parameters
    ----------
    path : path
        ``.parquet``, ``.csv`` or ``.jsonl``.
    rows : int, optional
        Rows of the pool; by default one more than the largest row number.
    positives : int, optional
        Positives in the pool; unknown by default.
    """
    path = Path(path)
    check_traces(path)
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    try:
        for record in read_records(path):
            groups.setdefault((str(record["learner"]), int(record["run"])), []).append(record)
        traces = [_trace(records) for records in groups.values()]
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, OSError) as wrong:
        raise InputError(f"{path}: not traces written by --out ({type(wrong).__name__}: {wrong})") from wrong
    if not traces:
        raise InputError(f"{path}: contains no traces")
    largest = max(int(trace.rows.max()) + 1 for trace in traces)
    if rows is not None and rows < largest:
        raise InputError(f"{path}: a pool of {rows:,} rows has no row {largest - 1:,}; give its true size")
    most = max(trace.found for trace in traces)
    if positives is not None and positives < most:
        raise InputError(f"{path}: {most:,} positives were found, but only {positives:,} were given as the total")
    return [replace(trace, pool_rows=rows or largest, positives=positives) for trace in traces]


def _trace(records: list[dict[str, Any]]) -> Trace:
    records.sort(key=lambda record: int(record["number"]))
    asked = np.array([int(record["row"]) for record in records], np.int64)
    if len(np.unique(asked)) != len(asked) or asked.min() < 0:
        raise ValueError("a row was asked twice in one run")
    return Trace(
        rows=asked,
        positive=np.array([_yes(record["positive"]) for record in records], bool),
        batch=np.array([int(record["batch"]) for record in records], np.int64),
        explored=np.array([_yes(record["explored"]) for record in records], bool),
        pool_rows=int(asked.max()) + 1,
        learner=str(records[0]["learner"]),
        seed=int(records[0]["seed"]),
        run=int(records[0]["run"]),
    )


def _yes(value: object) -> bool:
    if isinstance(value, bool):
        return value
    return {"True": True, "False": False}[str(value)]


def check_traces(path: Path) -> None:
    """Refuse an unsupported file type before the work begins."""
    check_records(path, "traces")
