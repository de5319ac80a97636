"""The open rows nearest to any positive, found exactly and fast."""

from activecover.frontier._base import NO_KEY, Frontier, Nearest
from activecover.frontier._bits import BitFrontier
from activecover.frontier._choose import FRONTIERS, choose_frontier
from activecover.frontier._exact import ExactFrontier
from activecover.frontier._faiss import FaissFrontier
from activecover.frontier._pruned import PrunedFrontier
from activecover.frontier._recall import OrderComparison, compare_orders, measure_recall
from activecover.frontier._sparse import SparseFrontier
from activecover.frontier._tree import TreeFrontier

__all__ = [
    "FRONTIERS",
    "NO_KEY",
    "BitFrontier",
    "ExactFrontier",
    "FaissFrontier",
    "Frontier",
    "Nearest",
    "OrderComparison",
    "PrunedFrontier",
    "SparseFrontier",
    "TreeFrontier",
    "choose_frontier",
    "compare_orders",
    "measure_recall",
]
