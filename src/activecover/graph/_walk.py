"""Matrices that pass scores from neighbour to neighbour, built once per graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError, check_count
from activecover.graph._graph import NEIGHBOURS, NeighbourGraph
from activecover.graph._kernel import shares_in_common

Rows = npt.NDArray[np.int64]
#: The neighbour whose distance is the scale of a row.
_OWN_SCALE = 7


def weights(graph: NeighbourGraph, n_neighbors: int) -> sparse.csr_array:
    """Weights of neighbours by distance; symmetric, and doubled for mutual neighbours.

    A neighbour has weight exp(-d² / (s t)), where s and t are the distances of the two rows' seventh neighbours.
    """
    name = f"weights {n_neighbors}"
    if name not in graph.derived:
        rows, others, places = _pairs(graph, n_neighbors)
        scale = graph.scale(_OWN_SCALE)
        far = graph.far(rows, places)
        graph.derived[name] = _both_ways(graph, rows, others, np.exp(-(far**2) / (scale[rows] * scale[others])))
    found: sparse.csr_array = graph.derived[name]
    return found


def averages(graph: NeighbourGraph, n_neighbors: int, n_in_common: int | None = None) -> sparse.csr_array:
    """The matrix that replaces every score by the weighted mean of the neighbours' scores.

    Weights are those of :func:`weights` or, with ``n_in_common``, the squared fraction of that many nearest neighbours
    that both rows have in common. A row without neighbours keeps its score.
    """
    name = f"averages {n_neighbors} {n_in_common}"
    if name not in graph.derived:
        both = weights(graph, n_neighbors) if n_in_common is None else _in_common(graph, n_neighbors, n_in_common)
        totals = np.asarray(both.sum(axis=1)).ravel()
        alone = np.flatnonzero(totals == 0)
        loops = sparse.csr_array((np.ones(len(alone)), (alone, alone)), shape=both.shape)
        scaled = sparse.diags_array(1.0 / np.where(totals == 0, 1.0, totals)) @ both
        graph.derived[name] = sparse.csr_array(scaled + loops)
    found: sparse.csr_array = graph.derived[name]
    return found


def check_neighbors(count: int) -> None:
    """Refuse more neighbours than a graph keeps."""
    check_count("n_neighbors", count)
    if count > NEIGHBOURS:
        raise InputError(f"n_neighbors {count}: a graph keeps {NEIGHBOURS} per row, which is the most")


def _in_common(graph: NeighbourGraph, n_neighbors: int, n_in_common: int) -> sparse.csr_array:
    rows, others, places = _pairs(graph, n_neighbors)
    shares = shares_in_common(graph.neighbours, n_neighbors, min(n_in_common, graph.n_neighbors))
    return _both_ways(graph, rows, others, shares[rows, places] ** 2)


def _pairs(graph: NeighbourGraph, n_neighbors: int) -> tuple[Rows, Rows, Rows]:
    """Rows, their nearest neighbours, and the position of each neighbour in the row's list."""
    lists = graph.neighbours[:, :n_neighbors]
    rows, places = np.nonzero(lists >= 0)
    return rows, lists[rows, places].astype(np.int64), places


def _both_ways(graph: NeighbourGraph, rows: Rows, others: Rows, values: npt.NDArray[np.float64]) -> sparse.csr_array:
    # Weights never become zero, so that no row is cut off.
    one_way = sparse.csr_array((np.maximum(values, 1e-12), (rows, others)), shape=(len(graph), len(graph)))
    both = (one_way + one_way.T).tocsr()
    both.sort_indices()
    return sparse.csr_array(both)
