"""Insurance: how large a component can be if no draw has hit it, and when draws would hit it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError, check_count
from activecover.stopping._record import AUDIT, CONTROL, EXPLORE, INSURANCE, Record


@dataclass(frozen=True, slots=True)
class MissedComponent:
    """The largest component that can have escaped all draws.

    Attributes
    ----------
    rows : int
        Upper bound on its rows, with the stated confidence.
    share : float
        These rows as a share of the pool.
    draws : int
        Uniform draws on which the bound rests.
    confidence : float
        Confidence that a larger component would have been hit by one of the draws.
    """

    rows: int
    share: float
    draws: int
    confidence: float

    def sentence(self) -> str:
        """The bound in words."""
        return (
            f"{self.draws:,} uniform draws: a component that none of them hit has at most {self.rows:,} rows "
            f"({100 * self.share:.2g} % of the pool), with confidence {self.confidence:g}"
        )


def missed_component(record: Record, confidence: float = 0.95) -> MissedComponent:
    """Bound the size of a component of which no row has been drawn.

    A component of s rows that the learner has not touched escapes a uniform draw among ``open`` rows with
    probability 1 - s / open, since its rows stay open until they are asked. All uniform draws
    count: exploration, control, audit and insurance. The bound holds at every look.

    Examples
    --------
    >>> record = Record.of([0] * 300, rows=10_000, source="insurance")
    >>> missed_component(record).rows
    97
    """
    chance = record.probability * record.open_rows
    uniform = np.isin(record.source, (EXPLORE, CONTROL, AUDIT, INSURANCE)) & (np.abs(chance - 1) < 1e-6)
    draws = record.open_rows[uniform & record.current]
    rows = largest_missed(draws, confidence, most=record.rows - len(record))
    return MissedComponent(rows, rows / max(1, record.rows), len(draws), confidence)


def largest_missed(open_rows: npt.ArrayLike, confidence: float, most: int) -> int:
    """Rows of the largest component that escapes all draws with a probability of at least ``1 - confidence``.

    ``open_rows`` says among how many rows each draw was made.

    Examples
    --------
    >>> largest_missed([100, 99, 98], 0.95, most=97)
    62
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence {confidence!r}: give a number between 0 and 1, such as 0.95")
    draws = np.asarray(open_rows, np.float64)
    low, high = 0, max(0, most)
    while low < high:
        middle = (low + high + 1) // 2
        if _log_escape(middle, draws) >= math.log(1 - confidence):
            low = middle
        else:
            high = middle - 1
    return low


def labels_to_hit(component: int, rows: int, share: float = 1.0) -> float:
    """Expected labels until insurance hits a component that the learner does not touch.

    There are ``rows`` open rows; every label closes one of them and is a uniform draw with probability ``share``.
    As in draws from an urn, the first hit takes (rows + 1) / (share * component + 1) labels on average.

    Examples
    --------
    >>> labels_to_hit(99, 9_999)
    100.0
    >>> round(labels_to_hit(50, 10_000, share=0.1))
    1667
    """
    check_count("component", component)
    check_count("rows", rows)
    if not 0 < share <= 1:
        raise InputError(f"share {share!r}: give a number above 0 and at most 1")
    return (rows + 1) / (share * component + 1)


def draws_to_exclude(component: int, rows: int, confidence: float = 0.95) -> int:
    """Uniform draws without a hit that rule out a component of this size.

    Examples
    --------
    >>> draws_to_exclude(100, 10_000)
    294
    """
    check_count("component", component)
    check_count("rows", rows)
    low, high = 0, rows
    while low < high:
        middle = (low + high) // 2
        if _log_escape(component, rows - np.arange(middle, dtype=np.float64)) < math.log(1 - confidence):
            high = middle
        else:
            low = middle + 1
    return low


def _log_escape(component: int, draws: npt.NDArray[np.float64]) -> float:
    if np.any(draws <= component):
        return -math.inf
    return float(np.log1p(-component / draws).sum())
