"""Which open rows are nearest to any positive: exactly, fast, and nothing else."""

from activecover.frontier._base import NO_KEY, Frontier, Nearest
from activecover.frontier._choose import FRONTIERS, choose_frontier
from activecover.frontier._exact import ExactFrontier
from activecover.frontier._pruned import PrunedFrontier
from activecover.frontier._tree import TreeFrontier

__all__ = [
    "FRONTIERS",
    "NO_KEY",
    "ExactFrontier",
    "Frontier",
    "Nearest",
    "PrunedFrontier",
    "TreeFrontier",
    "choose_frontier",
]
