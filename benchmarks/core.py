"""Explore-commit in 20 batches on 70,000 x 100 against two loops that anyone could write.

- *plain*: scikit-learn's ``pairwise_distances_argmin_min`` of the open rows and all positives at each batch, in float64;
- *running minimum*: the product of all rows with the new positives alone, in float32 and in blocks that stay in cache,
  folded into a running minimum. This is the fair one.

All start from the same sample with the same number of threads, and are warmed up on a small pool. Ours and the plain loop
must ask in the same order; the running minimum rounds, so it need not. Times are of one run of each, in this process;
only their ratios mean anything on another machine.

    python benchmarks/core.py [--rows 70000] [--dimensions 100] [--threads 2]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import sklearn
from sklearn.metrics import pairwise_distances_argmin_min

from _rivals import Vectors, threads_for_all, versions
from activecover import ExploreCommit, Pool, simulate_one
from activecover.parallel import thread_count
from activecover.pool import dense_vectors

BATCHES = 20
SAMPLE = 100
BLOCK = 4096


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


def running_minimum(
    points: Vectors, positive: npt.NDArray[np.bool_], sample: npt.NDArray[np.int64], batch: int
) -> list[int]:
    asked: list[int] = sample.tolist()
    nearest = np.full(len(points), np.inf, np.float32)
    squares = np.einsum("ij,ij->i", points, points)
    is_open = np.ones(len(points), bool)
    new = sample
    while is_open.any():
        is_open[new] = False
        found = new[positive[new]]
        if len(found):
            turned = np.ascontiguousarray(np.float32(-2) * points[found].T)
            for start in range(0, len(points), BLOCK):
                part = slice(start, start + BLOCK)
                distances = points[part] @ turned
                distances += squares[found]
                np.minimum(nearest[part], distances.min(axis=1) + squares[part], out=nearest[part])
        rows = np.flatnonzero(is_open)
        new = rows[np.argsort(nearest[rows], kind="stable")[:batch]]
        asked += new.tolist()
    return asked


def timed(work: Callable[[], list[int]]) -> tuple[list[int], float]:
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def compare(rows: int, dimensions: int, seed: int, *, quiet: bool = False) -> bool:
    points, positive = make_task(rows, dimensions, seed)
    sample = np.random.default_rng(seed).permutation(rows)[:SAMPLE]
    batch = (rows - SAMPLE) // BATCHES
    pool = Pool(points)
    learner = ExploreCommit(explore=sample.tolist())
    order, ours = timed(lambda: simulate_one(pool, positive, learner, batch=batch, to_the_end=True).rows.tolist())
    simple, simple_time = timed(lambda: running_minimum(dense_vectors(pool.vectors), positive, sample, batch))
    plain, plain_time = timed(
        lambda: plain_loop(dense_vectors(pool.vectors).astype(np.float64), positive, sample, batch)
    )
    same = order == plain
    if not quiet:
        print(f"explore-commit, {rows:,} x {dimensions}, {BATCHES} batches, {int(positive.sum()):,} positives")
        print(f"running minimum / activecover: {simple_time / ours:.1f} times ({simple_time:.2f} s / {ours:.2f} s)")
        print(f"plain loop / activecover: {plain_time / ours:.1f} times ({plain_time:.2f} s / {ours:.2f} s)")
        found = [
            next(i for i, chosen in enumerate(np.cumsum(positive[a])) if chosen == positive.sum())
            for a in (order, simple)
        ]
        print(f"labels to the last positive: {found[0]:,} / {found[1]:,} of the running minimum")
        print(f"same order as the plain loop: {'yes' if same else 'NO'}")
    return same and plain_time / ours >= 5 and simple_time / ours >= 1 / 1.3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=70_000)
    parser.add_argument("--dimensions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=thread_count())
    given = parser.parse_args()
    with threads_for_all(given.threads):
        compare(3000, given.dimensions, given.seed, quiet=True)
        print(f"{given.threads} thread(s) each. {versions()}, scikit-learn {sklearn.__version__}")
        return 0 if compare(given.rows, given.dimensions, given.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
