"""Shared by the heuristics, which decide when to stop but prove nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from activecover.stopping._record import Bools, Record
from activecover.stopping._rule import Course, Rule

#: Rules that scan the whole record do so each time it has grown by this share, so that the work stays linear.
_GROWTH = 0.05


class Heuristic(Rule):
    """A rule without a guarantee. Its bound is what counting alone proves, unless it claims more."""

    valid = False

    def _price(self, record: Record, course: Course) -> tuple[int | None, str]:
        return None, "a heuristic: it stops when it stops"


def looks(times: int) -> Iterator[int]:
    """Times at which to scan the record, ever farther apart, so that all scans together cost a few passes."""
    time = 1
    while time < times:
        yield time
        time = max(time + 1, int(time * (1 + _GROWTH)))
    yield times


def from_then_on(record: Record, time: int | None) -> Bools:
    """True from ``time`` on; False throughout if it is None."""
    stop = np.zeros(len(record) + 1, bool)
    if time is not None:
        stop[time:] = True
    return stop
