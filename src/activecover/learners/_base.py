"""What a learner is: a fold over settled labels that says what to ask next."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError, ModelUnavailableError
from activecover.learners._explore import Exploration, FreeRows
from activecover.learners._labels import Labels, Negatives, Proposal, Rows, Scores, drawn, highest
from activecover.learners._state import SearchState, explained
from activecover.pool import Pool, Vectors

Held = npt.ArrayLike | set[int] | frozenset[int]


class Learner(ABC):
    """Base of all learners: give every open row a score, and the highest are asked for first.

    A subclass stores its parameters in the constructor, says what it learns from (``negatives``), and writes
    :meth:`score`, a pure function of a :class:`SearchState` and of rows. ``activecover.testing.check_learner`` holds
    it to the contract.

    ``begin`` puts the learner on a pool; from then on its state is a fold over the *settled* labels in the order in
    which their rows were asked, and nothing else: batches, the order of arrival and what was undone in between leave
    no mark. ``propose`` is pure. So the same pool, seed and labels give the same proposals, and thinking ahead is
    safe. With ``negatives = "none"`` a learner may close a negative row but never read its vector.

    Exploration is the same for all: ``explore`` random rows first, and on until a positive is known.

    Examples
    --------
    >>> from activecover.learners import Learner
    >>> class NearestMean(Learner):
    ...     negatives = "none"
    ...     def __init__(self, explore=100):
    ...         self.explore = explore
    ...     def score(self, state, rows):
    ...         mean = state.vectors(state.positives).mean(axis=0)
    ...         return -np.linalg.norm(state.vectors(rows) - mean, axis=1)
    >>> learner = NearestMean(explore=[0, 1]).begin(Pool([[0.0], [1.0], [9.0], [0.6]]))
    >>> learner.tell(Labels.of([0, 1], [0, 1], [True, True], sampled=True))
    >>> learner.propose(2).rows
    array([3, 2])
    """

    negatives: ClassVar[Negatives] = "none"
    #: Whether a label that comes late (its row was asked before others already folded) changes the fold.
    ordered: ClassVar[bool] = False
    explore: int | Sequence[int] = 0

    # To be written by a subclass.

    @abstractmethod
    def score(self, state: SearchState, rows: Rows) -> Scores:
        """Score open rows, given in ascending order; raise ModelUnavailableError where no model can be had.

        Nothing but the state may be used, and nothing in it changed, so that learners can score for one another.
        A score that is not a number goes last.
        """

    def prepare(self, state: SearchState) -> None:  # noqa: B027 - most have nothing to prepare
        """Check parameters against a pool, and make what is dear before the first ask.

        With ``negatives`` other than "all" also whatever is derived from all rows alike (the graph, a space): later,
        rows may have been erased.
        """

    def ready(self, state: SearchState) -> bool:
        """Whether there is enough to score by; until then rows are drawn at random."""
        return state.has_positives

    def explain(self, state: SearchState, rows: Rows) -> Proposal:
        """Rows in the order of their scores as a proposal, with what there is to say about them."""
        return explained(state, rows)

    def rank(self, state: SearchState, k: int, free: FreeRows) -> Proposal:
        """The ``k`` best of the free rows; for learners that need not score them all, or not one by one."""
        rows = free.all()
        return self.explain(state, rows[highest(self.all_scores(state)[rows], k)])

    def all_scores(self, state: SearchState) -> Scores:
        """A score per row, minus infinity for the closed ones; kept until something changes."""
        return state.kept(("scores", self), lambda: self._score_all(state))

    # The contract.

    def begin(self, pool: Pool, *, seed: int = 0, outside: Vectors | None = None) -> Self:
        """Start on a pool with no labels.

        Parameters
        ----------
        pool : Pool
            The rows to choose from.
        seed : int
            Of all randomness.
        outside : array of encoded vectors, optional
            Positives from outside the pool; their keys are -1, -2, ….
        """
        self.pool_ = pool
        self.exploration_ = Exploration(self.explore, seed).begin(len(pool))
        self.state_ = SearchState(
            pool, seed=seed, outside=outside, learns_from=self.negatives, exploration=self.exploration_
        )
        self.closed_ = self.state_.closed
        self.prepare(self.state_)
        return self

    def tell(self, labels: Labels) -> None:
        """Fold in settled labels."""
        self.state_.check_new(labels)
        late = self.ordered and len(labels) and bool((self.state_.labels.numbers >= labels.numbers.min()).any())
        before = self.state_.untell(self.state_.labels.rows) if late else None
        self._fold(labels.in_order() if before is None else _joined(before, labels))
        self.exploration_.skip_closed(self.closed_)

    def untell(self, rows: npt.ArrayLike) -> None:
        """Take labels back, as if they had never been told."""
        self.exploration_.rewind()
        self.state_.untell(rows)
        if self.ordered:
            self._fold(self.state_.untell(self.state_.labels.rows))

    def extend(self) -> None:
        """Take in the rows by which the pool has grown."""
        self.exploration_.begin(len(self.pool_))
        self.state_.extend()
        self.closed_ = self.state_.closed
        self.prepare(self.state_)
        if self.ordered:
            self._fold(self.state_.untell(self.state_.labels.rows))

    def exploring(self, held: Held = ()) -> bool:
        """Whether rows of the sample are left, or no positive is known yet."""
        return not self.ready(self.state_) or len(self.exploration_.sample(1, self.state_.free(held))) > 0

    def propose(self, k: int, held: Held = ()) -> Proposal:
        """Up to ``k`` rows to ask for next, without those held (leased, skipped, unsure).

        Fewer than ``k`` come back only if no more are open.
        """
        free = self.state_.free(held)
        k = min(k, free.count)
        sample = self.exploration_.sample(k, free)
        if len(sample) == k:
            return drawn(sample)
        if not self.ready(self.state_):
            return drawn(self.exploration_.on(k, free))
        try:
            by_score = self.rank(self.state_, k - len(sample), free.without(sample))
        except ModelUnavailableError as reason:
            return drawn(self.exploration_.on(k, free), str(reason))
        first = drawn(sample)
        return Proposal(
            np.concatenate([first.rows, by_score.rows]),
            len(sample),
            np.concatenate([first.distances, by_score.distances]),
            np.concatenate([first.nearest, by_score.nearest]),
            reasons=None if by_score.reasons is None else ("drawn at random",) * len(sample) + by_score.reasons,
        )

    @property
    def unlabelled(self) -> int:
        """How many rows could still be asked for."""
        return self.state_.free().count

    def get_params(self) -> dict[str, Any]:
        """The constructor's parameters, by name."""
        names = inspect.signature(type(self).__init__).parameters
        return {name: getattr(self, name) for name in names if name != "self"}

    def replace(self, **changes: object) -> Self:
        """A fresh learner with some parameters changed."""
        return type(self)(**{**self.get_params(), **changes})

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({inside})"

    def _fold(self, labels: Labels) -> None:
        """Take in labels in order; a learner that is ``ordered`` may look at the state between them."""
        self.state_.tell(labels)

    def _score_all(self, state: SearchState) -> Scores:
        rows = state.open_rows()
        given = np.asarray(self.score(state, rows), np.float64)
        if given.shape != rows.shape:
            raise InputError(f"{type(self).__name__}.score() gave {given.shape} scores for {len(rows)} rows: one each")
        scores = np.full(len(state.closed), -np.inf)
        scores[rows] = np.where(np.isnan(given), -np.inf, given)
        return scores


def _joined(before: Labels, after: Labels) -> Labels:
    return Labels(
        np.concatenate([before.numbers, after.numbers]),
        np.concatenate([before.rows, after.rows]),
        np.concatenate([before.positive, after.positive]),
        np.concatenate([before.sampled, after.sampled]),
    ).in_order()
