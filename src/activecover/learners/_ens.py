"""Efficient nonmyopic search: a row is worth what it is, and what it tells about the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError, check_count
from activecover.graph import NEIGHBOURS
from activecover.learners._base import Proposal, Rows, ranked
from activecover.learners._by_score import Scores, highest
from activecover.learners._explore import FreeRows
from activecover.learners._posterior import KnnPosterior

#: The search looks at the future of many rows for each that it asks for.
MOST_ROWS = 20_000
#: Rows whose future is looked at, and rows of a batch that are chosen so; the others go by their posterior.
CANDIDATES = 50
LOOKED_AHEAD = 32


class EfficientSearch(KnnPosterior):
    """Ask for the row that promises most positives, itself and those that can be asked for after it.

    The promise of a row is its posterior, plus the sum of the highest posteriors of as many rows as can
    still be asked for, averaged over the two answers. It is computed for the rows with the highest
    posteriors. Within a batch every row is chosen as if those before it had turned out negative.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    neighbours : int
        How many neighbours have a say in the posterior.
    horizon : int
        How many rows will still be asked for.

    References
    ----------
    Jiang, S. et al. (2017). Efficient nonmyopic active search. ICML.
    Jiang, S. et al. (2018). Efficient nonmyopic batch active search. NeurIPS.
    """

    def __init__(self, explore: int | Sequence[int] = 100, neighbours: int = NEIGHBOURS, horizon: int = 100) -> None:
        super().__init__(explore, neighbours)
        self.horizon = horizon

    def _take_graph(self) -> None:
        check_count("horizon", self.horizon)
        if len(self.pool_) > MOST_ROWS:
            raise InputError(f"ens looks ahead in pools of up to {MOST_ROWS:,} rows: use knn-posterior")
        super()._take_graph()
        there = self._lists >= 0
        rows = np.repeat(np.arange(len(self._lists)), there.sum(axis=1))
        ones = np.ones(len(rows), np.int8)
        shape = (len(self._lists), len(self._lists))
        #: Row i: those who have i among their neighbours.
        self._heard_by = sparse.csr_array((ones, (self._lists[there], rows)), shape=shape)
        self._heard_by.sort_indices()

    def _rank(self, k: int, free: FreeRows) -> Proposal:
        rows = free.all()
        state = _Posterior(self, rows)
        chosen: list[int] = []
        while len(chosen) < min(k, LOOKED_AHEAD):
            best = state.most_promising(self.horizon)
            chosen.append(best)
            state.tell_negative(best)
        rest = state.ranking(k - len(chosen))
        return ranked(np.concatenate([np.array(chosen, np.int64), rest]))

    def heard_by(self, row: int) -> Rows:
        """The rows that have a row among their neighbours."""
        start, stop = self._heard_by.indptr[row : row + 2]
        return self._heard_by.indices[start:stop].astype(np.int64)

    def counts(self) -> tuple[Scores, Scores]:
        """Positives and negatives among the neighbours of every row."""
        marks = np.append(self._marks.values, np.int8(0))
        around = marks[self._lists]
        return (around == 1).sum(axis=1).astype(float), (around == -1).sum(axis=1).astype(float)


class _Posterior:
    """The posterior of the free rows, and what it would become."""

    def __init__(self, learner: EfficientSearch, free: Rows) -> None:
        self._learner = learner
        self._positive, self._negative = learner.counts()
        self._prior = learner._marks.prior()
        self._lot = learner._lot
        self._open = np.zeros(len(self._positive), bool)
        self._open[free] = True

    def _values(self, rows: Rows, positive: float = 0.0, negative: float = 0.0) -> Scores:
        p, q = self._positive[rows] + positive, self._negative[rows] + negative
        return (p + self._prior) / (p + q + 1.0) + self._lot[rows]

    def most_promising(self, horizon: int) -> int:
        """The row whose posterior and future add up to most."""
        rows = np.flatnonzero(self._open)
        values = self._values(rows)
        # Only so many rows can be among the highest after one row's neighbours have changed.
        order = highest(values, max(CANDIDATES, horizon + self._learner.neighbours * 8))
        top, top_values = rows[order], values[order]
        best, best_promise = int(top[0]), -np.inf
        for row, value in zip(top[:CANDIDATES].tolist(), top_values[:CANDIDATES].tolist(), strict=True):
            around = self._learner.heard_by(row)
            around = around[self._open[around]]
            others = ~np.isin(top, np.append(around, row))
            after = [
                _sum_of_highest(np.concatenate([top_values[others], self._values(around, yes, 1.0 - yes)]), horizon - 1)
                for yes in (1.0, 0.0)
            ]
            promise = value + value * after[0] + (1.0 - value) * after[1]
            if promise > best_promise:
                best, best_promise = row, promise
        return best

    def tell_negative(self, row: int) -> None:
        """Go on as if a row had turned out negative."""
        self._open[row] = False
        self._negative[self._learner.heard_by(row)] += 1.0

    def ranking(self, k: int) -> Rows:
        """The free rows that are left, by posterior."""
        rows = np.flatnonzero(self._open)
        return rows[highest(self._values(rows), k)]


def _sum_of_highest(values: npt.NDArray[np.float64], count: int) -> float:
    if count >= len(values):
        return float(values.sum())
    return float(np.partition(values, len(values) - count)[len(values) - count :].sum()) if count else 0.0
