"""How many of a row's labelled neighbours are positive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from activecover.graph import NEIGHBOURS, check_neighbors
from activecover.learners._base import Learner
from activecover.learners._labels import Negatives, Rows, Scores
from activecover.learners._state import SearchState

#: So little that it decides between equal posteriors only.
TIE = 1e-9


class KnnPosterior(Learner):
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
    n_neighbors : int
        How many neighbours have a say.

    References
    ----------
    Garnett, R. et al. (2012). Bayesian Optimal Active Search and Surveying. ICML. (The posterior.)

    Examples
    --------
    >>> from activecover.learners import Labels
    >>> from activecover.pool import Pool
    >>> learner = KnnPosterior(explore=[0, 1], n_neighbors=1).begin(Pool([[0.0], [9.0], [8.9], [3.0], [0.1]]))
    >>> learner.tell(Labels.of([0, 1], [0, 1], [True, False], True))
    >>> learner.propose(3).rows
    array([4, 3, 2])
    """

    negatives: ClassVar[Negatives] = "all"

    def __init__(self, explore: int | Sequence[int] = 100, n_neighbors: int = NEIGHBOURS) -> None:
        self.explore = explore
        self.n_neighbors = n_neighbors

    def prepare(self, state: SearchState) -> None:
        check_neighbors(self.n_neighbors)
        _ = state.graph

    def score(self, state: SearchState, rows: Rows) -> Scores:
        positive, negative = neighbour_counts(state, rows, self.n_neighbors)
        scores: Scores = (positive + prior(state)) / (positive + negative + 1.0) + TIE * state.lots[rows]
        return scores


def neighbour_counts(state: SearchState, rows: Rows, n_neighbors: int) -> tuple[Scores, Scores]:
    """How many positives and negatives are among the neighbours of some rows."""
    # The last mark is that of no neighbour.
    around = np.append(state.marks, np.int8(0))[state.graph.neighbours[rows, :n_neighbors]]
    return (around == 1).sum(axis=1).astype(np.float64), (around == -1).sum(axis=1).astype(np.float64)


def prior(state: SearchState) -> float:
    """The share of positives among the labels, as if one more of either kind were known."""
    return (len(state.positives) + 1) / (len(state.known) + 2)
