"""Readers of the benchmark data sets."""

from activecover.datasets._base import Dataset
from activecover.datasets._letters import load_letters

__all__ = ["Dataset", "load_letters"]
