"""Nearer to a positive than to a negative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from activecover.graph import shared_graph
from activecover.learners._auto5._base import Labels, Negatives, Rows
from activecover.learners._auto5._by_score import (
    NearMarkedScore,
    NearScore,
    Scan,
    Scores,
    add_rows,
    remove_rows,
    scan_of,
)

#: Negatives that every row is compared with: so many rows, by chance, if they turn out negative.
LANDMARKS = 1000


class Contrast(NearScore):
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

    def _reset(self) -> None:
        super()._reset()
        self.far_: Scan = scan_of(self.pool_)

    def _fold(self, labels: Labels) -> None:
        super()._fold(labels)
        self.far_.retire(labels.rows)
        add_rows(self.far_, self.pool_, labels.rows[~labels.positive])

    def _unfold(self, gone: Labels) -> None:
        super()._unfold(gone)
        remove_rows(self.far_, self.pool_, gone.rows[~gone.positive])
        self.far_.restore(gone.rows)

    def _grow(self) -> None:
        super()._grow()
        self.far_.extend()

    def _scores(self, rows: Rows) -> Scores:
        near = self.near_.look_up(rows).distances
        if not self.far_.positives:
            return -near
        far = self.far_.look_up(rows).distances
        return -_share(near, far)


class LocalContrast(NearMarkedScore):
    """The same with few negatives to compare with: nearly as good, at a fraction of the cost.

    The score is d+ / u, where u is how far the nearest negative is among those that count for the row: its
    neighbours in the graph, the negatives of the sample, and those that a random order of the pool puts
    among the first thousand. If none counts, u is how far the last of the neighbours is, and the score
    the density-adjusted distance.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    """

    #: A frontier on the negatives that count everywhere, which somebody else keeps up to date.
    lent_far: Scan | None = None

    def __init__(self, explore: int | Sequence[int] = 100) -> None:
        self.explore = explore

    def _reset(self) -> None:
        super()._reset()
        self.far_: Scan = scan_of(self.pool_) if self.lent_far is None else self.lent_far
        self._take_graph()

    def _fold(self, labels: Labels) -> None:
        super()._fold(labels)
        if self.lent_far is None:
            self.far_.retire(labels.rows)
            add_rows(self.far_, self.pool_, self._landmarks(labels))

    def _unfold(self, gone: Labels) -> None:
        super()._unfold(gone)
        if self.lent_far is None:
            remove_rows(self.far_, self.pool_, self._landmarks(gone))
            self.far_.restore(gone.rows)

    def _grow(self) -> None:
        # The first thousand of a larger pool are others.
        self._refold()

    def _take_graph(self) -> None:
        self._graph = shared_graph(self.pool_)
        self._unit = self._graph.scale(self._graph.n_neighbors)
        self._counts_everywhere = np.zeros(len(self.pool_), bool)
        self._counts_everywhere[self.exploration_.order()[:LANDMARKS]] = True

    def _landmarks(self, labels: Labels) -> Rows:
        return labels.rows[~labels.positive & (labels.sampled | self._counts_everywhere[labels.rows])]

    def _scores(self, rows: Rows) -> Scores:
        return -self._nearness(rows)

    def _nearness(self, rows: Rows) -> Scores:
        """How much nearer the positives are: 0 on one of them, 1 on a negative."""
        near = self.near_.look_up(rows).distances
        graph, marks = self._graph, np.append(self._marks.values, np.int8(0))
        unit = self.far_.look_up(rows).distances if self.far_.positives else self._unit[rows]
        negative = marks[graph.neighbours[rows]] == -1
        some = np.flatnonzero(negative.any(axis=1))
        unit[some] = np.minimum(unit[some], graph.far(rows[some], negative[some].argmax(axis=1)))
        return _share(near, unit)


def _share(near: Scores, far: Scores) -> Scores:
    """The share of the way between two distances: ranks as their ratio does, and is always finite."""
    both = near + far
    share: Scores = np.divide(near, both, out=np.full(len(near), 0.5), where=both > 0)
    return share
