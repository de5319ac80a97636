"""Labels spread over the neighbour graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from activecover.errors import check_count
from activecover.graph import averages, check_neighbors
from activecover.learners._base import Learner
from activecover.learners._contrast import local_contrast
from activecover.learners._labels import Negatives, Rows, Scores, highest
from activecover.learners._state import SearchState


class SpreadPosterior(Learner):
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
    n_neighbors : int
        How many neighbours a row has before the graph is made symmetric.
    max_iter : int
        How often scores are averaged.
    n_in_common : int
        Among how many neighbours of either row those in common are counted, in dense pools.
    sharpness : float
        The power of the contrast that scores begin with.
    crowd : int
        How far this neighbour is says how crowded it is around a row.
    least_sample : int
        From how many random labels on their share of positives says how many can be expected in the pool.

    References
    ----------
    Zhu, X. and Ghahramani, Z. (2002). Learning from labeled and unlabeled data with label propagation.
    Jarvis, R. and Patrick, E. (1973). Clustering using a similarity measure based on shared near neighbors.
    Zelnik-Manor, L. and Perona, P. (2004). Self-tuning spectral clustering. NeurIPS.
    """

    negatives: ClassVar[Negatives] = "all"

    def __init__(
        self,
        explore: int | Sequence[int] = 100,
        n_neighbors: int = 7,
        max_iter: int = 80,
        n_in_common: int = 20,
        sharpness: float = 4,
        crowd: int = 10,
        least_sample: int = 30,
    ) -> None:
        self.explore = explore
        self.n_neighbors = n_neighbors
        self.max_iter = max_iter
        self.n_in_common = n_in_common
        self.sharpness = sharpness
        self.crowd = crowd
        self.least_sample = least_sample

    def prepare(self, state: SearchState) -> None:
        check_count("max_iter", self.max_iter, 0)
        check_neighbors(self.n_neighbors)
        averages(state.graph, self.n_neighbors, self._in_common(state))

    def score(self, state: SearchState, rows: Rows) -> Scores:
        mean = averages(state.graph, self.n_neighbors, self._in_common(state))
        known = state.known
        truth = (state.marks[known] == 1).astype(np.float64)
        scores = np.zeros(len(state.pool))
        scores[rows] = (1.0 - local_contrast(state, rows)) ** self.sharpness
        scores[known] = truth
        for _ in range(self.max_iter):
            scores = np.asarray(mean @ scores).ravel()
            scores[known] = truth
        return self._crowded_first(state, rows, scores[rows])

    def _in_common(self, state: SearchState) -> int | None:
        # By common neighbours where that was tried; in sparse rows and bits many are as far as each other.
        return self.n_in_common if state.pool.kind == "dense" else None

    def _crowded_first(self, state: SearchState, rows: Rows, scores: Scores) -> Scores:
        """Order the best rows, as many as positives are expected, by their density too; they stay the best."""
        if state.pool.kind == "dense":
            best = highest(scores, self._expected_left(state))
            scores[best] = 1.0 + scores[best] / state.scale(self.crowd)[rows[best]]
        return scores

    def _expected_left(self, state: SearchState) -> int:
        """How many positives are still to be found, by the share of positives in the sample."""
        labels = state.labels
        # Positives that were known before the first question were not drawn by anyone.
        drawn = labels.positive[labels.sampled & (labels.numbers >= 0)]
        if len(drawn) < self.least_sample:
            return 0
        return max(0, int(int(drawn.sum()) / len(drawn) * len(state.pool)) - len(state.positives))
