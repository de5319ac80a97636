"""Nearest to a positive in the space in which the positives lie together best: no negative is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from activecover.learners._base import Learner
from activecover.learners._labels import Negatives, Proposal, Rows, Scores, ranked
from activecover.learners._spaces import whitened
from activecover.learners._state import SearchState

#: Positives that are asked which of the spaces is the better one.
ASKED = 100


class NearestWhitened(Learner):
    """Explore-commit with the choice of its space: as the pool is, or whitened, by cosine.

    Whitening evens the directions out, and the cosine leaves out how far a row is from the middle of the pool.
    Which space is better is decided by the positives: each looks for the nearest other positive, and what counts is how
    many open rows are nearer. Nothing else is learnt from, and of negatives nothing at all. Until three positives are
    known, and in doubt, a dense pool is whitened; others have the space that they come with.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which. None are needed where a positive is known.

    Examples
    --------
    >>> from activecover.learners import Labels
    >>> from activecover.pool import Pool
    >>> points = np.random.default_rng(0).normal(size=(300, 3)) * [1.0, 1.0, 100.0]
    >>> learner = NearestWhitened().begin(Pool(points))
    >>> learner.tell(Labels.of([0], [0], [True], sampled=True))
    >>> len(learner.propose(5))
    5
    """

    negatives: ClassVar[Negatives] = "none"

    def __init__(self, explore: int | Sequence[int] = 0) -> None:
        self.explore = explore

    def prepare(self, state: SearchState) -> None:
        _chosen_from(state)

    def score(self, state: SearchState, rows: Rows) -> Scores:
        scores: Scores = -self._chosen(state).near.look_up(rows).distances
        return scores

    def explain(self, state: SearchState, rows: Rows) -> Proposal:
        found = self._chosen(state).near.look_up(rows)
        return ranked(rows, found.distances, found.sources)

    def _chosen(self, state: SearchState) -> SearchState:
        return state.kept(("better space", self), lambda: _better(_chosen_from(state), state))


def _chosen_from(state: SearchState) -> list[SearchState]:
    """The spaces of a pool, the one to prefer first."""
    return [state.space("whitened", whitened), state] if state.pool.kind == "dense" else [state]


def _better(spaces: list[SearchState], state: SearchState) -> SearchState:
    positives = state.positives
    if len(spaces) == 1 or len(positives) < 3:
        return spaces[0]
    asked = positives[np.argsort(-state.lots[positives], kind="stable")[:ASKED]]
    return min(spaces, key=lambda space: _nearer(space, asked))


def _nearer(space: SearchState, positives: Rows) -> float:
    """The mean logarithm of how many open rows are nearer to a positive than the nearest other positive is."""
    inside = np.asarray(space.vectors(positives), np.float64)
    rows = space.open_rows()
    among = ((inside[:, None, :] - inside[None, :, :]) ** 2).sum(axis=2)
    np.fill_diagonal(among, np.inf)
    counts = np.zeros(len(positives))
    for start in range(0, len(rows), 4096):
        part = np.asarray(space.vectors(rows[start : start + 4096]), np.float64)
        squares = (part**2).sum(axis=1)[:, None] - 2.0 * part @ inside.T + (inside**2).sum(axis=1)
        counts += (squares < among.min(axis=1)).sum(axis=0)
    return float(np.log1p(counts).mean())
