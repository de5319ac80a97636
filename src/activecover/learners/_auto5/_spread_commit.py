"""Positives spread over the neighbour graph, among rows that are not known to be anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from activecover.errors import check_count
from activecover.graph import local_scale, shared_graph
from activecover.learners._auto5._base import Negatives, Rows
from activecover.learners._auto5._by_score import NearMarkedScore, Scores
from activecover.learners._auto5._posterior import check_neighbours
from activecover.learners._auto5._spread import weights

#: What is passed on in a round; the rest is lost, so that a score falls with the number of steps to a positive.
_PASSED_ON = 0.9
#: So little that it decides only between rows that no positive has reached.
_TIE = 1e-12
_OWN_SCALE = 10


class SpreadCommit(NearMarkedScore):
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
    neighbours : int
        How many neighbours a row has before the graph is made symmetric.
    sweeps : int
        How often scores are averaged.

    References
    ----------
    Zhou, D. et al. (2003). Learning with local and global consistency. NeurIPS.

    Examples
    --------
    >>> from activecover.learners import Labels
    >>> from activecover.pool import Pool
    >>> line, clump = [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], [[0.0, 2.4], [0.1, 2.5], [0.0, 2.6]]
    >>> learner = SpreadCommit(explore=[0], neighbours=2).begin(Pool(line + clump))
    >>> learner.tell(Labels.of([0], [0], [True], True))
    >>> learner.propose(3).rows
    array([1, 2, 3])
    """

    # That a row is marked negative closes it and takes it out of the walk; its vector is not used.
    negatives: ClassVar[Negatives] = "none"

    def __init__(self, explore: int | Sequence[int] = 100, neighbours: int = 15, sweeps: int = 40) -> None:
        self.explore = explore
        self.neighbours = neighbours
        self.sweeps = sweeps

    def _reset(self) -> None:
        check_count("sweeps", self.sweeps, 0)
        check_neighbours(self.neighbours)
        super()._reset()
        self._take_graph()

    def _grow(self) -> None:
        super()._grow()
        self._take_graph()

    def _take_graph(self) -> None:
        self._weights = weights(shared_graph(self.pool_), self.neighbours)
        self._unit = local_scale(self.pool_, _OWN_SCALE)
        self._taken_at = self.pool_.erasures

    def _scores(self, rows: Rows) -> Scores:
        if self._taken_at != self.pool_.erasures:
            # What is erased is erased from the weights, too.
            self._take_graph()
        positive = self._marks.positives()
        share = np.zeros(len(self._unit))
        share[rows] = share[positive] = 1.0
        # Only rows that are open or positive are anyone's neighbours: the weights of the others do not count.
        totals = np.asarray(self._weights @ share).ravel()
        share *= _PASSED_ON / np.where(totals > 0, totals, 1.0)
        scores = np.zeros(len(share))
        scores[positive] = 1.0
        for _ in range(self.sweeps):
            scores = share * np.asarray(self._weights @ scores).ravel()
            scores[positive] = 1.0
        unit = self._unit[rows]
        return scores[rows] + _TIE * unit / (self.near_.look_up(rows).distances + unit)
