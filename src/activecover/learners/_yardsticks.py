"""The two ends of the scale: a random order, and the order of someone who knows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.learners._base import Held, Learner
from activecover.learners._labels import Proposal, Rows, Scores, drawn
from activecover.learners._state import SearchState


class Passive(Learner):
    """Ask in a uniformly random order.

    Parameters
    ----------
    explore : int or sequence of int
        The rows to begin with; all others follow at random just the same.
    """

    def __init__(self, explore: int | Sequence[int] = 100) -> None:
        self.explore = explore

    def ready(self, state: SearchState) -> bool:
        return True

    def propose(self, k: int, held: Held = ()) -> Proposal:
        """The next rows of the random order: every one of them is drawn, in the sample and past it."""
        return drawn(self.exploration_.on(k, self.state_.free(held)))

    def score(self, state: SearchState, rows: Rows) -> Scores:
        return state.lots[rows]


class Optimal(Learner):
    """Ask for exactly the rows in the positives' support, then for the rest. It needs the truth.

    Parameters
    ----------
    support : array of bool, one per row
        Which rows lie in the support of the positives; rows added later do not.
    """

    def __init__(self, support: npt.ArrayLike) -> None:
        self.support = support

    def prepare(self, state: SearchState) -> None:
        given = np.asarray(self.support, bool)
        if given.ndim != 1 or len(given) > len(state.pool):
            raise InputError(f"support has {given.size} values for a pool of {len(state.pool)} rows")

    def ready(self, state: SearchState) -> bool:
        return True

    def score(self, state: SearchState, rows: Rows) -> Scores:
        inside = np.zeros(len(state.pool))
        given = np.asarray(self.support, bool)
        inside[: len(given)] = given
        return inside[rows]
