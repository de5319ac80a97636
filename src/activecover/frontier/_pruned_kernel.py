"""Compiled part of the pruned scan: a few leading coordinates of a row decide whether to examine it further.

All comparisons use *limits*: partial sums of squares in float32. The possible error of rotated coordinates and float32
sums is added to the limit once (:func:`as_limit`), so that a partial sum above a limit proves that the true distance
is above the one the limit stands for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from activecover.compiling import compiled
from activecover.frontier.distance import LANES, any_within, error_bound, smallest, squared_distance

#: Leading coordinates, which decide first.
LEAD = 8
#: Rows processed together: their running sums stay in the fastest cache.
STRIPE = 512
#: Relative error bound of float32 sums of up to 800 non-negative terms.
_SUM_ERROR = 1.0001
#: Squares this small may have been rounded to zero, or up from it.
_TINY = 1e-36


@compiled(inline="always")
def as_limit(squared: float, scale: float, error: float) -> Any:
    """The largest partial sum of any row whose squared distance is at most ``squared``.

    The rotated space is ``scale`` times smaller than the pool's; a distance in it errs by ``error``.
    """
    length = np.sqrt(squared) / scale + error
    return np.float32(length * length * _SUM_ERROR + _TINY)


@compiled(fastmath=True)
def _lead_sums(lead: Any, start: int, stop: int, point: Any, sums: Any) -> None:
    """Squared distance in the eight leading coordinates of rows ``start`` to ``stop``.

    Unrolled, so that each coordinate is read once and one instruction processes eight rows.
    """
    c0, c1, c2, c3 = lead[0, start:stop], lead[1, start:stop], lead[2, start:stop], lead[3, start:stop]
    c4, c5, c6, c7 = lead[4, start:stop], lead[5, start:stop], lead[6, start:stop], lead[7, start:stop]
    p0, p1, p2, p3, p4, p5, p6, p7 = point[0], point[1], point[2], point[3], point[4], point[5], point[6], point[7]
    for place in range(stop - start):
        d0, d1, d2, d3 = c0[place] - p0, c1[place] - p1, c2[place] - p2, c3[place] - p3
        d4, d5, d6, d7 = c4[place] - p4, c5[place] - p5, c6[place] - p6, c7[place] - p7
        sums[place] = d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3 + d4 * d4 + d5 * d5 + d6 * d6 + d7 * d7


@compiled(fastmath=True)
def _widen_halves(lead: Any, start: int, stop: int, bits: Any, floats: Any, wide: Any) -> None:
    """Widen float16 bit patterns to float32 by shifting bits."""
    scale = np.float32(2.0**112)
    for axis in range(lead.shape[0]):
        patterns, target = lead[axis, start:stop], wide[axis, : stop - start]
        for place in range(stop - start):
            pattern = np.int32(patterns[place])
            bits[place] = ((pattern & 0x8000) << 16) | ((pattern & 0x7FFF) << 13)
        for place in range(stop - start):
            target[place] = floats[place] * scale


@compiled(fastmath=True)
def _more(rest: Any, row: int, point: Any) -> Any:
    """Squared distance in the coordinates that follow the leading ones."""
    total = np.float32(0.0)
    for axis in range(rest.shape[1]):
        difference = rest[row, axis] - point[LEAD + axis]
        total += difference * difference
    return total


@compiled(fastmath=True)
def _rough(vectors: Any, row: int, positives: Any, place: int) -> Any:
    """Squared distance in float32, accurate enough to show that a row is out of reach."""
    total = np.float32(0.0)
    for axis in range(vectors.shape[1]):
        difference = vectors[row, axis] - positives[place, axis]
        total += difference * difference
    return total


@compiled()
def _compare(
    vectors: Any, row: int, positives: Any, place: int, key: int, plan: Any, scratch: Any, values: Any, sources: Any
) -> None:
    """Compare one row with one positive exactly, unless float32 shows that it is farther."""
    if _rough(vectors, row, positives, place) > values[row] * (1.0 + 1e-7 * (vectors.shape[1] + 8)) + _TINY:
        return
    exact = squared_distance(vectors, row, positives, place, plan, scratch)
    if exact < values[row] or (exact == values[row] and key < sources[row]):
        values[row] = exact
        sources[row] = key


@compiled()
def _look_closer(
    row: int, partial: Any, vectors: Any, rest: Any, point: Any, positives: Any, place: int, key: int,
    plan: Any, scratch: Any, reach: Any, scale: float, error: float, values: Any, sources: Any, limits: Any,
    pending: Any,
) -> bool:  # fmt: skip
    """Process a row that the leading coordinates do not rule out; return whether it has come within reach.

    Beyond the reach it is enough to record a lower bound on the distance and the first positive that the row has not
    been compared with.
    """
    partial += _more(rest, row, point)
    if partial > limits[row]:
        return False
    if partial > reach:
        limits[row] = partial
        if pending[row] < 0:
            pending[row] = place
        return False
    before = as_limit(values[row], scale, error)
    _compare(vectors, row, positives, place, key, plan, scratch, values, sources)
    limit = as_limit(values[row], scale, error)
    if limit <= limits[row]:
        # All pending positives are farther than this one.
        limits[row] = limit
        pending[row] = -1
    return before > reach >= limit


@compiled()
def scan(
    vectors: Any, lead: Any, rest: Any, start: int, stop: int, point: Any, positives: Any, place: int, key: int,
    plan: Any, reach: Any, scale: float, error: float, values: Any, sources: Any, limits: Any, pending: Any,
    entered: Any,
) -> int:  # fmt: skip
    """Bring rows ``start`` to ``stop`` up to date with one positive, lazily.

    ``point`` is the positive in the rotated space. Rows that have come within reach are written to ``entered`` as long
    as there is space; returns their number.
    """
    sums = np.empty(STRIPE, np.float32)
    scratch = np.empty(plan.shape[0])
    count = 0
    for begin in range(start, stop, STRIPE):
        end = min(begin + STRIPE, stop)
        _lead_sums(lead, begin, end, point, sums)
        count = _sift(
            begin, end, sums, vectors, rest, point, positives, place, key, plan, scratch, reach, scale, error,
            values, sources, limits, pending, entered, count,
        )  # fmt: skip
    return count


@compiled()
def scan_half(
    vectors: Any, lead: Any, rest: Any, start: int, stop: int, point: Any, positives: Any, place: int, key: int,
    plan: Any, reach: Any, scale: float, error: float, values: Any, sources: Any, limits: Any, pending: Any,
    entered: Any,
) -> int:  # fmt: skip
    """:func:`scan` for leading coordinates in float16."""
    sums = np.empty(STRIPE, np.float32)
    wide = np.empty((lead.shape[0], STRIPE), np.float32)
    bits = np.empty(STRIPE, np.int32)
    floats = bits.view(np.float32)
    scratch = np.empty(plan.shape[0])
    count = 0
    for begin in range(start, stop, STRIPE):
        end = min(begin + STRIPE, stop)
        _widen_halves(lead, begin, end, bits, floats, wide)
        _lead_sums(wide, 0, end - begin, point, sums)
        count = _sift(
            begin, end, sums, vectors, rest, point, positives, place, key, plan, scratch, reach, scale, error,
            values, sources, limits, pending, entered, count,
        )  # fmt: skip
    return count


@compiled()
def _sift(
    begin: int, end: int, sums: Any, vectors: Any, rest: Any, point: Any, positives: Any, place: int, key: int,
    plan: Any, scratch: Any, reach: Any, scale: float, error: float, values: Any, sources: Any, limits: Any,
    pending: Any, entered: Any, count: int,
) -> int:  # fmt: skip
    """Process rows ``begin`` to ``end``, given their partial sums; most of them need no work."""
    here = limits[begin:end]
    for offset in range(end - begin):
        partial = sums[offset]
        if partial > here[offset]:
            continue
        row = begin + offset
        if partial > reach:
            here[offset] = partial
            if pending[row] < 0:
                pending[row] = place
        elif _look_closer(
            row, partial, vectors, rest, point, positives, place, key, plan, scratch, reach, scale, error,
            values, sources, limits, pending,
        ):  # fmt: skip
            if count < entered.shape[0]:
                entered[count] = row
            count += 1
    return count


@compiled()
def catch_up(
    rows: Any, vectors: Any, rest: Any, points: Any, positives: Any, keys: Any, plan: Any,
    scale: float, error: float, values: Any, sources: Any, limits: Any, pending: Any,
) -> None:  # fmt: skip
    """Compare rows with all their pending positives."""
    scratch = np.empty(plan.shape[0])
    for row in rows:
        first = pending[row]
        if first < 0:
            continue
        limit = as_limit(values[row], scale, error)
        for place in range(first, keys.shape[0]):
            if _more(rest, row, points[place]) > limit:
                continue
            _compare(vectors, row, positives, place, keys[place], plan, scratch, values, sources)
            limit = as_limit(values[row], scale, error)
        limits[row] = limit
        pending[row] = -1


@compiled(inline="always")
def _rounded_up(bound: float) -> Any:
    return np.float32(bound + 1e-6 * abs(bound))


@compiled()
def refine(
    vectors: Any, rows: Any, products: Any, row_squares: Any, positives: Any, point_squares: Any, keys: Any,
    slack: float, plan: Any, scale: float, error: float, values: Any, sources: Any,
) -> int:  # fmt: skip
    """Bring rows up to date with new positives by products of rotated points; return the number of pairs compared.

    ``products[r, j]`` is twice the float32 inner product of row ``rows[r]`` and positive ``j`` in the rotated
    space, ``row_squares`` and ``point_squares`` are squared lengths there.
    """
    scratch = np.empty(plan.shape[0])
    lanes = np.empty(LANES, np.float32)
    offsets = point_squares.astype(np.float32)
    longest = point_squares.max()
    compared = 0
    for r in range(rows.shape[0]):
        row = rows[r]
        beyond = error_bound(row_squares[r], longest, slack) - row_squares[r]
        reach = _rounded_up(as_limit(values[row], scale, error) + beyond)
        if smallest(products, r, offsets, lanes) > reach:
            continue
        for start in range(0, keys.shape[0], LANES):
            stop = min(start + LANES, keys.shape[0])
            if not any_within(products, r, offsets, start, stop, reach):
                continue
            for j in range(start, stop):
                if offsets[j] - products[r, j] <= reach:
                    _compare(vectors, row, positives, j, keys[j], plan, scratch, values, sources)
                    reach = _rounded_up(as_limit(values[row], scale, error) + beyond)
                    compared += 1
    return compared


@compiled()
def within(limits: Any, low: Any, high: Any, found: Any) -> int:
    """Collect rows with limits above ``low`` and at most ``high``, as long as there is space; return their number."""
    count = 0
    for row in range(limits.shape[0]):
        if low < limits[row] <= high:
            if count < found.shape[0]:
                found[count] = row
            count += 1
    return count


@compiled()
def set_limits(scale: float, error: float, values: Any, is_open: Any, limits: Any, pending: Any) -> None:
    """Compute limits from exact values, lowered if a pending positive may be nearer."""
    for row in range(limits.shape[0]):
        if is_open[row]:
            limit = as_limit(values[row], scale, error)
            if pending[row] < 0 or limit <= limits[row]:
                limits[row] = limit
                pending[row] = -1


@compiled()
def settle_limits(rows: Any, scale: float, error: float, values: Any, limits: Any, pending: Any) -> None:
    """Compute limits of rows that have been compared with all positives."""
    for row in rows:
        limits[row] = as_limit(values[row], scale, error)
        pending[row] = -1
