"""Which open rows are nearest to any positive: exactly, fast, and nothing else."""

from activecover.frontier._base import NO_KEY, Frontier, Nearest
from activecover.frontier._exact import ExactFrontier

__all__ = ["NO_KEY", "ExactFrontier", "Frontier", "Nearest"]
