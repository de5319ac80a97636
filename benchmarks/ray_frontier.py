"""The frontier over Ray shards against one process: time per step, and what the round trip adds.

A step takes a new positive, closes its row and asks for the nearest row; every row of the pool is compared
with it. Shards have one thread each, and so has the one process; the numbers of shards take turns, so that
a busy machine is busy for all. The order is compared too; exits with 1 if it differs.

    python benchmarks/ray_frontier.py [--rows 500000] [--dimensions 64] [--steps 200] [--backend exact]
    python benchmarks/ray_frontier.py --plan   # the figures of the plan for 10^9 vectors, written to docs/scale.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

os.environ["ACTIVECOVER_THREADS"] = "1"

from activecover import Pool
from activecover.frontier import Frontier, choose_frontier
from activecover.frontier.ray import ShardedPool, connect, disconnect

SHARDS = (1, 2, 4)
PAGE = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
#: Rows of one of 128 shards of a billion.
SHARD_ROWS = 1_000_000_000 // 128


class Runner:
    """A frontier that is taken through its steps a few at a time."""

    def __init__(self, frontier: Frontier, pool: Pool, start: int) -> None:
        self.frontier, self.pool, self.row = frontier, pool, start
        self.rows: list[int] = []
        self.seconds: list[float] = []

    def go(self, steps: int) -> None:
        for _ in range(steps):
            started = time.perf_counter()
            self.frontier.retire([self.row])
            self.frontier.add([self.row], self.pool.take([self.row]))
            self.row = int(self.frontier.nearest(1).rows[0])
            self.seconds.append(time.perf_counter() - started)
            self.rows.append(self.row)

    @property
    def step(self) -> float:
        """Median seconds of a step, those after the first few."""
        return float(np.median(self.seconds[5:]))


def trip(pool: ShardedPool, times: int = 100) -> float:
    """Median seconds of a call to every shard that does nothing."""
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        pool.shards.call("process", dict.fromkeys(range(len(pool.shards)), ()))
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--dimensions", type=int, default=64)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--backend", default="exact", help="the frontier of the shards and of the one process")
    parser.add_argument("--plan", action="store_true", help="measure the figures of the plan instead")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="acray", dir="/tmp"))
    try:
        if given.plan:
            return plan(folder)
        return compare(folder, given.rows, given.dimensions, given.steps, given.backend)
    finally:
        disconnect()
        shutil.rmtree(folder, ignore_errors=True)


def compare(folder: Path, rows: int, dimensions: int, steps: int, backend: str) -> int:
    points = np.random.default_rng(0).normal(size=(rows, dimensions)).astype(np.float32)
    np.save(folder / "pool.npy", points)
    plain = Pool(points)
    connect("local", temp_dir=folder)
    pools = {shards: ShardedPool(folder / "pool.npy", shards=shards, backend=backend) for shards in SHARDS}
    runners = {0: Runner(choose_frontier(plain, backend), plain, 0)}
    runners |= {shards: Runner(choose_frontier(pool), pool, 0) for shards, pool in pools.items()}
    for _ in range(0, steps, 10):
        for runner in runners.values():
            runner.go(10)
    one = runners[0].step
    print(f"{rows:,} x {dimensions}, backend {backend}, {os.cpu_count()} cores, {len(runners[0].rows)} steps each")
    print(f"one process  {1e3 * one:8.2f} ms a step, {1e9 * one / rows:6.2f} ns a row")
    for shards, pool in pools.items():
        step, empty = runners[shards].step, trip(pool)
        print(
            f"{shards} shard{'s' * (shards > 1):1}     {1e3 * step:8.2f} ms a step, {one / step:5.2f} times as fast; "
            f"an empty round trip {1e3 * empty:.2f} ms"
        )
    same = all(runner.rows == runners[0].rows for runner in runners.values())
    print(f"same order: {'yes' if same else 'NO'}")
    return 0 if same else 1


def clusters(rows: int, dimensions: int) -> npt.NDArray[np.float32]:
    """200 clusters, the variance along axis i proportional to 1/i: as vectors of a network are, roughly."""
    random = np.random.default_rng(0)
    spread = np.sqrt(1 / np.arange(1, dimensions + 1))
    centres = random.normal(size=(200, dimensions)) * spread
    points = centres[random.integers(0, 200, rows)] + 0.5 * random.normal(size=(rows, dimensions)) * spread
    return points.astype(np.float32)


def plan(folder: Path, rows: int = 500_000, dimensions: int = 128) -> int:
    """Measure what the plan for a billion vectors is computed from, and write it down."""
    points = clusters(rows, dimensions)
    pool = Pool(points)
    figures = {}
    for backend in ("exact", "pruned"):
        runner = Runner(choose_frontier(pool, backend), pool, 0)
        runner.go(60)
        figures[backend] = runner.step / rows
    values = np.random.default_rng(0).random(SHARD_ROWS)
    seconds = [-time.perf_counter() + (values.argmin(), time.perf_counter())[1] for _ in range(5)]
    small = clusters(4 * SHARD_ROWS // 128, dimensions)
    np.save(folder / "small.npy", small)
    connect("local", temp_dir=folder)
    with ShardedPool(folder / "small.npy", shards=4, backend="pruned") as sharded:
        runner = Runner(choose_frontier(sharded), sharded, 0)
        runner.go(100)
        empty, question = trip(sharded), runner.step
    exact, pruned = (figures[name] * SHARD_ROWS for name in ("exact", "pruned"))
    table = [
        "| figure | measured |",
        "|---|---|",
        f"| `exact`, {dimensions} dimensions, one thread: time per row and positive | {1e9 * figures['exact']:.1f} ns |",
        f"| `pruned`, the same | {1e9 * figures['pruned']:.1f} ns |",
        f"| smallest of {SHARD_ROWS / 1e6:.1f} million values | {1e3 * min(seconds):.1f} ms |",
        f"| empty round trip, 4 shards on one machine | {1e3 * empty:.1f} ms |",
        f"| 4 shards of 1/128 of the size ({len(small) // 4:,} rows) on one machine: time per question | {1e3 * question:.1f} ms |",
        f"| hence a question after a *yes*, {SHARD_ROWS / 1e6:.1f} million rows on one thread, without the trip | "
        f"`exact` {exact:.2f} s, `pruned` {1e3 * pruned:.0f} ms |",
    ]
    print("\n".join(table))
    begin, end = "<!-- measured -->", "<!-- /measured -->"
    text = PAGE.read_text()
    note = f"*`python benchmarks/ray_frontier.py --plan`, {os.cpu_count()} shared cores.*"
    PAGE.write_text(text.split(begin)[0] + "\n".join([begin, "", *table, "", note, "", end]) + text.split(end)[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
