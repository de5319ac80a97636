"""Insurance: how large a component can be that no draw has hit, and when one would be hit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError, check_count
from activecover.stopping._record import AUDIT, CONTROL, EXPLORE, INSURANCE, Record


@dataclass(frozen=True, slots=True)
class MissedComponent:
    """The largest group of rows that can still be hidden.

    Attributes
    ----------
    rows : int
        At most so many rows, with the stated confidence.
    share : float
        Of the pool.
    draws : int
        Uniform draws that it rests on.
    confidence : float
        That a larger group would have been hit by one of them.
    """

    rows: int
    share: float
    draws: int
    confidence: float

    def sentence(self) -> str:
        """In words."""
        return (
            f"{self.draws:,} uniform draws: a component that none of them hit has at most {self.rows:,} rows "
            f"({100 * self.share:.2g} % of the pool), with confidence {self.confidence:g}"
        )


def missed_component(record: Record, confidence: float = 0.95) -> MissedComponent:
    """How large a component can still be of which no row was drawn.

    A component of s rows that the learner has not touched escapes a uniform draw among ``open`` rows with
    probability 1 - s / open, and a row of the pool's stays open until it is asked. All uniform draws
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
    """The largest component that uniform draws among so many open rows would have missed too often.

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

    ``rows`` are open and every label closes one; each label is a uniform draw with probability ``share``.
    The k-th label is the first hit with the chances of an urn: the mean is (rows + 1) / (share * component + 1).

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
    """Uniform draws without a hit after which no component of so many rows can be left.

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
