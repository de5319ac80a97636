"""The rates proved in the paper, measured on known distributions."""

from activecover.lab.rates._distributions import DISTRIBUTIONS, Distribution
from activecover.lab.rates._rates import (
    Fit,
    RateCell,
    RatePlan,
    adjusted,
    best_constant,
    explore_curve,
    fit,
    measure,
    measure_one,
    read_cells,
    sizes_between,
    theory_exponent,
)

__all__ = [
    "DISTRIBUTIONS",
    "Distribution",
    "Fit",
    "RateCell",
    "RatePlan",
    "adjusted",
    "best_constant",
    "explore_curve",
    "fit",
    "measure",
    "measure_one",
    "read_cells",
    "sizes_between",
    "theory_exponent",
]
