"""``activecover simulate``: run learners against known labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from activecover.cli import _options as options
from activecover.cli._show import Meter, err, meter, out, print_json, print_table
from activecover.draw import check_picture, draw_curves
from activecover.errors import InputError
from activecover.files import check_writable
from activecover.lab.datasets import load_dataset
from activecover.learners import LEARNERS
from activecover.pool import Pool, as_positive, load_pool
from activecover.simulate import Simulation, simulate
from activecover.trace import Trace, check_traces, write_traces


@dataclass(frozen=True, slots=True)
class Task:
    """A pool whose positives are known."""

    name: str
    pool: Pool
    positive: npt.NDArray[np.bool_]
    classes: npt.NDArray[Any]


def simulate_command(
    pool: options.PoolFile = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Name of a data set, such as letters, instead of a pool.")
    ] = None,
    label: Annotated[str | None, typer.Option("--label", help="The label that counts as positive.")] = None,
    label_col: options.LabelColumn = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", help="File with the labels: .npy, or text, one per line.")
    ] = None,
    vectors: options.VectorFile = None,
    columns: options.Columns = None,
    id_col: options.IdColumn = None,
    metric: options.MetricName = "euclidean",
    bits: options.Bits = None,
    no_header: options.NoHeader = False,
    learner: Annotated[
        list[str] | None, typer.Option("--learner", help="Learner by name or code; may be given several times.")
    ] = None,
    batch: Annotated[str, typer.Option("--batch", help="Rows per batch: a number, or a percentage such as 5%.")] = "5%",
    runs: Annotated[int, typer.Option("--runs", min=1, help="Number of runs, each with its own random sample.")] = 1,
    explore: options.Explore = 100,
    stratify: Annotated[bool, typer.Option("--stratify", help="Draw the sample in proportion to the labels.")] = False,
    budget: Annotated[int | None, typer.Option("--budget", min=1, help="Maximum number of labels per run.")] = None,
    seed: options.Seed = 0,
    out_file: Annotated[Path | None, typer.Option("--out", help="Save the traces: .parquet, .csv or .jsonl.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Save the curves: .png, .svg or .pdf.")] = None,
    json: options.Json = False,
) -> int:
    """Simulate learners on a pool whose labels are known, and compare them."""
    names = [name for given in learner or ["explore-commit"] for name in options.split_names(given) or []]
    names = [LEARNERS[name].name for name in dict.fromkeys(names)]
    check_outputs(out_file, plot, pool, labels, vectors)
    if dataset is not None and pool is not None:
        raise InputError("give either --pool or --dataset, not both")
    if dataset is not None:
        task = dataset_task(dataset, label)
    elif pool is not None:
        loaded = load_pool(
            pool, columns=options.split_names(columns), id_col=id_col, label_col=label_col,
            content_cols=[], vectors=vectors, metric=metric, header=not no_header, bits=bits,
        )  # fmt: skip
        if labels is not None:
            words = options.read_labels(labels, len(loaded.pool))
        elif loaded.labels is not None:
            words = loaded.labels
        else:
            raise InputError("the pool has no labels: give their column with --label-col, or their file with --labels")
        try:
            task = Task(pool.name, loaded.pool, as_positive(words, label), words)
        except InputError as error:
            raise InputError(f"{pool if labels is None else labels}: {error}") from error
    else:
        raise InputError("give a pool with --pool FILE, or --dataset letters")
    with meter("labels", quiet=json) as shown:
        results, finished = run_learners(
            task, names, shown, batch=batch, runs=runs, explore=explore, budget=budget, seed=seed,
            strata=task.classes if stratify else None,
        )  # fmt: skip
    report(task, results, out_file=out_file, plot=plot, json=json)
    if not finished:
        err().print("interrupted: the figures are based on the finished runs")
        return 130
    return 0


def dataset_task(name: str, label: str | None) -> Task:
    """Load a data set, with its inputs as vectors and one label as the positive class."""
    data = load_dataset(name)
    wanted = label or data.classes[0]
    vectors = data.inputs.reshape(len(data), -1)
    return Task(f"{data.name} {wanted}", Pool(vectors), data.positive(wanted), data.targets(wanted))


def check_outputs(traces: Path | None, plot: Path | None, *inputs: Path | None) -> None:
    """Check before a run that its results can be saved, and that they overwrite none of its inputs."""
    if traces is not None:
        check_traces(traces)
        check_writable(traces, *inputs)
    if plot is not None:
        check_picture(plot)
        check_writable(plot, *inputs)


def run_learners(
    task: Task,
    names: Sequence[str],
    shown: Meter,
    *,
    runs: int,
    seed: int,
    batch: str,
    explore: int,
    budget: int | None = None,
    strata: npt.NDArray[Any] | None = None,
) -> tuple[list[Simulation], bool]:
    """Run every learner; if interrupted, return the finished runs, and False."""
    done: dict[str, list[Trace]] = {name: [] for name in names}
    total = int(task.positive.sum())
    finished = True
    try:
        for name in names:
            for run in range(runs):
                title = name if runs == 1 else f"{name} {run + 1}/{runs}"

                def watch(_: int, labels: int, found: int, title: str = title) -> None:
                    shown.update(title, labels, len(task.pool), f"{found:,} of {total:,} found")

                result = simulate(
                    task.pool, task.positive, name, batch=batch, seed=seed + run, explore=explore, strata=strata,
                    budget=budget, watch=watch,
                )  # fmt: skip
                trace = replace(result.traces[0], run=run)
                done[name].append(trace)
                shown.update(title, len(trace), len(trace), f"{trace.found:,} of {total:,} found")
    except KeyboardInterrupt:
        finished = False
        if not any(done.values()):
            raise
    return [Simulation(name, traces) for name, traces in done.items() if traces], finished


def report(task: Task, results: Sequence[Simulation], *, out_file: Path | None, plot: Path | None, json: bool) -> None:
    """Print the figures and save the requested files."""
    if out_file is not None:
        write_traces(out_file, [trace for result in results for trace in result.traces], task.pool.ids)
    runs = max(len(result.traces) for result in results)
    title = f"{task.name}: {int(task.positive.sum()):,} positives among {len(task.pool):,} rows"
    if plot is not None:
        draw_curves(plot, {result.learner: result.traces for result in results}, title=title)
    summaries = [result.summary() for result in results]
    if json:
        print_json(
            {"task": task.name, "rows": len(task.pool), "positives": int(task.positive.sum()), "results": summaries}
        )
        return
    columns = ["learner", "labels for 95 %", "for 100 %", "AUC", "±", "WSS@95", "seconds"]
    rows = [
        [s["learner"], s["labels_95%"], s["labels_100%"], s["auc"], s["band"], s["wss_95"], s["seconds"]]
        for s in summaries
    ]
    for row in rows:
        row[1:3] = [None if value is None else round(value) for value in row[1:3]]
    print_table(f"{title}; {runs} run{'s' if runs > 1 else ''}", columns, rows)
    for summary in summaries:
        if not summary["available"]:
            err().print(f"{summary['learner']}: not available ({summary['reason']})", markup=False)
    for path, what in ((plot, "picture"), (out_file, "traces")):
        if path is not None:
            out().print(f"{what}: {path}", markup=False)
