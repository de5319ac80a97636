"""The neighbour graph of a pool, built once and shared."""

from activecover.graph._graph import (
    NEIGHBOURS,
    NeighbourGraph,
    graph_fits,
    graph_is_exact,
    graph_recall,
    local_scale,
    nearest_among,
    shared_graph,
)
from activecover.graph._kernel import shares_in_common
from activecover.graph._walk import averages, check_neighbors, weights

__all__ = [
    "NEIGHBOURS",
    "NeighbourGraph",
    "averages",
    "check_neighbors",
    "graph_fits",
    "graph_is_exact",
    "graph_recall",
    "local_scale",
    "nearest_among",
    "shared_graph",
    "shares_in_common",
    "weights",
]
