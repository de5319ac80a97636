"""The compiled half of the pruned scan: a short prefix of every row decides whether to look further."""

from __future__ import annotations

from typing import Any

import numpy as np

from activecover.frontier._compile import compiled
from activecover.frontier._kernel import squared_distance

#: Rows worked on at once: their running sums stay in the fastest cache.
_STRIPE = 512


@compiled(fastmath=True)
def _first_sums(first: Any, point: Any, start: int, stop: int, sums: Any) -> None:
    """Squared distance in the leading coordinates of rows ``start`` to ``stop``, a coordinate at a time."""
    count = stop - start
    for place in range(count):
        sums[place] = np.float32(0.0)
    for axis in range(first.shape[0]):
        value = point[axis]
        for place in range(count):
            difference = first[axis, start + place] - value
            sums[place] += difference * difference


@compiled(fastmath=True)
def _more(rest: Any, row: int, point: Any, offset: int) -> Any:
    total = np.float32(0.0)
    for axis in range(rest.shape[1]):
        difference = rest[row, axis] - point[offset + axis]
        total += difference * difference
    return total


@compiled()
def scan(
    vectors: Any,
    first: Any,
    rest: Any,
    limits: Any,
    start: int,
    stop: int,
    point: Any,
    positives: Any,
    place: int,
    key: int,
    plan: Any,
    squared: Any,
    sources: Any,
    changed: Any,
) -> int:
    """Bring rows ``start`` to ``stop`` up to date with one positive; how many changed, and which.

    ``point`` is the positive in the rotated space. A row is left alone as soon as the part of the
    distance that has been summed exceeds its limit; the exact kernel settles the others.
    """
    sums = np.empty(_STRIPE, np.float32)
    scratch = np.empty(plan.shape[0])
    count = 0
    for begin in range(start, stop, _STRIPE):
        end = min(begin + _STRIPE, stop)
        _first_sums(first, point, begin, end, sums)
        for row in range(begin, end):
            partial = sums[row - begin]
            if partial > limits[row]:
                continue
            if partial + _more(rest, row, point, first.shape[0]) > limits[row]:
                continue
            exact = squared_distance(vectors, row, positives, place, plan, scratch)
            if exact < squared[row] or (exact == squared[row] and key < sources[row]):
                squared[row] = exact
                sources[row] = key
                changed[start + count] = row
                count += 1
    return count


@compiled()
def set_limits(rows: Any, squared: Any, is_open: Any, errors: Any, limits: Any) -> None:
    """How large a partial sum of a row may be before no positive behind it can be nearer.

    The rotated coordinates err by at most ``errors`` in length; the sums in float32 by far less than
    the factor. A closed row has a limit below every sum.
    """
    for row in rows:
        if is_open[row]:
            length = np.sqrt(squared[row]) + errors[row]
            limits[row] = np.float32(length * length * 1.00005)
        else:
            limits[row] = np.float32(-1.0)
