"""Nearest to a positive, where near means near for that spot: distances are scaled by the local density."""

from __future__ import annotations

from collections.abc import Sequence

from activecover.graph import local_scale
from activecover.learners._auto5._base import Rows
from activecover.learners._auto5._by_score import NearScore, Scores
from activecover.learners._auto5._posterior import check_neighbours


class DensityCommit(NearScore):
    """Ask for the row nearest to a positive, measured in units of how far the row's own neighbours are.

    The score is the distance to the nearest positive over the distance to the row's k-th nearest
    neighbour in the pool. A row in a sparse spot, whose neighbours are all far, counts as near to a
    positive at a distance that would mean nothing in a dense one.

    Negatives are not learnt from. The density is a statistic of the whole pool: it is computed before
    the first label, from all rows alike, and rows that are erased later leave it as it is. In pools of
    more than 200,000 rows the neighbours are approximate, and in more than 2,000,000 looked for in a random sample.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    neighbour : int
        Which neighbour's distance is the unit.

    References
    ----------
    Kpotufe, S. (2011). k-NN regression adapts to local intrinsic dimension. NeurIPS. (On such scales.)

    Examples
    --------
    >>> from activecover.learners import Labels
    >>> from activecover.pool import Pool
    >>> pool = Pool([[0.0], [1.0], [1.1], [1.2], [-1.5], [-4.0]])
    >>> learner = DensityCommit(explore=[0], neighbour=1).begin(pool)
    >>> learner.tell(Labels.of([0], [0], [True], True))
    >>> learner.propose(2).rows
    array([4, 5])
    """

    def __init__(self, explore: int | Sequence[int] = 100, neighbour: int = 10) -> None:
        self.explore = explore
        self.neighbour = neighbour

    def _reset(self) -> None:
        check_neighbours(self.neighbour, "neighbour")
        super()._reset()
        self._unit = local_scale(self.pool_, self.neighbour)

    def _grow(self) -> None:
        super()._grow()
        self._unit = local_scale(self.pool_, self.neighbour)

    def _scores(self, rows: Rows) -> Scores:
        return -self.near_.look_up(rows).distances / self._unit[rows]
