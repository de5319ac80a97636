"""How the cost of one step grows with the pool: tell one yes, ask for the nearest row.

A scan looks at every row, so its cost is proportional to their number; a tree in few dimensions and an
approximate graph should hardly notice it. For each backend the median step is timed at three sizes, and
the exponent b of time ~ rows^b is fitted to them. Exits with 1 if one is far from what it should be.

    python benchmarks/growth.py [--quick]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from activecover import Pool
from activecover.frontier import choose_frontier

#: Beyond this exponent a cost is not "flat or logarithmic": log n alone looks like rows^0.1 at these sizes.
FLAT = 0.35
STEPS = 300
START = 10


@dataclass(frozen=True, slots=True)
class Case:
    """A backend on pools of some dimensions and sizes, and the exponents that are right for it."""

    backend: str
    dimensions: int
    rows: Sequence[int]
    least: float
    most: float


FULL = [
    Case("exact", 16, (100_000, 1_000_000, 5_000_000), 0.7, 1.3),
    Case("pruned", 16, (100_000, 1_000_000, 5_000_000), -0.3, 1.3),
    Case("tree", 2, (100_000, 1_000_000, 5_000_000), -0.3, FLAT),
    Case("tree", 3, (100_000, 1_000_000, 5_000_000), -0.3, FLAT),
    Case("faiss-hnsw", 16, (10_000, 100_000, 500_000), -0.3, FLAT),
]
QUICK = [
    Case("exact", 16, (50_000, 200_000, 800_000), 0.7, 1.3),
    Case("tree", 2, (50_000, 200_000, 800_000), -0.3, FLAT),
    Case("faiss-hnsw", 16, (5_000, 20_000, 80_000), -0.3, FLAT),
]


def scene(rows: int, dimensions: int) -> Pool:
    """Ten clusters; more rows fill the same space more densely."""
    random = np.random.default_rng([rows, dimensions])
    centres = 3 * random.normal(size=(10, dimensions))
    points = random.normal(size=(rows, dimensions)).astype(np.float32)
    points += centres[random.integers(0, 10, rows)].astype(np.float32)
    return Pool(points)


def step_times(pool: Pool, backend: str, steps: int) -> tuple[float, npt.NDArray[np.float64]]:
    """Seconds to build, and seconds of each step."""
    started = time.perf_counter()
    frontier = choose_frontier(pool, backend)
    build = time.perf_counter() - started
    first = np.random.default_rng(0).choice(len(pool), START, replace=False)
    frontier.retire(first)
    frontier.add(first, pool.take(first))
    found = frontier.nearest(1).rows
    seconds = np.empty(steps)
    for step in range(steps):
        started = time.perf_counter()
        frontier.retire(found)
        frontier.add(found, pool.take(found))
        found = frontier.nearest(1).rows
        seconds[step] = time.perf_counter() - started
    return build, seconds


def measure(case: Case, steps: int) -> bool:
    # Compiled code is loaded before the clock starts.
    step_times(scene(500, case.dimensions), case.backend, 5)
    medians = []
    for rows in case.rows:
        build, seconds = step_times(scene(rows, case.dimensions), case.backend, steps)
        medians.append(float(np.median(seconds)))
        print(
            f"{case.backend:<12}{case.dimensions:>5}{rows:>12,}{build:>10.2f}"
            f"{1e3 * medians[-1]:>12.3f}{1e3 * float(np.percentile(seconds, 99)):>12.3f}",
            flush=True,
        )
    exponent = float(np.polyfit(np.log(case.rows), np.log(medians), 1)[0])
    good = case.least <= exponent <= case.most
    wanted = f"{case.least:g} to {case.most:g}"
    print(
        f"{case.backend}, {case.dimensions} dimensions: time ~ rows^{exponent:.2f} ({wanted}: {'yes' if good else 'NO'})\n"
    )
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller pools, in a minute or two")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--backends", help="only these, comma-separated")
    given = parser.parse_args()
    wanted = given.backends.split(",") if given.backends else None
    print(f"{'backend':<12}{'dims':>5}{'rows':>12}{'build s':>10}{'step ms':>12}{'p99 ms':>12}")
    good = True
    for case in QUICK if given.quick else FULL:
        if wanted is not None and case.backend not in wanted:
            continue
        if case.backend.startswith("faiss") and find_spec("faiss") is None:
            print(f"{case.backend}: FAISS is not installed (pip install 'activecover[faiss]')")
            continue
        good = measure(case, given.steps) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
