"""Metrics computed from traces: the paper's, and those users ask for.

Labels are counted from the very first one, the random sample included. Only the paper's curve and AUC
disregard the positives in the first sample (batch 0).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.trace import Trace

FRACTIONS = (0.5, 0.8, 0.9, 0.95, 0.99, 1.0)
_NORMAL_95 = 1.96


def recall_by_batch(trace: Trace) -> npt.NDArray[np.float64]:
    """Percentage of the positives outside batch 0 that are labelled after each planned batch.

    The curve of a run that ended early stays at its last value: at 100 if everything was found, lower if the budget
    was spent.

    Examples
    --------
    >>> trace = Trace(np.arange(4), np.array([1, 1, 0, 1], bool), np.array([0, 1, 1, 2]),
    ...               np.array([1, 0, 0, 0], bool), pool_rows=6, positives=3, batches=3)
    >>> recall_by_batch(trace)
    array([ 50., 100., 100.])
    """
    if trace.batches is None:
        raise InputError("this trace has no plan of batches: a curve by batch needs a simulated run")
    outside = _positives(trace) - int(trace.positive[trace.batch == 0].sum())
    if outside == 0:
        return np.full(trace.batches, 100.0)
    found = np.bincount(trace.batch[trace.positive], minlength=trace.batches + 1)[1 : trace.batches + 1]
    return 100.0 * np.cumsum(found) / outside


def auc(trace: Trace) -> float:
    """Mean over batches of :func:`recall_by_batch`: the paper's area under the curve, in percent."""
    return float(recall_by_batch(trace).mean())


def labels_for(trace: Trace, fraction: float) -> int | None:
    """How many labels it took to find a fraction of the positives; None if the run ended earlier.

    Examples
    --------
    >>> trace = Trace(np.arange(4), np.array([0, 1, 0, 1], bool), np.zeros(4, int), np.zeros(4, bool),
    ...               pool_rows=4, positives=2)
    >>> labels_for(trace, 0.5), labels_for(trace, 1.0)
    (2, 4)
    """
    if not 0 < fraction <= 1:
        raise InputError(f"a fraction of the positives lies above 0 and up to 1, not at {fraction:g}")
    # Rounding guards against products such as 95.00000000000001, which would be rounded up.
    wanted = int(np.ceil(round(fraction * _positives(trace), 9)))
    if wanted == 0:
        return 0
    places = np.flatnonzero(trace.positive)
    return int(places[wanted - 1]) + 1 if len(places) >= wanted else None


def query_cost(trace: Trace) -> int | None:
    """Q: labels until the last positive was labelled; None if the run ended earlier."""
    return labels_for(trace, 1.0)


def excess_query_cost(trace: Trace, optimal: int | None = None) -> int | None:
    """C = Q - Q_opt; it can be negative, if a learner found all positives with fewer labels than Q_opt.

    Parameters
    ----------
    trace : Trace
        A simulated run.
    optimal : int, optional
        Q_opt, the number of rows in the positives' support; by default the number of positives.
    """
    cost = query_cost(trace)
    if cost is None:
        return None
    return cost - (_positives(trace) if optimal is None else optimal)


def precision(trace: Trace) -> float:
    """Share of the labels so far that were positive."""
    return trace.found / len(trace) if len(trace) else 0.0


def work_saved(trace: Trace, recall: float = 0.95) -> float | None:
    """WSS (work saved over sampling): share of the pool left unlabelled at a recall, less what chance would save."""
    labels = labels_for(trace, recall)
    return None if labels is None else (trace.pool_rows - labels) / trace.pool_rows - (1 - recall)


@dataclass(frozen=True, slots=True)
class Score:
    """Mean AUC over runs and its error band, both in percent; NaN where no run was available.

    ``failed`` runs have no result, for the reason in ``unavailable``, and are excluded from the mean.
    """

    mean: float
    band: float
    runs: int
    unavailable: str | None = None
    failed: int = 0

    @property
    def available(self) -> bool:
        """Whether there is a result at all."""
        return self.runs > 0


def score(traces: Sequence[Trace]) -> Score:
    """Mean AUC with the paper's band: 1.96 times the batches' mean standard deviation over √runs.

    Runs in which the learner's model was unavailable are excluded.
    """
    reasons = [trace.unavailable for trace in traces if trace.unavailable is not None]
    return score_of_curves([recall_by_batch(trace) for trace in traces if trace.unavailable is None], reasons)


def score_of_curves(curves: Sequence[Sequence[float] | npt.NDArray[np.float64]], reasons: Sequence[str] = ()) -> Score:
    """The score of runs, given the curves of the successful ones and the reasons of the failed ones."""
    reason, runs = (reasons[0] if reasons else None), len(curves)
    if not runs:
        return Score(float("nan"), float("nan"), 0, reason or "no runs", len(reasons))
    table = np.array(curves)
    spread = table.std(axis=0, ddof=1).mean() if runs > 1 else float("nan")
    return Score(float(table.mean()), _NORMAL_95 * float(spread) / math.sqrt(runs), runs, reason, len(reasons))


def ties(scores: Mapping[str, Score]) -> set[str]:
    """Names of the best score and of those whose bands overlap its band.

    Examples
    --------
    >>> sorted(ties({"a": Score(90, 1, 5), "b": Score(88.5, 1, 5), "c": Score(80, 1, 5)}))
    ['a', 'b']
    """
    good = {name: value for name, value in scores.items() if value.available}
    if not good:
        return set()
    best = max(good.values(), key=lambda value: value.mean)
    floor = best.mean - np.nan_to_num(best.band)
    return {name for name, value in good.items() if value.mean + np.nan_to_num(value.band) >= floor}


def _positives(trace: Trace) -> int:
    if trace.positives is None:
        raise InputError("this trace does not know how many positives there are: only a simulated run does")
    return trace.positives
