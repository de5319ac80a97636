"""Looking around: rows that, with their neighbours, cover what nobody has looked at."""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from activecover.graph import NeighbourGraph
from activecover.learners._auto5._base import Rows

#: How many neighbours a row that has been looked at speaks for.
REACH = 30


class Survey:
    """Give the row with the most neighbours of which nothing is known, again and again.

    A row that has been looked at covers its neighbours; so every next row lies where the rows before it do not.
    What a row newly covers is multiplied by its worth: to look around among the negatives brings little. As that
    product can only shrink, it is made anew only for rows at the head of a heap. Among equals the order decides
    in which the rows are given.

    Parameters
    ----------
    graph : NeighbourGraph
        Who is whose neighbour.
    looked_at : array of rows
        Those that are labelled, or held by someone.
    free : array of rows
        Those that may be given, in the order that decides between equals.
    worth : array of numbers
        What it is worth to look at each of the free rows.

    References
    ----------
    Minoux, M. (1978). Accelerated greedy algorithms for maximizing submodular set functions.

    Examples
    --------
    >>> from activecover.graph import shared_graph
    >>> from activecover.pool import Pool
    >>> graph = shared_graph(Pool([[float(place)] for place in range(100)]))
    >>> survey = Survey(graph, np.array([20]), np.array([18, 22, 70, 80]), np.ones(4))
    >>> survey.next(), survey.next()
    (70, 80)
    """

    def __init__(self, graph: NeighbourGraph, looked_at: Rows, free: Rows, worth: npt.NDArray[np.float64]) -> None:
        self._lists = graph.neighbours[:, :REACH]
        # The last place is that of no neighbour, which needs no cover.
        self._covered = np.zeros(len(graph) + 1, bool)
        self._covered[-1] = True
        self._covered[looked_at] = True
        self._covered[self._lists[looked_at]] = True
        self._gone: set[int] = set()
        self._free, self._worth = free, worth
        self._gains = worth * (~self._covered[self._lists[free]]).sum(axis=1)
        self._heap: list[tuple[float, int, int]] = []

    def look(self, row: int) -> None:
        """Count a row as looked at: it is not given any more, and its neighbours are covered."""
        self._gone.add(row)
        self._covered[row] = True
        self._covered[self._lists[row]] = True

    def next(self) -> int:
        """The row that is worth most; it counts as looked at from now on."""
        if not self._gone:
            # One row needs no heap, which takes long in a large pool.
            row = int(self._free[self._gains.argmax()])
            self.look(row)
            return row
        if not self._heap:
            self._heap = self._sorted()
        while True:
            gain, place, row = self._heap[0]
            now = -float(self._worth[place] * (~self._covered[self._lists[row]]).sum())
            if row in self._gone:
                heapq.heappop(self._heap)
            elif now != gain:
                heapq.heapreplace(self._heap, (now, place, row))
            else:
                self.look(row)
                return row

    def _sorted(self) -> list[tuple[float, int, int]]:
        """The rows with what they cover at most, best first; that is a heap."""
        places = np.argsort(-self._gains, kind="stable")
        return list(zip((-self._gains[places]).tolist(), places.tolist(), self._free[places].tolist(), strict=True))
