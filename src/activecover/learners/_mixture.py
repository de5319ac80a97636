"""One mixture of a few strong models, weighted by how early each would have found the positives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.learners._base import Learner
from activecover.learners._calibration import Calibration, fit_calibration
from activecover.learners._explore import FreeRows
from activecover.learners._labels import Labels, Negatives, Proposal, Rows, Scores, ranked
from activecover.learners._models import Examples, Model, Sizes, models_for
from activecover.learners._question import question_vector
from activecover.learners._state import SearchState
from activecover.pool import Vectors

Numbers = npt.NDArray[np.float64]
Scorer = Callable[[Rows], Scores]

#: Negatives, known or presumed, that models are fitted to at least; and as many as positives.
LEAST_NEGATIVES = 10
#: While no positive is known, one question in so many is drawn at random rather than chosen by the question in words.
CHANCE_EVERY = 4
#: Rows among which a model's past ranks are counted; of a smaller pool, all of them.
REFERENCE = 5_000
#: By what share labels grow until other fits judge what follows.
JUDGED_ANEW = 0.25


class Mixture(Learner):
    """Ask for the row that a mixture of models holds most likely to be positive.

    Every model ranks the open rows, and is read as a distribution over them: the next positive is at rank r with a
    probability in proportion to 1 / (offset + r). A row's score is the mean of the logarithms, weighted. The weights
    are learnt from each positive that turns up: a model gains by the probability that it gave to that row (Hedge,
    with full information: every model is judged by every positive, whoever proposed it), and a fixed share is dealt
    out anew so that a model that was wrong early can return.

    ========  ==============================================================================================
    pool      models
    ========  ==============================================================================================
    sparse    linear SVM on words, linear SVM on topics, nearest positives
    dense     extremely randomised trees, RBF SVM on standardised columns (of embeddings: in the whitened space);
              in the whitened space the nearest positive, and how much nearer it is than the nearest negative
    bits      extremely randomised trees, SVM with the Tanimoto kernel, nearest positives
    ========  ==============================================================================================

    Models are refitted whenever the labels have grown by ``growth``, at counts that depend on nothing else, so that the
    same labels always give the same order. Where few negatives are known, random open rows are presumed negative.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which. None are needed where a positive is known, or a question.
    question : str, optional
        What is looked for, in words; for pools of words. It counts as one more positive, and so for less and less.
    growth : float
        By what share labels grow until models are refitted.
    rate, share : float
        How much a positive changes the weights; what share of them is dealt out anew with it.
    offset : float
        How many rows at the top of a ranking count nearly the same.
    C, C_rbf : float
        Of the linear and of the other support vector machines.
    n_estimators : int
        Trees of a forest.
    n_neighbors : int
        Nearest positives that count, of texts and bits.
    max_fit : int
        Most negatives that models are fitted to.

    References
    ----------
    Herbster, M. and Warmuth, M. (1998). Tracking the best expert. Machine Learning.
    Cormack, G. and Grossman, M. (2015). Autonomy and reliability of continuous active learning.

    Examples
    --------
    >>> from activecover.pool import Pool
    >>> points = np.random.default_rng(0).normal(size=(200, 3))
    >>> learner = Mixture().begin(Pool(points))
    >>> learner.tell(Labels.of([0, 1], [0, 1], [True, False], sampled=True))
    >>> len(learner.propose(5))
    5
    """

    negatives: ClassVar[Negatives] = "all"

    def __init__(
        self,
        explore: int | Sequence[int] = 0,
        question: str | None = None,
        growth: float = 0.05,
        rate: float = 0.2,
        share: float = 0.1,
        offset: float = 1.0,
        C: float = 0.11,
        C_rbf: float = 10.0,
        n_estimators: int = 60,
        n_neighbors: int = 3,
        max_fit: int = 2_000,
    ) -> None:
        self.explore = explore
        self.question = question
        self.growth = growth
        self.rate = rate
        self.share = share
        self.offset = offset
        self.C = C
        self.C_rbf = C_rbf
        self.n_estimators = n_estimators
        self.n_neighbors = n_neighbors
        self.max_fit = max_fit

    def prepare(self, state: SearchState) -> None:
        if self.question is not None:
            question_vector(state.pool, self.question)
        self.models(state)

    def ready(self, state: SearchState) -> bool:
        return state.has_positives or self.question is not None

    def score(self, state: SearchState, rows: Rows) -> Scores:
        return self._now(state)[rows]

    def rank(self, state: SearchState, k: int, free: FreeRows) -> Proposal:
        proposal = super().rank(state, k, free)
        return proposal if state.has_positives else self._shared_with_chance(state, proposal, free)

    def probabilities(self, state: SearchState, rows: Rows) -> Numbers:
        """How likely each of some open rows is positive, by what such scores have meant lately."""
        return self._calibration(state).of(self._now(state)[rows])

    def expected_positives(self, state: SearchState) -> float:
        """How many positives the open rows can be expected to hold, by the same."""
        return float(self.probabilities(state, state.open_rows()).sum())

    def weights(self, state: SearchState) -> Mapping[str, float]:
        """What each model counts for now."""
        found = self._history(state).now(state.labels)
        return dict(zip(self.models(state), found.weights.tolist(), strict=True))

    def _calibration(self, state: SearchState) -> Calibration:
        found = self._history(state).now(state.labels)
        return state.kept(
            ("calibration", repr(self)), lambda: fit_calibration(np.array(found.scores), np.array(found.truth, bool))
        )

    def _now(self, state: SearchState) -> Scores:
        """A score per row; of closed ones it means nothing."""
        return state.kept(("mixture", repr(self)), lambda: self._history(state).scores(state.labels))

    def _history(self, state: SearchState) -> _History:
        return state.of_pool(("history", repr(self)), lambda: _History(self, state))

    def models(self, state: SearchState) -> Mapping[str, Model]:
        """The members of the mixture, by name."""
        sizes = Sizes(self.C, self.C_rbf, self.n_estimators, self.n_neighbors)
        return state.of_pool(("models", repr(self)), lambda: models_for(state, sizes))

    def outside(self, state: SearchState) -> Vectors:
        """Encoded positives from outside the pool, the question among them."""
        if self.question is None:
            return state.outside
        vector = question_vector(state.pool, self.question)
        if not state.outside.shape[0]:
            return vector
        return sparse.csr_array(sparse.vstack([state.outside, vector]))

    def _shared_with_chance(self, state: SearchState, proposal: Proposal, free: FreeRows) -> Proposal:
        """The question in words has not paid yet: every so many asks are drawn at random."""
        asked = len(state.labels)
        lots = iter(self.exploration_.on(len(proposal) + free.count, free).tolist())
        chosen = iter(proposal.rows.tolist())
        rows: dict[int, None] = {}
        while len(rows) < len(proposal):
            by_chance = (asked + len(rows)) % CHANCE_EVERY == CHANCE_EVERY - 1
            rows[next(row for row in (lots if by_chance else chosen) if row not in rows)] = None
        return ranked(list(rows))


@dataclass
class _Moment:
    """The mixture after so many labels: weights, and what the scores of labelled rows were before they were asked."""

    weights: Numbers
    scores: list[float] = field(default_factory=list)
    truth: list[bool] = field(default_factory=list)

    def after(self, ranks: Numbers, positive: npt.NDArray[np.bool_], settings: Mixture) -> _Moment:
        """The mixture once more labels are known, of rows that the models put at these ranks (a column each)."""
        weights, logs = self.weights, -np.log(settings.offset + ranks)
        scores, truth = list(self.scores), list(self.truth)
        for column, found in zip(logs.T, positive.tolist(), strict=True):
            scores.append(float(weights @ column))
            truth.append(found)
            if found:
                weights = weights * np.exp(settings.rate * (column - column.max()))
                weights = (1 - settings.share) * weights / weights.sum() + settings.share / len(weights)
        return _Moment(weights, scores, truth)


@dataclass
class _Fit:
    """Models fitted to the first so many labels, and the moment at which they were."""

    count: int
    labels: Labels
    moment: _Moment
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


class _History:
    """The mixture as a fold over the labels: every judge is fitted to some labels and judges those that follow.

    Judges are renewed much more rarely than the models that choose rows, so that an old campaign opens quickly. The
    last ones are kept, and go on from where they are as long as the labels before them are the same.
    """

    def __init__(self, settings: Mixture, state: SearchState) -> None:
        self._settings, self._state = settings, state
        self._judge: _Fit | None = None
        self._fit: _Fit | None = None
        self._all: list[Numbers] = []

    def now(self, labels: Labels) -> _Moment:
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

    def _start(self) -> _Moment:
        models = len(self._settings.models(self._state))
        return _Moment(np.full(models, 1.0 / models))

    def _first(self, labels: Labels) -> int:
        """How many labels it takes until there is a positive to fit models to."""
        if self._settings.outside(self._state).shape[0]:
            return 0
        there = labels.positive & ~self._state.pool.withdrawn[labels.rows]
        return int(there.argmax()) + 1 if there.any() else len(labels) + 1

    def _judged(self, fit: _Fit, labels: Labels, count: int) -> _Moment:
        between = labels.take(slice(fit.count, count))
        between = between.take(~self._state.pool.withdrawn[between.rows])
        if not len(between):
            return fit.moment
        return fit.moment.after(fit.ranks(between.rows), between.positive, self._settings)

    def _refit(self, labels: Labels, count: int, moment: _Moment) -> _Fit:
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
