"""Merging the neighbour lists of many positives: one heap over the next open neighbour of each.

A list is a range of two long arrays (rows and squared distances). It is read from the start and grows by one stage
with every search; entries that have been read never change. For every list that is not exhausted, the heap holds its
next entry, or (row ``ASK``) a request for the next stage. A stage that is already known waits for its turn like one
that is not, so cached searches do not change the order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from activecover.compiling import compiled
from activecover.frontier.distance import squared_distance

#: Used in place of a row: a stage has been read to its end, and the index may know more. It sorts before all rows, so
#: that an equally near row with a lower number is not missed.
ASK = -1


class Lists(NamedTuple):
    """The neighbours of every positive, as far as they have been searched."""

    rows: npt.NDArray[np.int32]
    squared: npt.NDArray[np.float64]
    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    #: Number of stages of each list; for each stage, its end relative to the start of the list, and the distance of
    #: the farthest neighbour as reported by the index.
    stages: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    far: npt.NDArray[np.float64]
    #: Whether the index has no more neighbours.
    through: npt.NDArray[np.bool_]
    keys: npt.NDArray[np.int64]


class Heap(NamedTuple):
    """The next entry of every list (squared distance, row, list), and the position and stage it has been read to."""

    squared: npt.NDArray[np.float64]
    rows: npt.NDArray[np.int64]
    lists: npt.NDArray[np.int64]
    cursor: npt.NDArray[np.int64]
    stage: npt.NDArray[np.int64]
    #: A single number: the count of entries.
    size: npt.NDArray[np.int64]


@compiled()
def settle_rows(vectors: Any, rows: Any, positives: Any, plan: Any, squared: Any) -> None:
    """Exact squared distances of ``rows[j, i]`` from positive ``j``; infinite if there is no row."""
    sums = np.empty(plan.shape[0])
    for j in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            if rows[j, i] < 0:
                squared[j, i] = np.inf
            else:
                squared[j, i] = squared_distance(vectors, rows[j, i], positives, j, plan, sums)


@compiled(inline="always")
def _before(heap: Any, keys: Any, a: int, b: int) -> bool:
    if heap.squared[a] != heap.squared[b]:
        return heap.squared[a] < heap.squared[b]
    if heap.rows[a] != heap.rows[b]:
        return heap.rows[a] < heap.rows[b]
    return keys[heap.lists[a]] < keys[heap.lists[b]]


@compiled(inline="always")
def _swap(heap: Any, a: int, b: int) -> None:
    heap.squared[a], heap.squared[b] = heap.squared[b], heap.squared[a]
    heap.rows[a], heap.rows[b] = heap.rows[b], heap.rows[a]
    heap.lists[a], heap.lists[b] = heap.lists[b], heap.lists[a]


@compiled()
def _sink(heap: Any, keys: Any) -> None:
    """Move the first entry to its place in the heap."""
    place = 0
    while True:
        least = place
        for child in (2 * place + 1, 2 * place + 2):
            if child < heap.size[0] and _before(heap, keys, child, least):
                least = child
        if least == place:
            return
        _swap(heap, place, least)
        place = least


@compiled()
def push_all(heap: Any, lists: Any, first: int, total: int) -> None:
    """Start reading lists ``first`` to ``total``."""
    for one in range(first, total):
        heap.cursor[one] = heap.stage[one] = 0
        empty = lists.ends[one, 0] == 0
        if empty and lists.through[one] and lists.stages[one] <= 1:
            continue
        place = heap.size[0]
        heap.size[0] += 1
        heap.squared[place] = lists.far[one, 0] if empty else lists.squared[lists.start[one]]
        heap.rows[place] = ASK if empty else lists.rows[lists.start[one]]
        heap.lists[place] = one
        while place > 0 and _before(heap, lists.keys, place, (place - 1) // 2):
            _swap(heap, place, (place - 1) // 2)
            place = (place - 1) // 2


@compiled()
def first_open(heap: Any, lists: Any, is_open: Any) -> int:
    """Skip closed rows until the first entry is an open row.

    Returns -1 if it is, -2 if all lists are exhausted, or else the list that needs another stage.
    """
    while heap.size[0] > 0:
        one = heap.lists[0]
        if heap.rows[0] >= 0 and is_open[heap.rows[0]]:
            return -1
        stage = heap.stage[one]
        last = stage + 1 >= lists.stages[one]
        if heap.rows[0] == ASK:
            if last:
                return one
            stage += 1
            heap.stage[one] = stage
            last = stage + 1 >= lists.stages[one]
        at, end = lists.start[one] + heap.cursor[one], lists.start[one] + lists.ends[one, stage]
        while at < end and not is_open[lists.rows[at]]:
            at += 1
        heap.cursor[one] = at - lists.start[one]
        if at < end:
            heap.rows[0] = lists.rows[at]
            heap.squared[0] = lists.squared[at]
        elif last and lists.through[one]:
            heap.size[0] -= 1
            _swap(heap, 0, heap.size[0])
        else:
            # The search is worth its time only if nothing nearer than the list's last row is left elsewhere.
            heap.rows[0] = ASK
            heap.squared[0] = lists.far[one, stage]
        _sink(heap, lists.keys)
    return -2


@compiled()
def collect(
    heap: Any, lists: Any, is_open: Any, count: int, wanted: int, rows: Any, squared: Any, keys: Any
) -> tuple[int, int]:
    """Take open rows in order, closing each, until there are ``wanted``.

    Returns their number and, as :func:`first_open` does, the reason for stopping.
    """
    while count < wanted:
        state = first_open(heap, lists, is_open)
        if state != -1:
            return count, state
        rows[count] = heap.rows[0]
        squared[count] = heap.squared[0]
        keys[count] = lists.keys[heap.lists[0]]
        is_open[heap.rows[0]] = False
        count += 1
    return count, -1
