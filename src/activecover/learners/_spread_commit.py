"""Positives spread over the neighbour graph, among rows that are not known to be anything else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from activecover.errors import check_count
from activecover.graph import check_neighbors, weights
from activecover.learners._base import Learner
from activecover.learners._labels import Rows, Scores
from activecover.learners._state import SearchState

#: So little that it decides only between rows that no positive has reached.
_TIE = 1e-12
_OWN_SCALE = 10


class SpreadCommit(Learner):
    """Ask for the row that is reached most easily from the positives, by steps from neighbour to neighbour.

    Positives score 1. Every other open row takes 90 % of the weighted mean of its neighbours' scores, again and
    again. Neighbours weigh exp(-d² / (s t)), where s and t are how far the two rows' seventh neighbours are, and
    neighbours of each other twice. A class is followed along its own shape, in crowded spots and in empty
    ones, where the nearest positive alone would lead out of it.

    Negatives are not learnt from: a row that turns out negative is left out, as if it had never had neighbours. How
    far neighbours are is a statistic of the whole pool, as in :class:`DensityCommit`, whose score decides between rows
    that cannot be reached.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    n_neighbors : int
        How many neighbours a row has before the graph is made symmetric.
    max_iter : int
        How often scores are averaged.
    passed_on : float
        What share of its neighbours' mean score a row takes; the rest is lost, so that a score falls with the number
        of steps to a positive.

    References
    ----------
    Zhou, D. et al. (2003). Learning with local and global consistency. NeurIPS.

    Examples
    --------
    >>> from activecover.learners import Labels
    >>> from activecover.pool import Pool
    >>> line, clump = [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], [[0.0, 2.4], [0.1, 2.5], [0.0, 2.6]]
    >>> learner = SpreadCommit(explore=[0], n_neighbors=2).begin(Pool(line + clump))
    >>> learner.tell(Labels.of([0], [0], [True], True))
    >>> learner.propose(3).rows
    array([1, 2, 3])
    """

    def __init__(
        self,
        explore: int | Sequence[int] = 100,
        n_neighbors: int = 15,
        max_iter: int = 40,
        passed_on: float = 0.9,
    ) -> None:
        self.explore = explore
        self.n_neighbors = n_neighbors
        self.max_iter = max_iter
        self.passed_on = passed_on

    def prepare(self, state: SearchState) -> None:
        check_count("max_iter", self.max_iter, 0)
        check_neighbors(self.n_neighbors)
        weights(state.graph, self.n_neighbors)
        state.scale(_OWN_SCALE)

    def score(self, state: SearchState, rows: Rows) -> Scores:
        both, positive = weights(state.graph, self.n_neighbors), state.positives
        share = np.zeros(len(state.pool))
        share[rows] = share[positive] = 1.0
        # Only rows that are open or positive are anyone's neighbours: the weights of the others do not count.
        totals = np.asarray(both @ share).ravel()
        share *= self.passed_on / np.where(totals > 0, totals, 1.0)
        scores = np.zeros(len(share))
        scores[positive] = 1.0
        for _ in range(self.max_iter):
            scores = share * np.asarray(both @ scores).ravel()
            scores[positive] = 1.0
        unit = state.scale(_OWN_SCALE)[rows]
        return np.asarray(scores[rows] + _TIE * unit / (state.near.look_up(rows).distances + unit))
