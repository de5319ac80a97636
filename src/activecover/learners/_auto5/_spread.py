"""Labels spread over the neighbour graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from activecover.errors import check_count
from activecover.graph import NeighbourGraph, shares_in_common
from activecover.learners._auto5._base import Labels, Rows
from activecover.learners._auto5._by_score import Scores, highest
from activecover.learners._auto5._contrast import LocalContrast
from activecover.learners._auto5._posterior import check_neighbours

#: Among so many neighbours of either row those in common are counted.
IN_COMMON = 20
#: From so many random labels on, their share of positives says how many can be expected in the pool.
SAMPLE_ENOUGH = 30
#: How far this neighbour is says how crowded it is around a row.
CROWD = 10
_OWN_SCALE = 7
_SHARPNESS = 4


class SpreadPosterior(LocalContrast):
    """Let every row take the mean of its neighbours' scores, again and again, while labels stay.

    Scores begin with (d- / (d+ + d-))⁴, the contrast of :class:`LocalContrast`, sharpened so that rows between
    positives and negatives begin low. In dense pools neighbours weigh the square of the share of the twenty nearest
    that both have in common, in others exp(-d² / (s t)), where s and t are how far the two rows' seventh neighbours
    are; neighbours of each other weigh twice. Few neighbours and many rounds keep scores from leaking where classes
    touch, and so do common neighbours: two rows on either side of a border share few.

    In dense pools, among as many of the best rows as positives can be expected by the sample, crowded ones come
    first: their scores are divided by how far the row's tenth neighbour is. A batch with fewer places than there are
    positives left had better take those in the middle of the class.

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
    Jarvis, R. and Patrick, E. (1973). Clustering using a similarity measure based on shared near neighbors.
    Zelnik-Manor, L. and Perona, P. (2004). Self-tuning spectral clustering. NeurIPS.
    """

    def __init__(self, explore: int | Sequence[int] = 100, neighbours: int = 7, sweeps: int = 80) -> None:
        self.explore = explore
        self.neighbours = neighbours
        self.sweeps = sweeps

    def _reset(self) -> None:
        check_count("sweeps", self.sweeps, 0)
        check_neighbours(self.neighbours)
        self._drawn_labels = self._drawn_positives = 0
        super()._reset()

    def _fold(self, labels: Labels) -> None:
        super()._fold(labels)
        self._count_drawn(labels, 1)

    def _unfold(self, gone: Labels) -> None:
        super()._unfold(gone)
        self._count_drawn(gone, -1)

    def _count_drawn(self, labels: Labels, sign: int) -> None:
        # Positives that were known before the first question were not drawn by anyone.
        drawn = labels.sampled & (labels.numbers >= 0)
        self._drawn_labels += sign * int(drawn.sum())
        self._drawn_positives += sign * int(labels.positive[drawn].sum())

    def _take_graph(self) -> None:
        super()._take_graph()
        # By common neighbours where that was tried; in sparse rows and bits many are as far as each other.
        common = self.pool_.kind == "dense"
        self._crowding = self._graph.scale(CROWD)
        name = f"averages {self.neighbours} {common}"
        if name not in self._graph.derived:
            self._graph.derived[name] = _averages(self._graph, self.neighbours, common)
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
        return self._crowded_first(rows, scores[rows])

    def _crowded_first(self, rows: Rows, scores: Scores) -> Scores:
        """Order the best rows, as many as positives are expected, by their density too; they stay the best."""
        left = self._expected_left()
        if not left or self.pool_.kind != "dense":
            return scores
        best = highest(scores, left)
        scores[best] = 1.0 + scores[best] / self._crowding[rows[best]]
        return scores

    def _expected_left(self) -> int:
        """How many positives are still to be found, by the share of positives in the sample."""
        if self._drawn_labels < SAMPLE_ENOUGH:
            return 0
        expected = self._drawn_positives / self._drawn_labels * len(self.pool_)
        return max(0, int(expected) - int((self._marks.values == 1).sum()))


def _averages(graph: NeighbourGraph, neighbours: int, common: bool) -> sparse.csr_array:
    """The matrix that replaces every score by the weighted mean of the neighbours' scores."""
    both = _in_common(graph, neighbours) if common else weights(graph, neighbours)
    totals = np.asarray(both.sum(axis=1)).ravel()
    # A row without neighbours keeps its score.
    alone = np.flatnonzero(totals == 0)
    loops = sparse.csr_array((np.ones(len(alone)), (alone, alone)), shape=both.shape)
    scaled = sparse.diags_array(1.0 / np.where(totals == 0, 1.0, totals)) @ both
    return sparse.csr_array(scaled + loops)


def weights(graph: NeighbourGraph, neighbours: int) -> sparse.csr_array:
    """How much neighbours weigh by their distance; made once for a graph."""
    name = f"weights {neighbours}"
    if name not in graph.derived:
        rows, others, places = _pairs(graph, neighbours)
        scale = graph.scale(_OWN_SCALE)
        far = graph.far(rows, places)
        graph.derived[name] = _both_ways(graph, rows, others, np.exp(-(far**2) / (scale[rows] * scale[others])))
    found: sparse.csr_array = graph.derived[name]
    return found


def _in_common(graph: NeighbourGraph, neighbours: int) -> sparse.csr_array:
    """How much neighbours weigh by the neighbours that they have in common."""
    rows, others, places = _pairs(graph, neighbours)
    shares = shares_in_common(graph.neighbours, neighbours, min(IN_COMMON, graph.n_neighbors))
    return _both_ways(graph, rows, others, shares[rows, places] ** 2)


def _pairs(graph: NeighbourGraph, neighbours: int) -> tuple[Rows, Rows, Rows]:
    """Rows, their nearest neighbours, and in which place of the row's list each neighbour is."""
    lists = graph.neighbours[:, :neighbours]
    rows, places = np.nonzero(lists >= 0)
    return rows, lists[rows, places].astype(np.int64), places


def _both_ways(graph: NeighbourGraph, rows: Rows, others: Rows, values: Scores) -> sparse.csr_array:
    """Symmetric: neighbours of each other count twice."""
    # A neighbour never weighs nothing at all, so that no row is cut off.
    one_way = sparse.csr_array((np.maximum(values, 1e-12), (rows, others)), shape=(len(graph), len(graph)))
    both = (one_way + one_way.T).tocsr()
    both.sort_indices()
    return sparse.csr_array(both)
