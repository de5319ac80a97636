"""Compiled part of the sparse scan: products with scattered positives, and exact distances by merging.

The squared distance of two sparse rows is the sum of squared float64 differences of their float32 values over the
columns that either row has, added in ascending order of the columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from activecover.compiling import compiled

#: Positives compared in one pass over the rows: their values in a column fill half a cache line.
GROUP = 8
#: Generous bound on the relative error per term of a float64 sum: both the estimate and the exact sum have errors.
_UNIT = 8.0 * 2.0**-53


@compiled()
def squared_distance(
    x_columns: Any, x_values: Any, a: int, a_end: int, p_columns: Any, p_values: Any, b: int, b_end: int
) -> float:
    """Squared distance of two rows, given as ranges of columns and values."""
    # Unsigned indices need no check for negative ones.
    at, at_end, on, on_end = np.uint64(a), np.uint64(a_end), np.uint64(b), np.uint64(b_end)
    one = np.uint64(1)
    total = 0.0
    while at < at_end and on < on_end:
        # The next side is unpredictable: a factor of 0 or 1 is faster than a branch, and exact.
        left, right = x_columns[at], p_columns[on]
        mine, theirs = np.uint64(left <= right), np.uint64(right <= left)
        difference = np.float64(x_values[at]) * np.float64(mine) - np.float64(p_values[on]) * np.float64(theirs)
        total += difference * difference
        at += mine
        on += theirs
    while at < at_end:
        difference = np.float64(x_values[at])
        total += difference * difference
        at += one
    while on < on_end:
        difference = np.float64(p_values[on])
        total += difference * difference
        on += one
    return total


@compiled()
def squares(ends: Any, values: Any, first: int, result: Any) -> None:
    """Squared lengths of rows from ``first`` on."""
    for place in range(result.shape[0]):
        total = 0.0
        for t in range(ends[first + place], ends[first + place + 1]):
            total += np.float64(values[t]) * np.float64(values[t])
        result[place] = total


@compiled()
def scatter(columns: Any, values: Any, ends: Any, first: int, last: int, table: Any) -> None:
    """Write positives to a table by column, one table column per positive."""
    for j in range(first, last):
        for t in range(ends[j], ends[j + 1]):
            table[columns[t], j - first] = values[t]


@compiled()
def wipe(columns: Any, ends: Any, first: int, last: int, table: Any) -> None:
    """Remove positives from the table."""
    for j in range(first, last):
        for t in range(ends[j], ends[j + 1]):
            table[columns[t], j - first] = np.float32(0.0)


@compiled(inline="always")
def _term(columns: Any, values: Any, t: int, table: Any) -> float:
    # An unsigned column needs no check for negative indices.
    return np.float64(values[t]) * np.float64(table[np.uint32(columns[t]), 0])


@compiled()
def _product(columns: Any, values: Any, start: int, end: int, table: Any) -> float:
    # Four running sums by hand: vectorised by the compiler, this would use gathers, which are slower.
    s0 = s1 = s2 = s3 = 0.0
    t = start
    while t + 4 <= end:
        s0 += _term(columns, values, t, table)
        s1 += _term(columns, values, t + 1, table)
        s2 += _term(columns, values, t + 2, table)
        s3 += _term(columns, values, t + 3, table)
        t += 4
    while t < end:
        s0 += _term(columns, values, t, table)
        t += 1
    return (s0 + s1) + (s2 + s3)


@compiled(fastmath={"contract", "nsz"})
def _products(columns: Any, values: Any, start: int, end: int, table: Any, result: Any) -> None:
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for t in range(start, end):
        value = np.float64(values[t])
        column = np.uint32(columns[t])
        s0 += value * np.float64(table[column, 0])
        s1 += value * np.float64(table[column, 1])
        s2 += value * np.float64(table[column, 2])
        s3 += value * np.float64(table[column, 3])
        s4 += value * np.float64(table[column, 4])
        s5 += value * np.float64(table[column, 5])
        s6 += value * np.float64(table[column, 6])
        s7 += value * np.float64(table[column, 7])
    result[0], result[1], result[2], result[3] = s0, s1, s2, s3
    result[4], result[5], result[6], result[7] = s4, s5, s6, s7


@compiled()
def refine(
    ends: Any,
    columns: Any,
    values: Any,
    rows: Any,
    row_squares: Any,
    p_ends: Any,
    p_columns: Any,
    p_values: Any,
    p_squares: Any,
    keys: Any,
    first: int,
    last: int,
    table: Any,
    squared: Any,
    sources: Any,
) -> None:
    """Compare rows with the scattered positives ``first`` to ``last`` and keep the nearest.

    Only positives that may be nearest within the error of the products are compared exactly, by merging.
    """
    count = last - first
    estimates, errors = np.zeros(GROUP), np.zeros(GROUP)
    for row in rows:
        start, end = ends[row], ends[row + 1]
        if table.shape[1] == 1:
            estimates[0] = _product(columns, values, start, end, table)
        else:
            _products(columns, values, start, end, table, estimates)
        limit = squared[row]
        for j in range(count):
            length = p_ends[first + j + 1] - p_ends[first + j]
            both = row_squares[row] + p_squares[first + j]
            estimates[j] = both - 2.0 * estimates[j]
            # The error of a product or square of n terms is at most n units of the lengths' product, and that of the
            # merged sum one unit per term; no product of float32 values underflows.
            errors[j] = _UNIT * (end - start + length + 8) * both
            limit = min(limit, estimates[j] + errors[j])
        for j in range(count):
            if estimates[j] - errors[j] > limit:
                continue
            at, until = p_ends[first + j], p_ends[first + j + 1]
            exact = squared_distance(columns, values, start, end, p_columns, p_values, at, until)
            key = keys[first + j]
            if exact < squared[row] or (exact == squared[row] and key < sources[row]):
                squared[row] = exact
                sources[row] = key
