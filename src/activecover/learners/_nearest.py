"""The paper's two nearest-positive learners: they differ in which positives count."""

from __future__ import annotations

from collections.abc import Sequence

from activecover.frontier import Frontier
from activecover.learners._base import Learner
from activecover.learners._explore import FreeRows
from activecover.learners._labels import Proposal, Rows, Scores, ranked
from activecover.learners._state import SearchState, near_of_sample


class ExploreCommit(Learner):
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
    >>> from activecover.learners import Labels
    >>> from activecover.pool import Pool
    >>> learner = ExploreCommit(explore=[0]).begin(Pool([[0.0], [5.0], [1.0], [1.5]]))
    >>> learner.tell(Labels.of([0], [0], [True], True))
    >>> learner.propose(3).rows
    array([2, 3, 1])
    """

    def __init__(self, explore: int | Sequence[int] = 100, frontier: str = "auto") -> None:
        self.explore = explore
        self.frontier = frontier

    def prepare(self, state: SearchState) -> None:
        state.frontier(self.frontier)

    def ready(self, state: SearchState) -> bool:
        return state.frontier(self.frontier).positives > 0

    def score(self, state: SearchState, rows: Rows) -> Scores:
        return -state.near.look_up(rows).distances

    def rank(self, state: SearchState, k: int, free: FreeRows) -> Proposal:
        # The same order as by score, from a backend that need not know how far every row is.
        return _first(state.frontier(self.frontier), k, free)


class Offline(Learner):
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

    def __init__(self, explore: int | Sequence[int] = 100, frontier: str = "auto") -> None:
        self.explore = explore
        self.frontier = frontier

    def prepare(self, state: SearchState) -> None:
        state.frontier(self.frontier, of_sample=True)

    def ready(self, state: SearchState) -> bool:
        return state.frontier(self.frontier, of_sample=True).positives > 0

    def score(self, state: SearchState, rows: Rows) -> Scores:
        return -near_of_sample(state).look_up(rows).distances

    def rank(self, state: SearchState, k: int, free: FreeRows) -> Proposal:
        return _first(state.frontier(self.frontier, of_sample=True), k, free)


def _first(frontier: Frontier, k: int, free: FreeRows) -> Proposal:
    found = frontier.nearest(k, without=free.held)
    return ranked(found.rows, found.distances, found.sources)
