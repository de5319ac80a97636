"""Which backend serves a pool: all exact ones give the same rows in the same order."""

from __future__ import annotations

from activecover.frontier._base import Frontier
from activecover.frontier._exact import ExactFrontier
from activecover.frontier._pruned import PrunedFrontier
from activecover.frontier._tree import TreeFrontier
from activecover.pool import Pool
from activecover.registry import Entry, Registry

#: Up to so many dimensions a tree leaves most of the pool untouched at each step.
TREE_DIMENSIONS = 4

FRONTIERS: Registry[Frontier] = Registry("frontier", group="activecover.frontiers")
FRONTIERS.add(Entry("exact", ExactFrontier, "blocked products, settled exactly; any number of dimensions"))
FRONTIERS.add(Entry("pruned", PrunedFrontier, "scan of a rotated prefix; single positives among many rows"))
FRONTIERS.add(Entry("tree", TreeFrontier, "k-d tree; few dimensions, or low intrinsic dimension"))


def choose_frontier(pool: Pool, name: str = "auto") -> Frontier:
    """A frontier by name, or (``auto``) the exact one that is quickest for the pool.

    Examples
    --------
    >>> type(choose_frontier(Pool([[0.0, 1.0]]))).__name__
    'TreeFrontier'
    """
    if name == "auto":
        name = "tree" if pool.dimensions <= TREE_DIMENSIONS else "exact"
    return FRONTIERS[name].build(pool)
