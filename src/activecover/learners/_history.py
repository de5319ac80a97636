"""What a mixture has learnt: a fold over the labels, in which models judge the labels that came after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from activecover.learners._labels import Labels, Rows, Scores
from activecover.learners._models import Examples, Model
from activecover.learners._state import SearchState
from activecover.pool import Vectors

Numbers = npt.NDArray[np.float64]
Scorer = Callable[[Rows], Scores]

#: Negatives, known or presumed, that models are fitted to at least; and as many as positives.
LEAST_NEGATIVES = 10
#: Rows among which a model's past ranks are counted; of a smaller pool, all of them.
REFERENCE = 5_000
#: By what share labels grow until other fits judge what follows.
JUDGED_ANEW = 0.25


class Settings(Protocol):
    """What the fold takes from the learner: its parameters, and its models."""

    growth: float
    rate: float
    share: float
    offset: float
    max_fit: int

    def models(self, state: SearchState) -> Mapping[str, Model]:
        """The members of the mixture, by name."""

    def outside(self, state: SearchState) -> Vectors:
        """Encoded positives from outside the pool."""


@dataclass
class Moment:
    """The mixture after so many labels: weights, and what the scores of labelled rows were before they were asked."""

    weights: Numbers
    scores: list[float] = field(default_factory=list)
    truth: list[bool] = field(default_factory=list)

    def after(self, ranks: Numbers, positive: npt.NDArray[np.bool_], settings: Settings) -> Moment:
        """The mixture once more labels are known, of rows that the models put at these ranks (a column each)."""
        weights, logs = self.weights, -np.log(settings.offset + ranks)
        scores, truth = list(self.scores), list(self.truth)
        for column, found in zip(logs.T, positive.tolist(), strict=True):
            scores.append(float(weights @ column))
            truth.append(found)
            if found:
                weights = weights * np.exp(settings.rate * (column - column.max()))
                weights = (1 - settings.share) * weights / weights.sum() + settings.share / len(weights)
        return Moment(weights, scores, truth)


@dataclass
class _Fit:
    """Models fitted to the first so many labels, and the moment at which they were."""

    count: int
    labels: Labels
    moment: Moment
    scorers: list[Scorer]
    reference: Rows
    open_rows: Rows

    @cached_property
    def sorted_scores(self) -> list[Numbers]:
        """What each model gives to the rows of the reference, ascending."""
        return [np.sort(scorer(self.reference)) for scorer in self.scorers]

    def ranks(self, rows: Rows) -> Numbers:
        """The rank that each model gave to some rows, estimated among the reference."""
        scale = len(self.open_rows) / max(1, len(self.reference))
        return np.array(
            [
                scale * (len(known) - np.searchsorted(known, scorer(rows), side="right"))
                for scorer, known in zip(self.scorers, self.sorted_scores, strict=True)
            ]
        )


class History:
    """The mixture as a fold over the labels: every judge is fitted to some labels and judges those that follow.

    Judges are renewed much more rarely than the models that choose rows, so that an old campaign opens quickly. The
    last ones are kept, and go on from where they are as long as the labels before them are the same.
    """

    def __init__(self, settings: Settings, state: SearchState) -> None:
        self._settings, self._state = settings, state
        self._judge: _Fit | None = None
        self._fit: _Fit | None = None
        self._all: list[Numbers] = []

    def now(self, labels: Labels) -> Moment:
        """The weights after all labels."""
        first, judge = self._first(labels), self._judge
        if judge is None or not _begins_with(labels, judge.labels):
            judge = None
        for count in _refits(len(labels), JUDGED_ANEW):
            if count >= first and (judge is None or count > judge.count):
                judge = self._refit(
                    labels, count, self._start() if judge is None else self._judged(judge, labels, count)
                )
        assert judge is not None
        self._judge = judge
        return self._judged(judge, labels, len(labels))

    def scores(self, labels: Labels) -> Scores:
        """The score of every row."""
        moment = self.now(labels)
        count = max(self._first(labels), _refits(len(labels), self._settings.growth)[-1])
        fit = self._judge if self._judge is not None and self._judge.count == count else self._fit
        if fit is None or fit.count != count or not _begins_with(labels, fit.labels):
            fit = self._refit(labels, count, moment)
        if fit is not self._fit or not self._all:
            self._fit = fit
            self._all = [
                _log_ranks(scorer, fit.open_rows, self._settings.offset, self._state) for scorer in fit.scorers
            ]
        return np.asarray(sum(weight * part for weight, part in zip(moment.weights, self._all, strict=True)))

    def _start(self) -> Moment:
        models = len(self._settings.models(self._state))
        return Moment(np.full(models, 1.0 / models))

    def _first(self, labels: Labels) -> int:
        """How many labels it takes until there is a positive to fit models to."""
        if self._settings.outside(self._state).shape[0]:
            return 0
        there = labels.positive & ~self._state.pool.withdrawn[labels.rows]
        return int(there.argmax()) + 1 if there.any() else len(labels) + 1

    def _judged(self, fit: _Fit, labels: Labels, count: int) -> Moment:
        between = labels.take(slice(fit.count, count))
        between = between.take(~self._state.pool.withdrawn[between.rows])
        if not len(between):
            return fit.moment
        return fit.moment.after(fit.ranks(between.rows), between.positive, self._settings)

    def _refit(self, labels: Labels, count: int, moment: Moment) -> _Fit:
        before = labels.take(slice(0, count))
        is_open = ~self._state.pool.withdrawn
        is_open[before.rows] = False
        open_rows = np.flatnonzero(is_open)
        examples = self._examples(before, open_rows)
        scorers = [model(examples) for model in self._settings.models(self._state).values()]
        reference = self._first_by_lot(open_rows, REFERENCE)
        return _Fit(count, before, moment, scorers, reference, open_rows)

    def _examples(self, labels: Labels, open_rows: Rows) -> Examples:
        """Known rows, ascending, with some open ones presumed negative where few negatives are known."""
        there = labels.take(~self._state.pool.withdrawn[labels.rows])
        negatives = self._first_by_lot(there.rows[~there.positive], self._settings.max_fit)
        missing = max(LEAST_NEGATIVES, int(there.positive.sum())) - len(negatives)
        presumed = self._first_by_lot(open_rows, missing)
        rows = np.concatenate([there.rows[there.positive], negatives, presumed])
        truth = np.arange(len(rows)) < there.positive.sum()
        order = np.argsort(rows, kind="stable")
        return Examples(rows[order], truth[order], self._settings.outside(self._state))

    def _first_by_lot(self, rows: Rows, count: int) -> Rows:
        if len(rows) <= count:
            return rows
        lots = self._state.lots[rows]
        return np.sort(rows[np.argsort(-lots, kind="stable")[: max(0, count)]])


def _log_ranks(scorer: Scorer, open_rows: Rows, offset: float, state: SearchState) -> Numbers:
    values = np.zeros(len(state.closed))
    order = np.argsort(-scorer(open_rows), kind="stable")
    values[open_rows[order]] = -np.log(offset + np.arange(len(order)))
    return values


def _begins_with(labels: Labels, first: Labels) -> bool:
    count = len(first)
    return (
        len(labels) >= count
        and np.array_equal(labels.rows[:count], first.rows)
        and np.array_equal(labels.positive[:count], first.positive)
    )


def _refits(count: int, growth: float) -> list[int]:
    """The numbers of labels, up to so many, at which models are fitted.

    Examples
    --------
    >>> _refits(7, 0.5)
    [0, 1, 2, 3, 5]
    """
    found, next_one = [], 0
    while next_one <= count:
        found.append(next_one)
        next_one = max(next_one + 1, int(np.ceil(next_one * (1 + growth))))
    return found
