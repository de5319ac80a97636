"""Nearer to a positive than to a negative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from activecover.errors import check_count
from activecover.learners._base import Learner
from activecover.learners._labels import Flags, Labels, Negatives, Rows, Scores
from activecover.learners._state import NearestTo, Scan, SearchState, scan_of


class Contrast(Learner):
    """Ask for the row whose nearest positive is nearest in relation to its nearest negative.

    The score is d+ / d-. Both distances are kept by a frontier each, so that the cost is that of
    explore-commit times how many more negatives there are than positives.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.

    Examples
    --------
    >>> from activecover.learners import Labels
    >>> from activecover.pool import Pool
    >>> learner = Contrast(explore=[0, 1]).begin(Pool([[0.0], [2.0], [1.2], [-3.0]]))
    >>> learner.tell(Labels.of([0, 1], [0, 1], [True, False], True))
    >>> learner.propose(2).rows
    array([3, 2])
    """

    negatives: ClassVar[Negatives] = "all"

    def __init__(self, explore: int | Sequence[int] = 100) -> None:
        self.explore = explore

    def score(self, state: SearchState, rows: Rows) -> Scores:
        near = state.near.look_up(rows).distances
        return -_share(near, state.far.look_up(rows).distances) if state.far.positives else -near


class LocalContrast(Learner):
    """The same with few negatives to compare with: nearly as good, at a fraction of the cost.

    The score is d+ / u, where u is how far the nearest negative is among those that count for the row: its
    neighbours in the graph, the negatives of the sample, and those that a random order of the pool puts
    first. If none counts, u is how far the last of the neighbours is, and the score
    the density-adjusted distance.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    n_landmarks : int
        How many rows of the random order are compared with all others, if they turn out negative.
    """

    negatives: ClassVar[Negatives] = "all"

    def __init__(self, explore: int | Sequence[int] = 100, n_landmarks: int = 1000) -> None:
        self.explore = explore
        self.n_landmarks = n_landmarks

    def prepare(self, state: SearchState) -> None:
        check_count("n_landmarks", self.n_landmarks, 0)
        state.scale(state.graph.n_neighbors)

    def score(self, state: SearchState, rows: Rows) -> Scores:
        return -local_contrast(state, rows, self.n_landmarks)


def local_contrast(state: SearchState, rows: Rows, n_landmarks: int = 1000) -> Scores:
    """How much nearer the positives are, by :class:`LocalContrast`: 0 on one of them, 1 on a negative."""
    near, graph = state.near.look_up(rows).distances, state.graph
    far = state.part(("landmarks", n_landmarks), lambda state: _Landmarks(state, n_landmarks)).frontier
    unit = far.look_up(rows).distances if far.positives else state.scale(graph.n_neighbors)[rows]
    # The last mark is that of no neighbour.
    negative = np.append(state.marks, np.int8(0))[graph.neighbours[rows]] == -1
    some = np.flatnonzero(negative.any(axis=1))
    unit[some] = np.minimum(unit[some], graph.far(rows[some], negative[some].argmax(axis=1)))
    return _share(near, unit)


class _Landmarks(NearestTo[Scan]):
    """The negatives that count everywhere: those of the sample, and those that the random order puts first."""

    def __init__(self, state: SearchState, count: int) -> None:
        first = np.zeros(len(state.pool), bool)
        first[state.exploration.order()[:count]] = True

        def which(labels: Labels) -> Flags:
            return ~labels.positive & (labels.sampled | first[labels.rows])

        super().__init__(state, scan_of(state.pool), which)

    def extend(self) -> bool:
        # The first ones of a larger pool are others.
        return False


def _share(near: Scores, far: Scores) -> Scores:
    """The share of the way between two distances: ranks as their ratio does, and is always finite."""
    both = near + far
    share: Scores = np.divide(near, both, out=np.full(len(near), 0.5), where=both > 0)
    return share
