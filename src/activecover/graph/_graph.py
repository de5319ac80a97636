"""The neighbour graph: the nearest other rows of every row, built once and shared."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.frontier import distance
from activecover.graph import _kernel as kernel
from activecover.parallel import for_each
from activecover.pool import Pool, Statistic, StoredPool, dense_vectors, longer, sparse_vectors, unpacked

Rows = npt.NDArray[np.int64]
#: Rows that search for neighbours, and the rows to search.
Cell = tuple[Rows, Rows]
Compare = Callable[[Rows, Rows], None]

#: Neighbours kept per row. All learners use the same graph, so that it is built only once.
NEIGHBOURS = 50
#: Up to this many rows, all pairs are compared; in larger pools only pairs that share a cell.
EXACT_ROWS = 200_000
#: Number of cells that contain a row. Its own search uses only the cell of its nearest landmark.
CELLS = 12
#: Most rows of a graph: a list of neighbours takes as much memory as a row's vector.
MOST_ROWS = 2_000_000
#: In larger pools, density is measured against a random sample of this many rows.
SAMPLE_ROWS = 16_384
_NAME = "neighbours"
_SAMPLED = "sampled density"
_BLOCK_ROWS = 512
_OTHER_ROWS = 4096
_LOCK = threading.Lock()


class NeighbourGraph:
    """The nearest neighbours of every row of a pool, nearest first, ties by the lower row.

    Distances are those of the frontier: dense rows are filtered by float32 products and compared by the shared
    kernel, products of sparse rows are summed in float64, and fractions of common bits are exact.

    Up to 200,000 rows the graph is exact. In larger pools it is approximate: random rows serve as landmarks, every
    row is a member of the cells of its twelve nearest landmarks, and its neighbours are searched for in the cell of
    the nearest one. Their distances are still exact; :func:`graph_recall` measures how many are missed.

    A graph is a statistic of the whole pool. Added rows join it, at the cost of comparing them with all rows. An
    erased row is removed from it: its own list, and its number in the lists of others. The distances in those lists
    do not change.

    Parameters
    ----------
    n_neighbors : int
        Neighbours per row.

    Attributes
    ----------
    neighbours : array of shape (n, n_neighbors)
        Row numbers; -1 for a missing neighbour.
    distances : array of shape (n, n_neighbors)
        Infinite for a missing neighbour.

    Examples
    --------
    >>> pool = Pool([[0.0], [1.0], [3.0]])
    >>> graph = NeighbourGraph(2).refresh(pool)
    >>> graph.neighbours.tolist()
    [[1, 2], [0, 2], [1, 0]]
    >>> graph.distances.tolist()
    [[1.0, 3.0], [1.0, 2.0], [2.0, 3.0]]
    """

    def __init__(self, n_neighbors: int = NEIGHBOURS) -> None:
        self.n_neighbors = n_neighbors
        self.neighbours = np.zeros((0, n_neighbors), np.int32)
        self._values = np.zeros((0, n_neighbors))
        self._squared = False
        self._erasures = 0
        #: Results derived from the lists, by name; dropped when a list changes.
        self.derived: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.neighbours)

    @property
    def distances(self) -> npt.NDArray[np.float64]:
        """Distances of the neighbours."""
        return np.sqrt(self._values) if self._squared else self._values

    def far(self, rows: Rows, places: Rows) -> npt.NDArray[np.float64]:
        """Distance of one neighbour of each given row, by its position (from 0)."""
        found: npt.NDArray[np.float64] = self._values[rows, places]
        return np.sqrt(found) if self._squared else found

    def scale(self, place: int) -> npt.NDArray[np.float64]:
        """Distance of the neighbour at a position (from 1), or of the last one if there are fewer.

        Never zero, unless all are: otherwise copies of one row would have infinite density.
        """
        values = self._values[:, : min(place, self.n_neighbors)]
        last = np.maximum((np.isfinite(values)).sum(axis=1) - 1, 0)
        found = values[np.arange(len(values)), last]
        far = np.sqrt(found) if self._squared else found
        positive = far[np.isfinite(far) & (far > 0)]
        least = 1e-3 * float(np.median(positive)) if len(positive) else 1.0
        return np.where(np.isfinite(far), np.maximum(far, least), least)

    def copy(self) -> NeighbourGraph:
        """An independent copy."""
        twin = object.__new__(NeighbourGraph)
        twin.__dict__.update(self.__dict__)
        twin.neighbours, twin._values = self.neighbours.copy(), self._values.copy()
        twin.derived = dict(self.derived)
        return twin

    def as_statistic(self) -> Statistic:
        """The form in which it is stored with a pool."""
        return Statistic({"rows": self.neighbours, "values": self._values}, {"squared": self._squared})

    @classmethod
    def restored(cls, kept: Statistic, pool: Pool) -> NeighbourGraph:
        """Restore a stored graph, from which erased rows are already missing."""
        graph = cls(kept.arrays["rows"].shape[1])
        graph.neighbours, graph._values = kept.arrays["rows"], kept.arrays["values"]
        graph._squared = kept.facts["squared"]
        graph._erasures = pool.erasures
        return graph

    def refresh(self, pool: Pool) -> NeighbourGraph:
        """Include added rows, and remove erased ones."""
        first, total = len(self), len(pool)
        if not graph_fits(pool):
            raise InputError(
                f"a neighbour graph of {total:,} rows is too large (the most is {MOST_ROWS:,}): use explore-commit"
            )
        self.wipe_erased(pool)
        if first < total:
            self.derived = {}
            if _landmark_count(first) != _landmark_count(total):
                # With different cells different rows meet: the result must not depend on how the pool grew.
                first = 0
                self.neighbours, self._values = self.neighbours[:0], self._values[:0]
            self.neighbours = longer(self.neighbours, np.full((total - first, self.n_neighbors), -1, np.int32))
            self._values = longer(self._values, np.full((total - first, self.n_neighbors), np.inf))
            compare, cells = _comparison(pool, self), _cells(pool)
            self._compare(compare, [(rows[rows >= first], others) for rows, others in cells])
            self._compare(compare, [(rows[rows < first], others[others >= first]) for rows, others in cells])
        return self

    def compare_with(self, pool: Pool, others: Rows) -> NeighbourGraph:
        """Start over, with neighbours only from the given rows."""
        shape = (len(pool), self.n_neighbors)
        self.neighbours, self._values = np.full(shape, -1, np.int32), np.full(shape, np.inf)
        self._erasures = pool.erasures
        self._compare(_comparison(pool, self), [(np.flatnonzero(~pool.withdrawn), others)])
        return self

    def wipe_erased(self, pool: Pool) -> None:
        """Remove rows erased since the last check."""
        if self._erasures != pool.erasures:
            self._erasures = pool.erasures
            self._wipe(np.flatnonzero(pool.withdrawn[: len(self)]))

    def _wipe(self, gone: Rows) -> None:
        self.derived = {}
        self.neighbours[gone], self._values[gone] = -1, np.inf
        erased = np.zeros(len(self) + 1, bool)
        erased[gone] = True
        self.neighbours[erased[self.neighbours]] = -1

    def _compare(self, compare: Compare, cells: Sequence[Cell]) -> None:
        """Search for neighbours of rows. No row searches two cells, so threads never write to the same list."""
        parts = [
            (rows[start : start + _BLOCK_ROWS], others)
            for rows, others in cells
            for start in range(0, len(rows), _BLOCK_ROWS)
            if len(others)
        ]

        def work(part: Cell) -> None:
            rows, others = part
            for start in range(0, len(others), _OTHER_ROWS):
                compare(rows, others[start : start + _OTHER_ROWS])

        for_each(work, parts)


def _landmark_count(rows: int) -> int:
    """Number of cells of a pool (0 if it is small), which stays the same until the pool has doubled."""
    return 0 if rows <= EXACT_ROWS else math.isqrt(1 << (rows.bit_length() - 1))


def _cells(pool: Pool) -> list[Cell]:
    """Groups of rows, each with the rows to search: all of them, unless the pool is large."""
    there, count = np.flatnonzero(~pool.withdrawn), _landmark_count(len(pool))
    if not count:
        return [(there, there)]
    # Rows added later do not become landmarks until the pool has doubled.
    lots = np.random.Generator(np.random.Philox(key=1)).random(1 << (len(pool).bit_length() - 1))
    landmarks = np.sort(np.argpartition(lots, count)[:count])
    landmarks = landmarks[~pool.withdrawn[landmarks]]
    found, _ = nearest_among(pool, there, landmarks, CELLS)
    # A landmark is not its own neighbour, but it belongs to its own cell.
    at = np.searchsorted(there, landmarks)
    found[at] = np.column_stack([landmarks, found[at, :-1]])
    members = _grouped(there.repeat(found.shape[1]), found.ravel(), landmarks)
    return list(zip(_grouped(there, found[:, 0], landmarks), members, strict=True))


def _grouped(rows: Rows, keys: npt.NDArray[np.int32], groups: Rows) -> list[Rows]:
    """The rows of each group, in ascending order."""
    order = np.argsort(keys, kind="stable")
    starts, stops = (np.searchsorted(keys, groups, side, order) for side in ("left", "right"))
    return [rows[order[start:stop]] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]


def nearest_among(
    pool: Pool, rows: Rows, others: Rows, n_neighbors: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """The nearest rows among ``others`` to each of ``rows``, excluding the row itself, and their distances.

    If there are fewer than ``n_neighbors``, the missing ones have number -1 and infinite distance.

    Examples
    --------
    >>> nearest_among(Pool([[0.0], [1.0], [3.0]]), np.array([0, 2]), np.array([1, 2]), 1)
    (array([[1],
           [1]], dtype=int32), array([[1.],
           [2.]]))
    """
    graph = NeighbourGraph(n_neighbors)
    graph.neighbours, graph._values = (
        np.full((len(pool), n_neighbors), -1, np.int32),
        np.full((len(pool), n_neighbors), np.inf),
    )
    graph._compare(_comparison(pool, graph), [(rows, others)])
    return graph.neighbours[rows], graph.distances[rows]


def graph_fits(pool: Pool) -> bool:
    """Whether a pool is small enough for a graph."""
    return len(pool) <= MOST_ROWS


def graph_is_exact(pool: Pool) -> bool:
    """Whether a pool is small enough for an exact graph."""
    return len(pool) <= EXACT_ROWS


def graph_recall(pool: Pool, rows: int = 200) -> float:
    """The fraction of true nearest neighbours, of some random rows, that the pool's graph contains.

    Examples
    --------
    >>> graph_recall(Pool([[0.0], [1.0], [3.0]]))
    1.0
    """
    there = np.flatnonzero(~pool.withdrawn)
    some = np.sort(np.random.default_rng(0).permutation(there)[:rows])
    graph = shared_graph(pool)
    exact, _ = nearest_among(pool, some, there, graph.n_neighbors)
    known = [np.isin(best[best >= 0], kept).mean() for best, kept in zip(exact, graph.neighbours[some], strict=True)]
    return float(np.mean(known))


def shared_graph(pool: Pool) -> NeighbourGraph:
    """The graph of a pool, built at the first call and kept with the pool.

    Examples
    --------
    >>> pool = Pool([[0.0], [1.0], [3.0]])
    >>> shared_graph(pool) is shared_graph(pool)
    True
    """
    with _LOCK:
        graph = _kept(pool, _NAME)
        if graph is None:
            graph = pool.statistics[_NAME] = NeighbourGraph()
        if len(graph) != len(pool):
            graph.refresh(pool)
            pool.keep_statistic(_NAME, graph.as_statistic())
        graph.wipe_erased(pool)
        return graph


def local_scale(pool: Pool, place: int) -> npt.NDArray[np.float64]:
    """Distance of every row's neighbour at a position (from 1), an inverse measure of local density.

    In a pool that is too large for a graph, neighbours come from a fixed random sample of the pool. That is a coarser
    measure of the same thing, and is recomputed when the pool has grown.

    Examples
    --------
    >>> local_scale(Pool([[0.0], [1.0], [3.0]]), 1)
    array([1., 1., 2.])
    """
    if graph_fits(pool):
        return shared_graph(pool).scale(place)
    name = f"{_SAMPLED} {place}"
    with _LOCK:
        graph = _kept(pool, name)
        if graph is None or len(graph) != len(pool):
            order = np.random.Generator(np.random.Philox(key=0)).random(len(pool))
            order[pool.withdrawn] = 2.0
            sample = np.sort(np.argpartition(order, SAMPLE_ROWS)[:SAMPLE_ROWS])
            graph = NeighbourGraph(place).compare_with(pool, sample[~pool.withdrawn[sample]])
            pool.statistics[name] = graph
            pool.keep_statistic(name, graph.as_statistic())
        graph.wipe_erased(pool)
        return graph.scale(place)


def _kept(pool: Pool, name: str) -> NeighbourGraph | None:
    """The graph of a pool that is in memory or was stored with it."""
    if name not in pool.statistics and isinstance(pool, StoredPool) and name in pool.kept_statistics:
        pool.statistics[name] = NeighbourGraph.restored(pool.kept_statistics[name], pool)
    return pool.statistics.get(name)


def _comparison(pool: Pool, graph: NeighbourGraph) -> Compare:
    """The function that compares rows, for the kind of the pool."""
    graph._squared = pool.kind != "bits"
    if pool.kind == "dense":
        return _dense(pool, graph)
    if pool.kind == "sparse":
        return _sparse(pool, graph)
    if pool.kind == "bits":
        return _bits(pool, graph)
    raise InputError(f"a neighbour graph needs a pool on one machine, but this one is {pool.kind!r}")


def _dense(pool: Pool, graph: NeighbourGraph) -> Compare:
    slack, plan = distance.slack_of(pool.dimensions), distance.summation_plan(pool.dimensions)
    stored = dense_vectors(pool.vectors)
    squares = np.empty(len(pool))
    for start in range(0, len(pool), _OTHER_ROWS):
        squares[start : start + _OTHER_ROWS] = distance.squares(stored[start : start + _OTHER_ROWS])

    def compare(rows: Rows, others: Rows) -> None:
        mine, theirs = stored[rows], stored[others]
        kernel.refine_by_products(
            mine, rows, squares[rows], theirs, others, squares[others], mine @ theirs.T,
            slack, plan, graph._values, graph.neighbours,
        )  # fmt: skip

    return compare


def _sparse(pool: Pool, graph: NeighbourGraph) -> Compare:
    def compare(rows: Rows, others: Rows) -> None:
        # Summed in float64 in the order of the columns, independent of the other rows in the block.
        mine = sparse_vectors(pool.take(rows)).astype(np.float64)
        theirs = sparse_vectors(pool.take(others)).astype(np.float64)
        products = (mine @ theirs.T).toarray()
        far = (mine**2).sum(axis=1)[:, None] + (theirs**2).sum(axis=1)[None] - 2.0 * products
        kernel.refine_by_distances(rows, others, np.maximum(far, 0.0), graph._values, graph.neighbours)

    return compare


def _bits(pool: Pool, graph: NeighbourGraph) -> Compare:
    def compare(rows: Rows, others: Rows) -> None:
        # Counts up to 2**24 are exact in float32.
        mine, theirs = unpacked(pool, rows), unpacked(pool, others)
        common = (mine @ theirs.T).astype(np.float64)
        either = mine.sum(axis=1, dtype=np.float64)[:, None] + theirs.sum(axis=1, dtype=np.float64)[None] - common
        far = 1.0 - np.divide(common, either, out=np.ones_like(common), where=either > 0)
        kernel.refine_by_distances(rows, others, far, graph._values, graph.neighbours)

    return compare
