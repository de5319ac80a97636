"""Check suites for the contracts, for our own classes and for anyone's.

Each suite raises ``AssertionError`` with a sentence that says which rule was broken:

>>> from activecover.frontier import ExactFrontier
>>> from activecover.testing import check_frontier
>>> check_frontier(ExactFrontier, rounds=2)
"""

from activecover.testing._frontier import BruteForce, check_frontier
from activecover.testing._learner import check_learner
from activecover.testing._log import check_log

__all__ = ["BruteForce", "check_frontier", "check_learner", "check_log"]
