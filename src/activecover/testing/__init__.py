"""Check suites for the contracts of this package, for built-in and third-party implementations.

Each suite raises ``AssertionError`` with a sentence that says which rule was broken:

>>> from activecover.frontier import ExactFrontier
>>> from activecover.testing import check_frontier
>>> check_frontier(ExactFrontier, rounds=2)
"""

from activecover.testing._embedding import check_embedding
from activecover.testing._frontier import (
    BruteForce,
    check_frontier,
    random_bit_pool,
    random_pool,
    random_sparse_pool,
)
from activecover.testing._learner import check_learner
from activecover.testing._log import check_log
from activecover.testing._rule import RANKINGS, Coverage, Ranking, check_rule, measure_coverage

__all__ = [
    "RANKINGS",
    "BruteForce",
    "Coverage",
    "Ranking",
    "check_embedding",
    "check_frontier",
    "check_learner",
    "check_log",
    "check_rule",
    "measure_coverage",
    "random_bit_pool",
    "random_pool",
    "random_sparse_pool",
]
