"""Labels spread over the neighbour graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from activecover.errors import check_count
from activecover.frontier import NeighbourGraph
from activecover.learners._base import Rows
from activecover.learners._by_score import Scores
from activecover.learners._contrast import LocalContrast
from activecover.learners._posterior import check_neighbours

_OWN_SCALE = 7
_SHARPNESS = 4


class SpreadPosterior(LocalContrast):
    """Let every row take the mean of its neighbours' scores, again and again, while labels stay.

    Scores begin with (d- / (d+ + d-))⁴, the contrast of :class:`LocalContrast`, sharpened so that rows between
    positives and negatives begin low. Neighbours weigh exp(-d² / (s t)), where s and t are how far the two
    rows' seventh neighbours are; neighbours of each other weigh twice. Few neighbours and many rounds keep scores from
    leaking where classes touch.

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
    Zhu, X. and Ghahramani, Z. (2002). Learning from labeled and unlabeled data with label propagation.
    Zelnik-Manor, L. and Perona, P. (2004). Self-tuning spectral clustering. NeurIPS.
    """

    def __init__(self, explore: int | Sequence[int] = 100, neighbours: int = 7, sweeps: int = 80) -> None:
        self.explore = explore
        self.neighbours = neighbours
        self.sweeps = sweeps

    def _reset(self) -> None:
        check_count("sweeps", self.sweeps, 0)
        check_neighbours(self.neighbours)
        super()._reset()

    def _take_graph(self) -> None:
        super()._take_graph()
        name = f"averages {self.neighbours}"
        if name not in self._graph.derived:
            self._graph.derived[name] = _averages(self._graph, self.neighbours)
        self._averages: sparse.csr_array = self._graph.derived[name]

    def _scores(self, rows: Rows) -> Scores:
        marks = self._marks.values
        known = np.flatnonzero(marks)
        truth = (marks[known] == 1).astype(np.float64)
        scores = np.zeros(len(marks))
        scores[rows] = (1.0 - self._nearness(rows)) ** _SHARPNESS
        scores[known] = truth
        for _ in range(self.sweeps):
            scores = np.asarray(self._averages @ scores).ravel()
            scores[known] = truth
        return scores[rows]


def _averages(graph: NeighbourGraph, neighbours: int) -> sparse.csr_array:
    """The matrix that replaces every score by the weighted mean of the neighbours' scores."""
    lists = graph.neighbours[:, :neighbours]
    there = lists >= 0
    rows = np.repeat(np.arange(len(lists)), there.sum(axis=1))
    others = lists[there].astype(np.int64)
    scale = graph.scale(_OWN_SCALE)
    far = graph.distances[:, :neighbours][there]
    # A neighbour never weighs nothing at all, so that no row is cut off.
    weights = np.maximum(np.exp(-(far**2) / (scale[rows] * scale[others])), 1e-12)
    one_way = sparse.csr_array((weights, (rows, others)), shape=(len(lists), len(lists)))
    both = (one_way + one_way.T).tocsr()
    both.sort_indices()
    totals = np.asarray(both.sum(axis=1)).ravel()
    # A row without neighbours keeps its score.
    alone = np.flatnonzero(totals == 0)
    loops = sparse.csr_array((np.ones(len(alone)), (alone, alone)), shape=both.shape)
    scaled = sparse.diags_array(1.0 / np.where(totals == 0, 1.0, totals)) @ both
    return sparse.csr_array(scaled + loops)
