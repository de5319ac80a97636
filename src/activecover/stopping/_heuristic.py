"""What the heuristics have in common: they decide, and prove nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from activecover.stopping._record import Bools, Record
from activecover.stopping._rule import Course, Rule

#: Rules that look back over the whole record look each time it has grown by this share: work stays linear.
_GROWTH = 0.05


class Heuristic(Rule):
    """A rule without a guarantee. Its bound is what is certain by counting, unless it claims more."""

    valid = False

    def _price(self, record: Record, course: Course) -> tuple[int | None, str]:
        return None, "a heuristic: it stops when it stops"


def looks(times: int) -> Iterator[int]:
    """Times at which to look back: ever rarer, so that all looks together cost a few passes."""
    time = 1
    while time < times:
        yield time
        time = max(time + 1, int(time * (1 + _GROWTH)))
    yield times


def from_then_on(record: Record, time: int | None) -> Bools:
    """True from a time on; never if there is none."""
    stop = np.zeros(len(record) + 1, bool)
    if time is not None:
        stop[time:] = True
    return stop
