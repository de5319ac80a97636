"""How many of a row's labelled neighbours are positive."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from activecover.errors import check_count
from activecover.frontier import NEIGHBOURS, shared_graph
from activecover.learners._base import Rows
from activecover.learners._by_score import NearMarkedScore, Scores


class KnnPosterior(NearMarkedScore):
    """Ask for the row with the largest share of positives among its labelled neighbours.

    The score is (p + w) / (p + q + 1), for p positives and q negatives among the row's nearest
    neighbours in the pool. The prior w is the share of positives among all labels; where the nearest
    positive is farther than those neighbours, it is scaled down by how much farther. So rows of which
    nothing is known come in the order of the density-adjusted distance.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    neighbours : int
        How many neighbours have a say.

    References
    ----------
    Garnett, R. et al. (2012). Bayesian Optimal Active Search and Surveying. ICML. (The posterior.)
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
        graph = shared_graph(self.pool_)
        self._lists = graph.neighbours[:, : self.neighbours]
        self._reach = graph.scale(self.neighbours)

    def _scores(self, rows: Rows) -> Scores:
        marks = np.append(self._marks.values, np.int8(0))
        around = marks[self._lists[rows]]
        positive, negative = (around == 1).sum(axis=1), (around == -1).sum(axis=1)
        return (positive + self._prior(rows)) / (positive + negative + 1.0)

    def _prior(self, rows: Rows) -> Scores:
        """What to expect of rows before their neighbours are asked."""
        near, reach = self.near_.look_up(rows).distances, self._reach[rows]
        return self._marks.prior() * reach / np.maximum(near, reach)


def check_neighbours(count: int) -> None:
    """Refuse more neighbours than a graph keeps."""
    check_count("neighbours", count)
    check_count(f"neighbours {count} of the {NEIGHBOURS} that are kept: left", NEIGHBOURS - count, 0)
