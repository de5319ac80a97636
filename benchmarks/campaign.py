"""What a campaign costs beside its frontier: a label with its commit, a million rows from Parquet, reopening.

    python benchmarks/campaign.py [--only steps,create,reopen] [--rows 1000000] [--folder DIR]

Each part prints its figures and whether its bound holds; ratios are of times measured in this run, and a
bound that does not hold makes the exit code 1.

- steps: telling what an item is and asking for the next, synced, against a bare frontier step and one fsync,
  taken in turns;
- create: ``new`` on a Parquet file of vectors, by the peak memory of its process;
- reopen: opening a campaign with 10,000 labels, up to its next item, against batches of 1,000 labels of a
  bare frontier.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from _clusters import DIMENSIONS, synthetic
from _undisturbed import undisturbed
from activecover import Campaign, Pool
from activecover.frontier import choose_frontier
from activecover.pool import dense_vectors
from activecover.store import SqlStore
from activecover.workspace import Workspace

LABELS = 10_000
BATCH = 1000

checks: list[bool] = []


def check(what: str, holds: bool) -> None:
    checks.append(holds)
    print(f"{'holds' if holds else 'FAILS'}: {what}", flush=True)


def positive(points: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
    """What lies to one side along the axes of most variance."""
    return np.asarray(points[:, :3].sum(axis=1) > 2)


# -- steps ---------------------------------------------------------------------------------------


class BareStep:
    """A frontier without a campaign, and a file that is synced."""

    def __init__(self, pool: Pool, first: int, path: Path) -> None:
        self._pool, self._frontier = pool, choose_frontier(pool)
        self._take(first, True)
        self._frontier.nearest(1)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)

    def _take(self, row: int, yes: bool) -> None:
        self._frontier.retire([row])
        if yes:
            self._frontier.add([row], self._pool.take([row]))

    def step(self, row: int, yes: bool) -> float:
        started = time.perf_counter()
        self._take(row, yes)
        self._frontier.nearest(1)
        return time.perf_counter() - started

    def sync(self) -> float:
        """As a database would: some kilobytes at the end of a file."""
        data = os.urandom(8192)
        started = time.perf_counter()
        os.write(self._file, data)
        os.fsync(self._file)
        return time.perf_counter() - started


def steps(folder: Path, rows: int = 100_000, count: int = 3000) -> None:
    points = synthetic(rows)
    truth, pool = positive(points), Pool(points)

    def measure() -> dict[str, list[float]]:
        with tempfile.TemporaryDirectory(dir=folder) as apart:
            return time_steps(Path(apart), pool, truth, count)

    seconds, share = undisturbed("steps", measure)
    print(f"{rows:,} x {DIMENSIONS}, {count:,} labels; others took {share:.1%} of the processors", flush=True)
    for what, values in seconds.items():
        print(f"{what:<20} median {1e3 * np.median(values):8.3f} ms   p99 {1e3 * np.percentile(values, 99):8.3f} ms")
    bound = float(np.median(seconds["frontier step, yes"]) + np.median(seconds["fsync"]))
    for what in ("answer", "tell, then ask"):
        ratio = float(np.percentile(seconds[what], 99)) / bound
        check(
            f"{what}: p99 is {ratio:.2f} times a frontier step and one fsync, by their medians (4 at most)", ratio <= 4
        )


def time_steps(
    folder: Path, pool: Pool, truth: npt.NDArray[np.bool_], count: int, warm: int = 100
) -> dict[str, list[float]]:
    """Seconds of each step of a campaign, of a bare frontier's, and of a sync, in turn."""
    first = int(np.flatnonzero(truth)[0])
    bare = BareStep(pool, first, folder / "synced")
    kinds = ("frontier step, yes", "frontier step, no", "fsync", "answer", "tell, then ask")
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    with (
        SqlStore(folder / "steps.sqlite") as store,
        Campaign(pool, "explore-commit", log=store.create("one"), explore=0, known=[str(first)]) as campaign,
    ):
        (item,) = campaign.ask()
        for number in range(count + warm):
            row = int(item.id)
            yes = bool(truth[row])
            taken = {f"frontier step, {'yes' if yes else 'no'}": bare.step(row, yes), "fsync": bare.sync()}
            started = time.perf_counter()
            if number % 4:
                (item,) = campaign.answer(item.id, yes)
                taken["answer"] = time.perf_counter() - started
            else:
                campaign.tell(item.id, yes)
                (item,) = campaign.ask()
                taken["tell, then ask"] = time.perf_counter() - started
            if number >= warm:
                for what, value in taken.items():
                    seconds[what].append(value)
    return seconds


