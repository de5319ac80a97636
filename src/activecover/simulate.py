"""Run a learner against known labels."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover import metrics
from activecover.errors import LARGEST_COUNT, InputError, check_count
from activecover.learners import LEARNERS, Labels, Learner, make_learner, stratified_sample
from activecover.pool import Pool, Vectors
from activecover.trace import Trace

#: Called with the number of the run, the labels so far and the positives found so far.
Watcher = Callable[[int, int, int], None]


def simulate_one(
    pool: Pool,
    positive: npt.ArrayLike,
    learner: Learner,
    *,
    batch: int = 1,
    batches: int | None = None,
    budget: int | None = None,
    seed: int = 0,
    run: int = 0,
    name: str = "",
    outside: Vectors | None = None,
    to_the_end: bool = False,
    watch: Watcher | None = None,
) -> Trace:
    """Simulate one run: explore, then ask in batches until every positive is found or a limit is reached.

    Parameters
    ----------
    pool : Pool
        The rows.
    positive : array of bool
        The true label of each row.
    learner : Learner
        The learner; it is started afresh on the pool.
    batch : int
        Rows per batch; the learner is told the labels of a batch at its end.
    batches, budget : int, optional
        Maximum number of batches after exploration, and of labels in all.
    seed, run, name
        Recorded in the trace; the seed is also passed to the learner.
    outside : array, optional
        Encoded vectors of positives from outside the pool.
    to_the_end : bool
        Continue until the pool is empty, even if no positive is left.
    watch : callable, optional
        Called after each batch to report progress.

    Returns
    -------
    Trace
    """
    truth = _check_truth(pool, positive)
    for what, value in (("batch", batch), ("budget", budget)):
        check_count(what, value)
    for what, value in (("batches", batches), ("seed", seed)):
        check_count(what, value, 0)
    total = int(truth.sum())
    progress = _Progress(truth, run, watch)
    started = time.perf_counter()
    learner.begin(pool, seed=seed, outside=outside)
    most = len(pool) if budget is None else min(budget, len(pool))
    unavailable: str | None = None

    while len(progress) < most and learner.exploring():
        left = max(1, learner.exploration_.size - len(progress))
        progress.tell(learner, learner.propose(min(left, most - len(progress))).rows, explored=True)
    # Planned from the size of the sample, not from how long it took to find a first positive, so that the
    # curves of all runs have the same length.
    planned = batches if batches is not None else max(1, -(-(len(pool) - learner.exploration_.size) // batch))
    for _ in range(planned):
        k = min(batch, most - len(progress))
        if k < 1 or (progress.found == total and not to_the_end):
            break
        proposal = learner.propose(k)
        if not len(proposal):
            break
        unavailable = unavailable or proposal.unavailable
        progress.tell(learner, proposal.rows, explored=False)
    return Trace(
        rows=progress.rows(),
        positive=truth[progress.rows()],
        batch=progress.batch(),
        explored=progress.batch() == 0,
        pool_rows=len(pool),
        positives=total,
        batches=planned,
        learner=name or type(learner).__name__,
        seed=seed,
        run=run,
        unavailable=unavailable,
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True, slots=True)
class Simulation:
    """The runs of one learner, and their summary."""

    learner: str
    traces: list[Trace]

    @property
    def score(self) -> metrics.Score:
        """Mean AUC of the runs, with its band."""
        return metrics.score(self.traces)

    def summary(self) -> dict[str, Any]:
        """The usual metrics as means over the runs; None where a run ended too early to tell."""
        good = [trace for trace in self.traces if trace.unavailable is None]
        score = self.score
        summary: dict[str, Any] = {
            "learner": self.learner,
            "runs": len(self.traces),
            "available": score.available,
            "reason": score.unavailable,
            "auc": _number(score.mean),
            "band": _number(score.band),
        }
        for fraction in metrics.FRACTIONS:
            summary[f"labels_{fraction:.0%}"] = _mean([metrics.labels_for(t, fraction) for t in good])
        summary["excess_query_cost"] = _mean([metrics.excess_query_cost(t) for t in good])
        summary["wss_95"] = _mean([metrics.work_saved(t) for t in good])
        summary["precision"] = _mean([metrics.precision(t) for t in good])
        summary["seconds"] = _mean([t.seconds for t in self.traces])
        return summary


def simulate(
    pool: Pool,
    labels: npt.ArrayLike,
    learner: str | Learner = "explore-commit",
    *,
    batch: int | str = "5%",
    runs: int = 1,
    seed: int = 0,
    explore: int = 100,
    strata: Sequence[Any] | npt.NDArray[Any] | None = None,
    batches: int | None = None,
    budget: int | None = None,
    outside: Vectors | None = None,
    to_the_end: bool = False,
    watch: Watcher | None = None,
) -> Simulation:
    """Simulate a learner on a pool whose labels are known.

    Parameters
    ----------
    pool : Pool
        The rows.
    labels : array of bool
        Which rows are positive.
    learner : str or Learner
        A registered name or code, or a learner of your own.
    batch : int or str
        Rows per batch: a number, or a percentage of the pool without the first sample, as in the paper.
    runs, seed : int
        Number of runs, each with its own random sample: run ``i`` uses seed ``seed + i``.
    explore : int
        Rows labelled at random first, unless ``learner`` is an object, which has its own number.
    strata : array, optional
        Classes of the rows; the first sample is drawn in proportion to them.
    batches, budget, outside, to_the_end, watch
        As in :func:`simulate_one`.

    Returns
    -------
    Simulation

    Examples
    --------
    >>> pool = Pool(np.arange(100.0)[:, None])
    >>> result = simulate(pool, np.arange(100) < 10, "explore-commit", batch=1, explore=20)
    >>> result.traces[0].found
    10
    """
    truth = _check_truth(pool, labels)
    check_count("runs", runs)
    check_count("seed", seed, 0)
    name = learner if isinstance(learner, str) else type(learner).__name__
    if isinstance(learner, str):
        name = LEARNERS[learner].name
    traces = []
    for run in range(runs):
        ready = _prepare(learner, truth, explore, strata, seed + run)
        first = ready.explore if isinstance(ready.explore, int | np.integer) else len(ready.explore)
        trace = simulate_one(
            pool, truth, ready, batch=batch_size(batch, len(pool) - min(first, len(pool))), batches=batches,
            budget=budget, seed=seed + run, run=run, name=name, outside=outside, to_the_end=to_the_end, watch=watch,
        )  # fmt: skip
        traces.append(trace)
    return Simulation(name, traces)


def batch_size(batch: int | str, rows: int) -> int:
    """Rows per batch, from a number or a percentage such as ``"5%"``.

    Examples
    --------
    >>> batch_size("5%", 19_900), batch_size(10, 19_900)
    (995, 10)
    """
    number, percent, rest = str(batch).strip().partition("%")
    try:
        if percent and not rest and 0 < (share := float(number)) <= 100:
            return max(1, round(share / 100 * rows))
        if not percent and 1 <= (size := int(number)) <= LARGEST_COUNT:
            return size
    except ValueError:
        pass
    raise InputError(f"batch {batch!r}: give a number of rows from 1, or a percentage up to 100% such as 5%")


class _Progress:
    """The labels of a run so far."""

    def __init__(self, truth: npt.NDArray[np.bool_], run: int, watch: Watcher | None) -> None:
        self._truth, self._run, self._watch = truth, run, watch
        self._rows: list[npt.NDArray[np.int64]] = []
        self._batch: list[npt.NDArray[np.int64]] = []
        self._count = 0
        self._current = 0
        self.found = 0

    def __len__(self) -> int:
        return self._count

    def tell(self, learner: Learner, rows: npt.NDArray[np.int64], *, explored: bool) -> None:
        self._current += not explored
        numbers = np.arange(self._count, self._count + len(rows))
        learner.tell(Labels.of(numbers, rows, self._truth[rows], explored))
        self._rows.append(rows)
        self._batch.append(np.full(len(rows), self._current))
        self._count += len(rows)
        self.found += int(self._truth[rows].sum())
        if self._watch is not None:
            self._watch(self._run, self._count, self.found)

    def rows(self) -> npt.NDArray[np.int64]:
        return np.concatenate(self._rows) if self._rows else np.zeros(0, np.int64)

    def batch(self) -> npt.NDArray[np.int64]:
        return np.concatenate(self._batch) if self._batch else np.zeros(0, np.int64)


def _prepare(
    learner: str | Learner,
    truth: npt.NDArray[np.bool_],
    explore: int,
    strata: Sequence[Any] | npt.NDArray[Any] | None,
    seed: int,
) -> Learner:
    if isinstance(learner, str) and LEARNERS[learner].name == "optimal":
        return make_learner("optimal", support=truth)
    size: Any = explore if isinstance(learner, str) else learner.explore
    if strata is not None and isinstance(size, int | np.integer):
        if len(strata) != len(truth):
            raise InputError(f"{len(strata)} strata for a pool of {len(truth)} rows")
        size = stratified_sample(strata, min(int(size), len(truth)), seed).tolist()
    if isinstance(learner, str):
        return make_learner(learner, explore=size)
    return learner.replace(explore=size) if "explore" in learner.get_params() else learner


def _check_truth(pool: Pool, labels: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    given = np.asarray(labels)
    if given.shape != (len(pool),):
        raise InputError(f"{given.size} labels for a pool of {len(pool)} rows")
    if given.dtype != bool:
        if not np.isin(given, [0, 1]).all():
            raise InputError("labels are neither booleans nor 0 and 1: give one or the other")
        given = given.astype(bool)
    if not given.any():
        raise InputError("no label is positive: there is nothing to find")
    return given


def _mean(values: Sequence[float | int | None]) -> float | None:
    if not values or any(value is None for value in values):
        return None
    return float(np.mean([value for value in values if value is not None]))


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
