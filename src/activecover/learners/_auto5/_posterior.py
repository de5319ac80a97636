"""How many of a row's labelled neighbours are positive."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from activecover.errors import InputError, check_count
from activecover.graph import NEIGHBOURS, shared_graph
from activecover.learners._auto5._base import Rows
from activecover.learners._auto5._by_score import MarkedScore, Scores

#: So little that it decides between equal posteriors only.
_TIE = 1e-9


class KnnPosterior(MarkedScore):
    """Ask for the row with the largest share of positives among its labelled neighbours.

    The score is (p + w) / (p + q + 1), for p positives and q negatives among the row's nearest
    neighbours in the pool, where the prior w is the share of positives among all labels. Rows with no
    labelled neighbour are as good as any other unknown row, and better than those with a negative one:
    when the neighbourhoods of positives are used up, the rule explores what nobody has looked at. Among
    equals chance decides.

    Positives from outside the pool have no neighbours; with none in the pool, rows are asked for at
    random.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    neighbours : int
        How many neighbours have a say.

    References
    ----------
    Garnett, R. et al. (2012). Bayesian Optimal Active Search and Surveying. ICML. (The posterior.)

    Examples
    --------
    >>> from activecover.learners import Labels
    >>> from activecover.pool import Pool
    >>> learner = KnnPosterior(explore=[0, 1], neighbours=1).begin(Pool([[0.0], [9.0], [8.9], [3.0], [0.1]]))
    >>> learner.tell(Labels.of([0, 1], [0, 1], [True, False], True))
    >>> learner.propose(3).rows
    array([4, 3, 2])
    """

    def __init__(self, explore: int | Sequence[int] = 100, neighbours: int = NEIGHBOURS) -> None:
        self.explore = explore
        self.neighbours = neighbours

    def _reset(self) -> None:
        check_neighbours(self.neighbours)
        super()._reset()
        self._take_graph()

    def _grow(self) -> None:
        super()._grow()
        self._take_graph()

    def _take_graph(self) -> None:
        self._lists = shared_graph(self.pool_).neighbours[:, : self.neighbours]
        order = self.exploration_.order()
        self._lot = np.empty(len(order))
        self._lot[order] = _TIE * (1.0 - np.arange(len(order)) / len(order))

    def _scores(self, rows: Rows) -> Scores:
        # The last mark is that of no neighbour.
        marks = np.append(self._marks.values, np.int8(0))
        around = marks[self._lists[rows]]
        positive, negative = (around == 1).sum(axis=1), (around == -1).sum(axis=1)
        scores: Scores = (positive + self._marks.prior()) / (positive + negative + 1.0) + self._lot[rows]
        return scores


def check_neighbours(count: int, name: str = "neighbours") -> None:
    """Refuse more neighbours than a graph keeps."""
    check_count(name, count)
    if count > NEIGHBOURS:
        raise InputError(f"{name} {count}: a graph keeps {NEIGHBOURS} per row, which is the most")
