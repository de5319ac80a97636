"""The two ends of the scale: a random order, and the order of someone who knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from activecover.errors import InputError
from activecover.learners._base import Labels, Learner, Proposal, ranked
from activecover.learners._explore import FreeRows


class Passive(Learner):
    """Ask in a uniformly random order.

    Parameters
    ----------
    explore : int or sequence of int
        The rows to begin with; all others follow at random just the same.
    """

    def __init__(self, explore: int | Sequence[int] = 100) -> None:
        self.explore = explore

    def _reset(self) -> None:
        pass

    def _fold(self, labels: Labels) -> None:
        pass

    def _unfold(self, gone: Labels) -> None:
        pass

    def _grow(self) -> None:
        pass

    def propose(self, k: int, held: Any = ()) -> Proposal:
        """The next rows of the random order: every one of them is drawn, in the sample and past it."""
        return self._drawn(self.exploration_.on(k, self._free(held)))

    def _ready(self) -> bool:
        return True

    def _rank(self, k: int, free: FreeRows) -> Proposal:
        raise AssertionError("a random order has no ranking")


class Optimal(Learner):
    """Ask for exactly the rows in the positives' support, then for the rest. It needs the truth.

    Parameters
    ----------
    support : array of bool, one per row
        Which rows lie in the support of the positives; rows added later do not.
    """

    def __init__(self, support: Any) -> None:
        self.support = support

    def _reset(self) -> None:
        inside = np.zeros(len(self.pool_), bool)
        given = np.asarray(self.support, bool)
        if given.ndim != 1 or len(given) > len(inside):
            raise InputError(f"support has {given.size} values for a pool of {len(inside)} rows")
        inside[: len(given)] = given
        self._order = np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)])

    def _fold(self, labels: Labels) -> None:
        pass

    def _unfold(self, gone: Labels) -> None:
        pass

    def _ready(self) -> bool:
        return True

    def _rank(self, k: int, free: FreeRows) -> Proposal:
        return ranked(free.among(self._order)[:k])