# -- a million rows ------------------------------------------------------------------------------


def write_parquet(path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    points = synthetic(rows)
    kind = pa.list_(pa.float32(), DIMENSIONS)
    schema = pa.schema([("name", pa.string()), ("vector", kind)])
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for start in range(0, rows, 50_000):
            part = points[start : start + 50_000]
            names = pa.array([f"item {start + row}" for row in range(len(part))])
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), DIMENSIONS)
            writer.write_table(pa.table([names, vectors], schema=schema))


def new(folder: Path, path: Path) -> None:
    """In a process of its own: begin the campaign and say how much memory it took at most."""
    with Workspace(folder) as home:
        home.new("big", path, learner="explore-commit", explore=100, seed=0).close()
    # Not by getrusage, which begins with the size of who started the process.
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(int(lines["VmHWM"].split()[0]) * 1024)


def create(folder: Path, rows: int) -> None:
    path = folder / "pool.parquet"
    if not path.exists():
        write_parquet(path, rows)
    started = time.perf_counter()
    answer = subprocess.run(
        [sys.executable, __file__, "--new", str(folder / "home"), str(path)], check=True, capture_output=True, text=True
    )
    size, peak = rows * DIMENSIONS * 4, int(answer.stdout)
    print(f"{rows:,} rows from Parquet in {time.perf_counter() - started:.0f} s", flush=True)
    check(
        f"its process took {peak / 2**20:,.0f} MiB at most, {peak / size:.2f} times the vectors (2 at most)",
        peak <= 2 * size,
    )


def reopen(folder: Path, rows: int) -> None:
    with Workspace(folder / "home") as home:
        if "big" not in home.names():
            create(folder, rows)
        with home.open("big") as campaign:
            truth = positive(dense_vectors(campaign.pool.vectors)[:, :3])
            missing = LABELS - campaign.status().labelled
            while missing > 0:
                items = [item.id for item in campaign.ask(min(BATCH, missing))]
                campaign.tell(items, truth[campaign.pool.rows(items)].tolist())
                missing -= len(items)
            pool, labels = campaign.pool, campaign.labels()
            told = pool.rows(list(labels))
        seconds = frontier_batches(pool, told, truth)
        batch = float(np.median(seconds))
        times = []
        for _ in range(3):
            started = time.perf_counter()
            with home.open("big") as campaign:
                campaign.ask()
                times.append(time.perf_counter() - started)
                campaign.release()
        again = float(np.median(times))
    print(
        f"{len(labels):,} labels ({sum(labels.values()):,} positive): {again:.2f} s, a batch {batch:.2f} s", flush=True
    )
    check(
        f"reopening takes the time of {again / batch:.1f} batches of {BATCH:,} labels (20 at most)", again <= 20 * batch
    )


def frontier_batches(pool: Pool, told: npt.NDArray[np.int64], truth: npt.NDArray[np.bool_]) -> list[float]:
    """Seconds of each batch: tell what the rows are, find as many again."""
    frontier = choose_frontier(pool)
    seconds = []
    for start in range(0, len(told), BATCH):
        rows = told[start : start + BATCH]
        yes = rows[truth[rows]]
        started = time.perf_counter()
        frontier.retire(rows)
        frontier.add(yes, pool.take(yes))
        frontier.nearest(BATCH)
        seconds.append(time.perf_counter() - started)
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="steps,create,reopen", help="parts, by comma")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the large pool")
    parser.add_argument("--folder", type=Path, help="where the stores go; default: a temporary folder on this disk")
    parser.add_argument("--new", nargs=2, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.new:
        new(*given.new)
        return 0
    parts = given.only.split(",")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        if "steps" in parts:
            steps(Path(folder))
        if "create" in parts:
            create(Path(folder), given.rows)
        if "reopen" in parts:
            reopen(Path(folder), given.rows)
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
