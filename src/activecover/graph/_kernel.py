"""Compiled part of the neighbour graph: lists of the nearest rows, kept sorted while rows are compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from activecover.compiling import compiled
from activecover.frontier.distance import error_bound, squared_distance


@compiled()
def _insert(values: Any, neighbours: Any, row: int, value: float, other: int) -> None:
    """Insert a row into another row's list, ordered by distance and then by number, if it is near enough."""
    place = values.shape[1] - 1
    if value > values[row, place] or (value == values[row, place] and other > neighbours[row, place] >= 0):
        return
    while place > 0 and (
        value < values[row, place - 1]
        or (value == values[row, place - 1] and (neighbours[row, place - 1] < 0 or other < neighbours[row, place - 1]))
    ):
        values[row, place] = values[row, place - 1]
        neighbours[row, place] = neighbours[row, place - 1]
        place -= 1
    values[row, place] = value
    neighbours[row, place] = other


@compiled()
def refine_by_products(
    vectors: Any,
    rows: Any,
    squares: Any,
    other_vectors: Any,
    others: Any,
    other_squares: Any,
    products: Any,
    slack: float,
    plan: Any,
    values: Any,
    neighbours: Any,
) -> None:
    """Compare rows with others: float32 products filter, and the shared definition of distance decides.

    ``vectors[r]`` is the vector of row ``rows[r]``, ``squares[r]`` its squared length, and so for the
    others; ``values`` are squared distances.
    """
    sums = np.empty(plan.shape[0])
    last = values.shape[1] - 1
    longest = 0.0
    for j in range(others.shape[0]):
        longest = max(longest, other_squares[j])
    for r in range(rows.shape[0]):
        row = rows[r]
        error = error_bound(squares[r], longest, slack)
        for j in range(others.shape[0]):
            estimate = squares[r] + other_squares[j] - 2.0 * products[r, j]
            if estimate - error > values[row, last] or others[j] == row:
                continue
            exact = squared_distance(vectors, r, other_vectors, j, plan, sums)
            _insert(values, neighbours, row, exact, others[j])


@compiled()
def refine_by_distances(rows: Any, others: Any, distances: Any, values: Any, neighbours: Any) -> None:
    """Compare rows with others whose distances are already known."""
    last = values.shape[1] - 1
    for r in range(rows.shape[0]):
        row = rows[r]
        for j in range(others.shape[0]):
            if distances[r, j] <= values[row, last] and others[j] != row:
                _insert(values, neighbours, row, distances[r, j], others[j])


@compiled()
def shares_in_common(neighbours: Any, places: int, among: int) -> Any:
    """For every row and each of its first neighbours: the fraction of neighbours that both have in common.

    A row counts as its own neighbour. Only the first ``among`` neighbours of each are considered.
    """
    rows = neighbours.shape[0]
    shares = np.zeros((rows, min(places, neighbours.shape[1])))
    seen_from = np.full(rows, -1, np.int64)
    for row in range(rows):
        seen_from[row] = row
        for place in range(among):
            if neighbours[row, place] >= 0:
                seen_from[neighbours[row, place]] = row
        for place in range(shares.shape[1]):
            other = neighbours[row, place]
            if other < 0:
                continue
            common = 0
            for theirs in range(among):
                third = neighbours[other, theirs]
                if third >= 0 and seen_from[third] == row:
                    common += 1
            shares[row, place] = common / among
    return shares
