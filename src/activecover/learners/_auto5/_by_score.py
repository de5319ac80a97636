"""What learners share that give every open row a score and ask for the highest."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.frontier import BitFrontier, ExactFrontier, Nearest, SparseFrontier
from activecover.learners._auto5._base import Labels, Learner, Negatives, Proposal, Rows, ranked
from activecover.learners._explore import FreeRows
from activecover.pool import Pool

Scores = npt.NDArray[np.float64]
Scan = ExactFrontier | SparseFrontier | BitFrontier
_SCANS: dict[str, type[Scan]] = {"dense": ExactFrontier, "sparse": SparseFrontier, "bits": BitFrontier}


class ByScore(Learner):
    """Base: the free rows with the highest scores are asked for, ties by the lower row.

    A subclass writes ``_scores``. What it returns is kept until a label comes or goes.
    """

    _kept: tuple[tuple[int, int, int], Scores] | None

    def _rank(self, k: int, free: FreeRows) -> Proposal:
        rows = free.all()
        return self._explained(rows[highest(self._kept_scores()[rows], k)])

    @abstractmethod
    def _scores(self, rows: Rows) -> Scores:
        """Scores of the open rows, which are given in ascending order; no NaN."""

    def _explained(self, rows: Rows) -> Proposal:
        """The rows as a proposal, with what there is to say about them."""
        return ranked(rows)

    def _kept_scores(self) -> Scores:
        """A score per row, minus infinity for the closed ones."""
        key = (self._changes, self.pool_.erasures, len(self.closed_))
        if self._kept is None or self._kept[0] != key:
            rows = self._free(()).all()
            scores = np.full(len(self.closed_), -np.inf)
            scores[rows] = self._scores(rows)
            self._kept = (key, scores)
        return self._kept[1]

    def _reset(self) -> None:
        self._changes = 0
        self._kept = None

    def _changed(self) -> None:
        """Scores that were computed before this are old."""
        self._changes += 1


class NearScore(ByScore):
    """Base of those that also know how far each row's nearest positive is."""

    #: A frontier that somebody else keeps up to date, before this learner is told anything.
    lent: Scan | None = None

    def _reset(self) -> None:
        super()._reset()
        self.near_: Scan = scan_of(self.pool_) if self.lent is None else self.lent
        if self.lent is None and self.outside_.shape[0]:
            self.near_.add(-1 - np.arange(self.outside_.shape[0]), self.outside_)

    def _fold(self, labels: Labels) -> None:
        if self.lent is None:
            # Closed first: a negative's vector is not read from here on.
            self.near_.retire(labels.rows)
            add_rows(self.near_, self.pool_, labels.rows[labels.positive])
        self._changed()

    def _unfold(self, gone: Labels) -> None:
        if self.lent is None:
            remove_rows(self.near_, self.pool_, gone.rows[gone.positive])
            self.near_.restore(gone.rows)
        self._changed()

    def _grow(self) -> None:
        if self.lent is None:
            self.near_.extend()
        self._changed()

    def _ready(self) -> bool:
        return self.near_.positives > 0

    def _explained(self, rows: Rows) -> Proposal:
        found: Nearest = self.near_.look_up(rows)
        return ranked(rows, found.distances, found.sources)


class Marks:
    """The labels of rows as an array: 1, -1, and 0 where there is none (or the row was erased)."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._values = np.zeros(len(pool), np.int8)
        self._erasures = pool.erasures

    @property
    def values(self) -> npt.NDArray[np.int8]:
        """One mark per row."""
        if len(self._values) < len(self._pool):
            self._values = np.concatenate([self._values, np.zeros(len(self._pool) - len(self._values), np.int8)])
        if self._erasures != self._pool.erasures:
            self._erasures = self._pool.erasures
            self._values[self._pool.withdrawn] = 0
        return self._values

    def take_in(self, labels: Labels) -> None:
        """Mark rows."""
        marks = np.where(labels.positive, 1, -1).astype(np.int8)
        self.values[labels.rows] = np.where(self._pool.withdrawn[labels.rows], 0, marks)

    def take_out(self, labels: Labels) -> None:
        """Take marks back."""
        self.values[labels.rows] = 0

    def positives(self) -> Rows:
        """The rows of known positives, ascending."""
        return np.flatnonzero(self.values == 1)

    def negatives(self) -> Rows:
        """The rows of known negatives, ascending."""
        return np.flatnonzero(self.values == -1)

    def prior(self) -> float:
        """The share of positives among the labels, as if one more of either kind were known."""
        return (len(self.positives()) + 1) / (int((self.values != 0).sum()) + 2)


class MarkedScore(ByScore):
    """Base of those whose scores follow from all labels."""

    negatives: ClassVar[Negatives] = "all"

    def _reset(self) -> None:
        super()._reset()
        self._marks = Marks(self.pool_)

    def _fold(self, labels: Labels) -> None:
        self._marks.take_in(labels)
        self._changed()

    def _unfold(self, gone: Labels) -> None:
        self._marks.take_out(gone)
        self._changed()

    def _grow(self) -> None:
        self._changed()

    def _ready(self) -> bool:
        return bool(self.outside_.shape[0] or (self._marks.values == 1).any())


class NearMarkedScore(NearScore):
    """Base of those that need both: all labels, and how far the nearest positive is."""

    negatives: ClassVar[Negatives] = "all"

    def _reset(self) -> None:
        super()._reset()
        self._marks = Marks(self.pool_)

    def _fold(self, labels: Labels) -> None:
        super()._fold(labels)
        self._marks.take_in(labels)

    def _unfold(self, gone: Labels) -> None:
        super()._unfold(gone)
        self._marks.take_out(gone)


def scan_of(pool: Pool) -> Scan:
    """The frontier that knows a distance for every open row."""
    if pool.kind not in _SCANS:
        raise InputError(f"this learner needs a pool on one machine, and this one is {pool.kind!r}: use explore-commit")
    return _SCANS[pool.kind](pool)


def add_rows(frontier: Scan, pool: Pool, rows: Rows) -> None:
    """Let rows of the pool show the way, but for those that were erased."""
    there = rows[~pool.withdrawn[rows]]
    if len(there):
        frontier.add(there, pool.take(there))


def remove_rows(frontier: Scan, pool: Pool, rows: Rows) -> None:
    """Undo :func:`add_rows`."""
    there = rows[~pool.withdrawn[rows]]
    if len(there):
        frontier.remove(there)


def highest(scores: Scores, k: int) -> Rows:
    """Places of the ``k`` highest scores, highest first, ties by the lower place.

    Examples
    --------
    >>> highest(np.array([1.0, 3.0, 2.0, 3.0]), 3)
    array([1, 3, 2])
    """
    k = min(k, len(scores))
    if k < 1:
        return np.zeros(0, np.int64)
    if k == 1:
        return np.array([scores.argmax()], np.int64)
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = np.flatnonzero(scores > least)
    places = np.concatenate([above, np.flatnonzero(scores == least)[: k - len(above)]])
    chosen: Rows = places[np.lexsort((places, -scores[places]))]
    return chosen
