"""Explore-commit in 20 batches on 70,000 x 100 against the plain scikit-learn loop.

The rival recomputes ``pairwise_distances_argmin_min`` of the open rows against all positives at each
batch, in float64 and with all cores, which is what one writes first. Both start from the same sample,
and both must ask in the same order. Times are of one run of each, in this process; only their ratio
means anything on another machine.

    python benchmarks/core.py [--rows 70000] [--dimensions 100]
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import numpy.typing as npt
from sklearn.metrics import pairwise_distances_argmin_min

from activecover import ExploreCommit, Pool, simulate_one
from activecover.pool import dense_vectors

BATCHES = 20
SAMPLE = 100


def make_task(rows: int, dimensions: int, seed: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Ten clusters of image-like vectors, one of them positive, as in the paper's tasks."""
    random = np.random.default_rng(seed)
    spread = 1 / np.sqrt(np.arange(1, dimensions + 1))
    centres = 1.5 * random.normal(size=(10, dimensions)) * spread
    classes = random.integers(0, 10, rows)
    points = centres[classes] + random.normal(size=(rows, dimensions)) * spread
    return np.maximum(points, 0).astype(np.float32), classes == 0


def plain_loop(
    points: npt.NDArray[np.float64], positive: npt.NDArray[np.bool_], sample: npt.NDArray[np.int64], batch: int
) -> list[int]:
    asked: list[int] = sample.tolist()
    is_open = np.ones(len(points), bool)
    is_open[sample] = False
    while is_open.any():
        known = np.array([row for row in asked if positive[row]])
        rows = np.flatnonzero(is_open)
        _, distances = pairwise_distances_argmin_min(points[rows], points[known])
        chosen = rows[np.argsort(distances, kind="stable")[:batch]]
        asked += chosen.tolist()
        is_open[chosen] = False
    return asked


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=70_000)
    parser.add_argument("--dimensions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    points, positive = make_task(given.rows, given.dimensions, given.seed)
    sample = np.random.default_rng(given.seed).permutation(given.rows)[:SAMPLE]
    batch = round((given.rows - SAMPLE) / BATCHES)
    pool = Pool(points)
    # Our code is compiled before the clock starts, as scikit-learn's is: two batches on a pool of this size
    # (a small one is served by another frontier).
    simulate_one(Pool(points), positive, ExploreCommit(explore=sample.tolist()), batch=batch, budget=SAMPLE + 2 * batch)

    started = time.perf_counter()
    trace = simulate_one(pool, positive, ExploreCommit(explore=sample.tolist()), batch=batch, to_the_end=True)
    ours = time.perf_counter() - started
    started = time.perf_counter()
    order = plain_loop(dense_vectors(pool.vectors).astype(np.float64), positive, sample, batch)
    theirs = time.perf_counter() - started

    same = trace.rows.tolist() == order
    print(f"explore-commit, {given.rows:,} x {given.dimensions}, {BATCHES} batches, {int(positive.sum()):,} positives")
    print(f"scikit-learn loop / activecover: {theirs / ours:.1f} times ({theirs:.2f} s / {ours:.2f} s)")
    print(
        f"same order: {'yes' if same else f'NO, from place {next(i for i, (a, b) in enumerate(zip(trace.rows, order, strict=True)) if a != b)}'}"
    )
    return 0 if same and theirs / ours >= 5 else 1


if __name__ == "__main__":
    sys.exit(main())
