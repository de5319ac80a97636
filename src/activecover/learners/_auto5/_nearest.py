"""The paper's two nearest-positive learners: they differ in which positives count."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from activecover.frontier import Frontier, choose_frontier
from activecover.learners._auto5._base import Labels, Learner, Proposal, Rows, ranked
from activecover.learners._explore import FreeRows


class _NearestPositive(Learner):
    """Ask for the open row nearest to a positive that counts."""

    def __init__(self, explore: int | Sequence[int] = 100, frontier: str = "auto") -> None:
        self.explore = explore
        self.frontier = frontier

    @abstractmethod
    def _counts(self, labels: Labels) -> Rows:
        """Which of some labels' rows are positives to be near to."""

    def _reset(self) -> None:
        self.frontier_: Frontier = choose_frontier(self.pool_, self.frontier)
        if self.outside_.shape[0]:
            self.frontier_.add(-1 - np.arange(self.outside_.shape[0]), self.outside_)

    def _fold(self, labels: Labels) -> None:
        # Closed first: a negative's vector is not read from here on, a positive's only as a positive.
        self.frontier_.retire(labels.rows)
        new = self._still_there(self._counts(labels))
        if len(new):
            self.frontier_.add(new, self.pool_.take(new))

    def _unfold(self, gone: Labels) -> None:
        counted = self._still_there(self._counts(gone))
        if len(counted):
            self.frontier_.remove(counted)
        self.frontier_.restore(gone.rows)

    def _grow(self) -> None:
        self.frontier_.extend()

    def _ready(self) -> bool:
        return self.frontier_.positives > 0

    def _still_there(self, rows: Rows) -> Rows:
        """A positive that was erased from the pool no longer shows the way."""
        return rows[~self.pool_.withdrawn[rows]]

    def _rank(self, k: int, free: FreeRows) -> Proposal:
        found = self.frontier_.nearest(k, without=free.held)
        return ranked(found.rows, found.distances, found.sources)


class ExploreCommit(_NearestPositive):
    """Explore at random, then commit: always ask for the row nearest to any positive found so far.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    frontier : str
        The backend by name; ``auto`` takes the quickest exact one, which changes nothing but time.

    References
    ----------
    Jiang, H. and Rostamizadeh, A. (2021). Active Covering. ICML. Algorithm 2.

    Examples
    --------
    >>> from activecover.pool import Pool
    >>> learner = ExploreCommit(explore=[0]).begin(Pool([[0.0], [5.0], [1.0], [1.5]]))
    >>> learner.tell(Labels.of([0], [0], [True], True))
    >>> learner.propose(3).rows
    array([2, 3, 1])
    """

    def _counts(self, labels: Labels) -> Rows:
        return labels.rows[labels.positive]


class Offline(_NearestPositive):
    """Explore at random, then ask in the order of distance to the nearest positive *of that sample*.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    frontier : str
        The backend by name; ``auto`` takes the quickest exact one, which changes nothing but time.

    References
    ----------
    Jiang, H. and Rostamizadeh, A. (2021). Active Covering. ICML. Algorithm 1.
    """

    def _counts(self, labels: Labels) -> Rows:
        return labels.rows[labels.positive & labels.sampled]
