"""Efficient nonmyopic search: a row is worth what it is, and what it tells about the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError, check_count
from activecover.graph import NEIGHBOURS, check_neighbors
from activecover.learners._base import Learner
from activecover.learners._explore import FreeRows
from activecover.learners._labels import Negatives, Proposal, Rows, Scores, highest, ranked
from activecover.learners._posterior import TIE, KnnPosterior, neighbour_counts, prior
from activecover.learners._state import SearchState

#: The search looks at the future of many rows for each that it asks for.
MOST_ROWS = 20_000


class EfficientSearch(Learner):
    """Ask for the row that promises most positives, itself and those that can be asked for after it.

    The promise of a row is its posterior (:class:`KnnPosterior`), plus the sum of the highest posteriors of as many
    rows as can still be asked for, averaged over the two answers. It is computed for the rows with the highest
    posteriors. Within a batch every row is chosen as if those before it had turned out negative.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    n_neighbors : int
        How many neighbours have a say in the posterior.
    horizon : int
        How many rows will still be asked for.
    n_candidates : int
        For how many rows, those with the highest posteriors, the promise is computed.
    n_ahead : int
        How many rows of a batch are chosen so; the others go by their posterior.

    References
    ----------
    Jiang, S. et al. (2017). Efficient nonmyopic active search. ICML.
    Jiang, S. et al. (2018). Efficient nonmyopic batch active search. NeurIPS.
    """

    negatives: ClassVar[Negatives] = "all"

    def __init__(
        self,
        explore: int | Sequence[int] = 100,
        n_neighbors: int = NEIGHBOURS,
        horizon: int = 100,
        n_candidates: int = 50,
        n_ahead: int = 32,
    ) -> None:
        self.explore = explore
        self.n_neighbors = n_neighbors
        self.horizon = horizon
        self.n_candidates = n_candidates
        self.n_ahead = n_ahead

    def prepare(self, state: SearchState) -> None:
        check_neighbors(self.n_neighbors)
        check_count("horizon", self.horizon)
        check_count("n_candidates", self.n_candidates)
        if len(state.pool) > MOST_ROWS:
            raise InputError(f"ens looks ahead in pools of up to {MOST_ROWS:,} rows: use knn-posterior")
        _ = state.graph

    def score(self, state: SearchState, rows: Rows) -> Scores:
        # What a row promises depends on those chosen before it, so that it ranks as a whole.
        return KnnPosterior(n_neighbors=self.n_neighbors).score(state, rows)

    def rank(self, state: SearchState, k: int, free: FreeRows) -> Proposal:
        future = _Future(self, state, free.all())
        chosen: list[int] = []
        while len(chosen) < min(k, self.n_ahead):
            best = future.most_promising()
            chosen.append(best)
            future.tell_negative(best)
        rest = future.ranking(k - len(chosen))
        return ranked(np.concatenate([np.array(chosen, np.int64), rest]))


class _Future:
    """The posterior of the free rows, and what it would become."""

    def __init__(self, learner: EfficientSearch, state: SearchState, free: Rows) -> None:
        self._learner = learner
        self._positive, self._negative = neighbour_counts(state, np.arange(len(state.pool)), learner.n_neighbors)
        self._prior, self._lots = prior(state), TIE * state.lots
        name = ("heard by", learner.n_neighbors)
        #: Row i: those who have i among their neighbours.
        self._heard_by = state.of_pool(name, lambda: _turned(state.graph.neighbours[:, : learner.n_neighbors]))
        self._open = np.zeros(len(self._positive), bool)
        self._open[free] = True

    def most_promising(self) -> int:
        """The row whose posterior and future add up to most."""
        horizon, candidates = self._learner.horizon, self._learner.n_candidates
        rows = np.flatnonzero(self._open)
        values = self._values(rows)
        # Only so many rows can be among the highest after one row's neighbours have changed.
        order = highest(values, max(candidates, horizon + self._learner.n_neighbors * 8))
        top, top_values = rows[order], values[order]
        best, best_promise = int(top[0]), -np.inf
        for row, value in zip(top[:candidates].tolist(), top_values[:candidates].tolist(), strict=True):
            around = self._listeners(row)
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
        self._negative[self._listeners(row)] += 1.0

    def ranking(self, k: int) -> Rows:
        """The free rows that are left, by posterior."""
        rows = np.flatnonzero(self._open)
        return rows[highest(self._values(rows), k)]

    def _listeners(self, row: int) -> Rows:
        start, stop = self._heard_by.indptr[row : row + 2]
        return np.asarray(self._heard_by.indices[start:stop], np.int64)

    def _values(self, rows: Rows, positive: float = 0.0, negative: float = 0.0) -> Scores:
        p, q = self._positive[rows] + positive, self._negative[rows] + negative
        values: Scores = (p + self._prior) / (p + q + 1.0) + self._lots[rows]
        return values


def _turned(lists: npt.NDArray[np.int32]) -> sparse.csr_array:
    there = lists >= 0
    rows = np.repeat(np.arange(len(lists)), there.sum(axis=1))
    turned = sparse.csr_array((np.ones(len(rows), np.int8), (lists[there], rows)), shape=(len(lists), len(lists)))
    turned.sort_indices()
    return turned


def _sum_of_highest(values: Scores, count: int) -> float:
    if count >= len(values):
        return float(values.sum())
    return float(np.partition(values, len(values) - count)[len(values) - count :].sum()) if count else 0.0
