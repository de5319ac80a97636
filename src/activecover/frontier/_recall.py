"""Measures of how close an approximate order is to the exact one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError, check_count
from activecover.frontier._base import Frontier, RowsLike
from activecover.pool import Pool


def measure_recall(
    pool: Pool, frontier: Frontier, reference: Frontier, *, k: int = 10, sample: int = 100, seed: int = 0
) -> float:
    """The fraction of exact nearest rows that a frontier finds, averaged over random positives.

    Each row of the sample is the only positive in turn, and the ``k`` rows proposed by the frontier are compared with
    those of an exact one. A row at the distance of the last exact row counts as found.

    Parameters
    ----------
    pool : Pool
        The pool of both frontiers.
    frontier, reference : Frontier
        The frontier to measure, and an exact one. Both must have no positives, and have none afterwards.
    k, sample, seed : int
        Rows to compare for each positive, number of positives, and the seed for drawing them.

    Examples
    --------
    >>> from activecover.frontier import ExactFrontier
    >>> pool = Pool(np.arange(50.0)[:, None])
    >>> measure_recall(pool, ExactFrontier(pool), ExactFrontier(pool))
    1.0
    """
    check_count("k", k)
    check_count("sample", sample)
    if frontier.positives or reference.positives:
        raise InputError("recall is measured on frontiers without positives: make new ones for it")
    there = np.flatnonzero(~pool.withdrawn)
    rows = np.random.default_rng(seed).choice(there, min(sample, len(there)), replace=False)
    hits = total = 0
    for row in rows.tolist():
        exact = _distances(pool, reference, row, k)
        if len(exact):
            total += len(exact)
            hits += int((_distances(pool, frontier, row, k) <= exact[-1]).sum())
    return hits / total if total else 1.0


def _distances(pool: Pool, frontier: Frontier, row: int, k: int) -> npt.NDArray[np.float64]:
    """Distances of the rows proposed for one positive."""
    frontier.add([row], pool.take([row]))
    distances = frontier.nearest(k, without=[row]).distances
    frontier.remove([row])
    return distances


@dataclass(frozen=True, slots=True)
class OrderComparison:
    """Two orders of the same run: whether they agree, where they first differ, and how much they overlap.

    ``overlap`` is the fraction of rows that both have asked so far, averaged over all lengths.
    """

    same: bool
    first_difference: int | None
    overlap: float


def compare_orders(order: RowsLike, exact: RowsLike) -> OrderComparison:
    """Compare the order of a run with that of the exact run, up to the shorter of the two.

    Examples
    --------
    >>> compare_orders([3, 1, 2], [3, 1, 2])
    OrderComparison(same=True, first_difference=None, overlap=1.0)
    >>> compare_orders([3, 2, 1], [3, 1, 2]).overlap
    0.8333333333333334
    """
    length = min(len(order), len(exact))
    left = np.asarray(order, np.int64)[:length]
    right = np.asarray(exact, np.int64)[:length]
    different = np.flatnonzero(left != right)
    if not len(different):
        return OrderComparison(True, None, 1.0)
    # A row counts as shared from the later of its two positions on.
    _, here, there = np.intersect1d(left, right, return_indices=True)
    shared = np.cumsum(np.bincount(np.maximum(here, there), minlength=length))
    return OrderComparison(False, int(different[0]), float((shared / np.arange(1, length + 1)).mean()))
