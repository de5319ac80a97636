"""What passes between a learner and whoever asks it: labels one way, proposals the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from activecover.frontier import NO_KEY

Negatives = Literal["none", "sample", "all"]
Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Labels:
    """Settled labels: which ask (its number), which row, yes or no, and whether exploration drew it.

    Seeds (positives known before the first ask) have negative numbers and count as drawn.
    """

    numbers: Rows
    rows: Rows
    positive: Flags
    sampled: Flags

    @classmethod
    def of(cls, numbers: npt.ArrayLike, rows: npt.ArrayLike, positive: npt.ArrayLike, sampled: npt.ArrayLike) -> Labels:
        """Build from anything array-like; one value of ``sampled`` may stand for all."""
        chosen = np.asarray(rows, np.int64).reshape(-1)
        drawn = np.broadcast_to(np.asarray(sampled, bool), chosen.shape).copy()
        return cls(np.asarray(numbers, np.int64).reshape(-1), chosen, np.asarray(positive, bool).reshape(-1), drawn)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, which: slice | Sequence[int] | npt.NDArray[np.integer | np.bool_]) -> Labels:
        """Some of the labels, by mask or by places."""
        return Labels(self.numbers[which], self.rows[which], self.positive[which], self.sampled[which])

    def in_order(self) -> Labels:
        """The labels in the order in which their rows were asked."""
        return self.take(np.lexsort((self.rows, self.numbers)))


@dataclass(frozen=True, slots=True)
class Proposal:
    """Rows to ask for, in order: the first ``explored`` at random, the others by the learner's scores.

    ``unavailable`` says why the learner could not be used, where it could not; ``reasons`` say for each row why
    it is asked for, where a learner has more to say than its name.
    """

    rows: Rows
    explored: int
    distances: npt.NDArray[np.float64]
    nearest: npt.NDArray[np.int64]
    unavailable: str | None = None
    reasons: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.rows)


def ranked(
    rows: npt.ArrayLike,
    distances: npt.ArrayLike | None = None,
    nearest: npt.ArrayLike | None = None,
    reasons: Sequence[str] | None = None,
) -> Proposal:
    """A proposal by score, with what there is to explain it (NaN and ``NO_KEY`` stand for nothing)."""
    chosen = np.asarray(rows, np.int64)
    far = np.full(len(chosen), np.nan) if distances is None else np.asarray(distances, np.float64)
    keys = np.full(len(chosen), NO_KEY) if nearest is None else np.asarray(nearest, np.int64)
    return Proposal(chosen, 0, far, keys, reasons=None if reasons is None else tuple(reasons))


def drawn(rows: Rows, unavailable: str | None = None) -> Proposal:
    """A proposal of rows that exploration drew, and why the learner itself could not be used, if it could not."""
    by_chance = ranked(rows)
    return Proposal(rows, len(rows), by_chance.distances, by_chance.nearest, unavailable)


def highest(scores: Scores, k: int) -> Rows:
    """Places of the ``k`` highest scores, highest first, ties by the lower place.

    Examples
    --------
    >>> highest(np.array([1.0, 3.0, 2.0, 3.0]), 3)
    array([1, 3, 2])
    """
    k = min(k, len(scores))
    if k < 1:
        return np.zeros(0, np.int64)
    if k == 1:
        return np.array([scores.argmax()], np.int64)
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = np.flatnonzero(scores > least)
    places = np.concatenate([above, np.flatnonzero(scores == least)[: k - len(above)]])
    chosen: Rows = places[np.lexsort((places, -scores[places]))]
    return chosen
