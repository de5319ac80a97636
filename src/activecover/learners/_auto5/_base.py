"""The base of auto@5 and its parts, as it was."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from activecover.errors import InputError, ModelUnavailableError
from activecover.learners._base import Learner as Contract
from activecover.learners._explore import Exploration, FreeRows
from activecover.learners._labels import Labels, Negatives, Proposal, Rows, Scores, drawn, ranked
from activecover.learners._state import SearchState
from activecover.pool import Pool, Vectors

__all__ = ["Labels", "Learner", "Negatives", "Proposal", "Rows", "ranked"]


class Learner(Contract):
    """Base of all learners.

    The constructor only stores its parameters. ``begin`` puts the learner on a pool; from then on its
    state is a fold over the *settled* labels in the order in which their rows were asked, and nothing
    else: batches, the order of arrival and what was undone in between leave no mark. ``propose`` is
    pure. So the same pool, seed and labels give the same proposals, and thinking ahead is safe.

    A subclass says what it learns from (``negatives``) and writes ``_reset``, ``_fold``, ``_ready`` and
    ``_rank``; ``activecover.testing.check_learner`` holds it to the contract. With ``negatives = "none"``
    it may close a negative row but never read its vector.

    Exploration is the same for all: ``explore`` random rows first, and on until a positive is known.
    """

    negatives: ClassVar[Negatives] = "none"
    #: Whether a label that comes late (its row was asked before others already folded) changes the fold.
    ordered: ClassVar[bool] = False
    explore: int | Sequence[int] = 0

    def score(self, state: SearchState, rows: Rows) -> Scores:
        raise AssertionError("nothing of auto@5 scores for others")

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
        self.seed_ = seed
        self.outside_ = pool.take([]) if outside is None else outside
        self.closed_ = pool.withdrawn.copy()
        self._open = int((~self.closed_).sum())
        self._erasures = pool.erasures
        self._told: dict[int, tuple[int, bool, bool]] = {}
        self._last = np.iinfo(np.int64).min
        self.exploration_ = Exploration(self.explore, seed).begin(len(pool))
        self._reset()
        return self

    def tell(self, labels: Labels) -> None:
        """Fold in settled labels."""
        labels = labels.take(np.lexsort((labels.rows, labels.numbers)))
        rows = labels.rows
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self.closed_):
            raise InputError(f"a row lies outside the pool of {len(self.closed_)} rows: extend the learner first")
        again = [row for row in rows.tolist() if row in self._told]
        if again or (len(rows) > 1 and len(np.unique(rows)) != len(rows)):
            raise InputError(f"row {again[0] if again else rows[0]} is settled already: untell it first")
        for number, row, positive, sampled in zip(
            labels.numbers.tolist(), rows.tolist(), labels.positive.tolist(), labels.sampled.tolist(), strict=True
        ):
            self._told[row] = (number, positive, sampled)
        self._open -= int((~self.closed_[rows]).sum())
        self.closed_[rows] = True
        self.exploration_.skip_closed(self.closed_)
        late = self.ordered and len(labels) and int(labels.numbers.min()) <= self._last
        self._last = max(self._last, int(labels.numbers.max(initial=self._last)))
        if late:
            self._refold()
        else:
            self._fold(labels)

    def untell(self, rows: Any) -> None:
        """Take labels back, as if they had never been told."""
        gone = self._labels(np.asarray(rows, np.int64))
        for row in gone.rows.tolist():
            del self._told[row]
        self.closed_[gone.rows] = self.pool_.withdrawn[gone.rows]
        self._open += int((~self.closed_[gone.rows]).sum())
        self.exploration_.rewind()
        self._unfold(gone)

    def extend(self) -> None:
        """Take in the rows by which the pool has grown."""
        added = self.pool_.withdrawn[len(self.closed_) :]
        self.closed_ = np.concatenate([self.closed_, added])
        self._open += int((~added).sum())
        self.exploration_.begin(len(self.pool_))
        self._grow()

    def exploring(self, held: Any = ()) -> bool:
        """Whether rows of the sample are left, or no positive is known yet."""
        return not self._ready() or len(self.exploration_.sample(1, self._free(held))) > 0

    def propose(self, k: int, held: Any = ()) -> Proposal:
        """Up to ``k`` rows to ask for next, without those held (leased, skipped, unsure).

        Fewer than ``k`` come back only if no more are open.
        """
        free = self._free(held)
        k = min(k, free.count)
        drawn = self.exploration_.sample(k, free)
        if len(drawn) == k:
            return self._drawn(drawn)
        if not self._ready():
            return self._drawn(self.exploration_.on(k, free))
        try:
            by_rule = self._rank(k - len(drawn), free.without(drawn))
        except ModelUnavailableError as reason:
            return self._drawn(self.exploration_.on(k, free), str(reason))
        first = self._drawn(drawn)
        return Proposal(
            np.concatenate([first.rows, by_rule.rows]),
            len(drawn),
            np.concatenate([first.distances, by_rule.distances]),
            np.concatenate([first.nearest, by_rule.nearest]),
            reasons=None if by_rule.reasons is None else ("drawn at random",) * len(drawn) + by_rule.reasons,
        )

    @property
    def unlabelled(self) -> int:
        """How many rows could still be asked for."""
        return self._free(()).count

    @abstractmethod
    def _reset(self) -> None:
        """Forget all labels; the outside positives stay known."""

    @abstractmethod
    def _fold(self, labels: Labels) -> None:
        """Take in labels, in the order in which their rows were asked."""

    @abstractmethod
    def _ready(self) -> bool:
        """Whether there is a positive to start from."""

    @abstractmethod
    def _rank(self, k: int, free: FreeRows) -> Proposal:
        """The ``k`` best rows among the free ones; raise ModelUnavailableError where no model can be had."""

    def _unfold(self, gone: Labels) -> None:
        """Take labels out again; by default everything is folded anew."""
        self._refold()

    def _grow(self) -> None:
        """Take in new rows; by default everything is folded anew."""
        self._refold()

    def _free(self, held: Any) -> FreeRows:
        if self._erasures != self.pool_.erasures:
            self.closed_ |= self.pool_.withdrawn[: len(self.closed_)]
            self._open = int((~self.closed_).sum())
            self._erasures = self.pool_.erasures
        rows = np.asarray(list(held) if isinstance(held, set | frozenset) else held, np.int64)
        if len(rows):
            rows = np.unique(rows)
            rows = rows[~self.closed_[rows]]
        return FreeRows(self.closed_, rows, self._open - len(rows))

    def _refold(self) -> None:
        self._reset()
        self._fold(self._labels(np.fromiter(self._told, np.int64, len(self._told))))

    def _labels(self, rows: Rows) -> Labels:
        """The labels of settled rows, in the order in which they were asked."""
        unknown = [row for row in rows.tolist() if row not in self._told]
        if unknown:
            raise InputError(f"row {unknown[0]} is not settled: there is nothing to take back")
        told = [self._told[row] for row in rows.tolist()]
        labels = Labels.of([t[0] for t in told], rows, [t[1] for t in told], [t[2] for t in told])
        return labels.take(np.lexsort((labels.rows, labels.numbers)))

    _drawn = staticmethod(drawn)
