"""``activecover bench frontier``: measure each search backend on a pool of your own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer

from activecover.cli import _options as options
from activecover.cli._show import err, meter, out, print_json, print_table
from activecover.errors import LARGEST_COUNT, InputError
from activecover.frontier import FRONTIERS
from activecover.lab.grid import Measurement, measure_frontiers
from activecover.pool import LoadedPool, Pool, as_positive, load_pool

_MOST_POSITIVES = 100


def frontier(
    pool: Annotated[Path, typer.Argument(help="The pool: .npy, .npz, .csv, .tsv or .parquet.")],
    metric: options.MetricName = "euclidean",
    backends: Annotated[
        str | None, typer.Option("--backends", help="Backends, comma-separated; default: all that fit the pool.")
    ] = None,
    steps: Annotated[
        int,
        typer.Option(
            "--steps",
            min=1,
            max=LARGEST_COUNT,
            help="Number of steps; in each, one yes is told and the nearest row asked for.",
        ),
    ] = 200,
    batch: Annotated[int, typer.Option("--batch", min=1, max=LARGEST_COUNT, help="Rows per batch.")] = 100,
    positives: Annotated[
        str | None, typer.Option("--positives", help="Ids to start from, comma-separated; default: ten at random.")
    ] = None,
    label_col: options.LabelColumn = None,
    label: Annotated[str | None, typer.Option("--label", help="The label that counts as positive.")] = None,
    vectors: options.VectorFile = None,
    columns: options.Columns = None,
    id_col: options.IdColumn = None,
    no_header: options.NoHeader = False,
    limit: Annotated[float, typer.Option("--limit", help="Maximum seconds per backend.")] = 300.0,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Measure every backend on your pool: build time, memory, time per step, and accuracy of the order."""
    if not 0 < limit < threading.TIMEOUT_MAX:
        raise InputError(f"--limit {limit:g}: give a number of seconds above 0")
    names = options.split_names(backends)
    names = None if names is None else [FRONTIERS[name].name for name in names]
    loaded = load_pool(
        pool, columns=options.split_names(columns), id_col=id_col, label_col=label_col, content_cols=[],
        vectors=vectors, metric=metric, header=not no_header,
    )  # fmt: skip
    start = _start(pool, loaded, options.split_names(positives), label, seed)
    with meter("steps", quiet=json) as shown:
        found = measure_frontiers(
            loaded.pool, names, positives=start, steps=steps, batch=batch, limit=limit, seed=seed, watch=shown.update
        )
        for one in found:
            if not one.reason:
                shown.update(one.backend, one.steps, one.steps)
    if json:
        print_json({"pool": _about(loaded.pool), "backends": [one.as_dict() for one in found]})
    else:
        _show(pool, loaded.pool, batch, found)


def _start(
    path: Path, loaded: LoadedPool, ids: Sequence[str] | None, label: str | None, seed: int
) -> npt.NDArray[np.int64] | None:
    """The rows to start from: those named by id, or some of those labelled positive in a column."""
    if ids is not None:
        rows = loaded.pool.rows(ids)
        if len(np.unique(rows)) < len(rows):
            raise InputError("--positives contains an id twice: give each id once")
    elif loaded.labels is not None:
        try:
            known = np.flatnonzero(as_positive(loaded.labels, label))
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        rows = np.random.default_rng(seed).permutation(known)[:_MOST_POSITIVES]
    else:
        return None
    if len(rows) >= len(loaded.pool):
        raise InputError(f"{path}: all rows are positives to start from, so none is left to ask for; give fewer")
    return rows


def _about(pool: Pool) -> dict[str, object]:
    return {"rows": len(pool), "dimensions": pool.dimensions, "kind": pool.kind, "metric": pool.metric}


def _show(path: Path, pool: Pool, batch: int, found: Sequence[Measurement]) -> None:
    rows = [
        [
            one.backend, one.build_seconds, _scaled(one.memory, 1e-6), _scaled(one.step_p50, 1e3),
            _scaled(one.step_p99, 1e3), _scaled(one.batch_rows_per_second, 1.0), _order(one),
        ]
        for one in found if not one.reason
    ]  # fmt: skip
    if rows:
        title = f"{path.name}: {len(pool):,} rows x {pool.dimensions:,}, {pool.metric}"
        print_table(
            title,
            ["backend", "build s", "memory MB", "step p50 ms", "p99 ms", f"rows/s by {batch:,}", "order"],
            rows,
        )
        out().print(
            "In each step, one yes is told and the nearest row asked for. Each backend has its own process.",
            markup=False,
        )
    for one in found:
        if one.reason:
            err().print(f"{one.backend}: not measured ({one.reason})", markup=False)


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _order(one: Measurement) -> str:
    if one.exact:
        return "exact" if one.same_order else "NOT THE EXACT ORDER"
    recall = "" if one.recall is None else f"{100 * one.recall:.1f} % of nearest found"
    overlap = "" if one.overlap is None else f"; {100 * one.overlap:.1f} % of the steps shared"
    return f"approximate: {recall}{overlap}"
