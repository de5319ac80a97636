"""How long `ask` takes over HTTP: one annotator alone, then 32 at once, on a pool of 1,000,000 rows.

A real server in a process of its own, and annotators who decide as fast as a quick person does: after an
answer the next one comes in --pace seconds on average, at random. Times are those that an annotator waits for
`ask`; ratios are of times measured in this run. Exits with 1 if a bound does not hold.

    python benchmarks/web.py [--rows N] [--people N] [--asks N] [--pace SECONDS]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

from _undisturbed import undisturbed
from activecover import Pool
from activecover.workspace import Workspace

#: The bound: with everyone at work the slowest hundredth waits so many times as long as someone alone usually does.
MOST = 10.0
DIMENSIONS = 32
CLUSTERS = 50


def make_home(folder: Path, rows: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """A campaign on clusters, two of which are looked for; which rows are positive."""
    random = np.random.default_rng(0)
    centres = 3 * random.normal(size=(CLUSTERS, DIMENSIONS))
    cluster = random.integers(0, CLUSTERS, rows)
    points = random.standard_normal((rows, DIMENSIONS), np.float32)
    points += centres[cluster].astype(np.float32)
    positive: np.ndarray[tuple[int], np.dtype[np.bool_]] = cluster < 2
    with Workspace(folder) as home:
        known = [str(row) for row in np.flatnonzero(positive)[:3]]
        home.new("web", Pool(points), learner="explore-commit", explore=0, known=known).close()
    return positive


def start(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """A server, and where it is."""
    command = [sys.executable, "-m", "activecover", "serve", "--home", str(folder), "--port", "0", "--no-token"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("serving "):
            return process, line.partition(" at ")[2].split()[0].rstrip("/")
    raise SystemExit("the server did not start")


async def annotate(
    client: httpx.AsyncClient, who: str, positive: np.ndarray[tuple[int], np.dtype[np.bool_]], asks: int, pace: float
) -> list[float]:
    """Ask and tell as a person does; how long each ask took."""
    random = np.random.default_rng([ord(letter) for letter in who])
    times = []
    for _ in range(asks):
        await asyncio.sleep(random.exponential(pace))
        started = time.perf_counter()
        asked = await client.post("/api/campaigns/web/ask", json={"by": who})
        times.append(time.perf_counter() - started)
        asked.raise_for_status()
        name = asked.json()["items"][0]["id"]
        body = {"ids": [name], "labels": [bool(positive[int(name)])], "by": who}
        (await client.post("/api/campaigns/web/tell", json=body)).raise_for_status()
    return times


async def measure(
    url: str, positive: np.ndarray[tuple[int], np.dtype[np.bool_]], people: int, asks: int, pace: float
) -> list[float]:
    """All annotators at once."""
    limits = httpx.Limits(max_connections=people, max_keepalive_connections=people)
    async with httpx.AsyncClient(base_url=url, timeout=600, limits=limits) as client:
        # Opening the campaign is not what is measured.
        (await client.get("/api/campaigns/web/status")).raise_for_status()
        everyone = (annotate(client, f"{people}-{number}", positive, asks, pace) for number in range(people))
        return [taken for times in await asyncio.gather(*everyone) for taken in times]


def both(
    url: str, positive: np.ndarray[tuple[int], np.dtype[np.bool_]], given: argparse.Namespace
) -> tuple[list[float], list[float]]:
    """One annotator alone, then all at once."""
    alone = asyncio.run(measure(url, positive, 1, 4 * given.asks, given.pace / 25))
    return alone, asyncio.run(measure(url, positive, given.people, given.asks, given.pace))


def said(name: str, times: list[float]) -> None:
    """The times of one part, in milliseconds."""
    p50, p99 = 1000 * np.quantile(times, [0.5, 0.99])
    print(f"{name}: {len(times):,} asks, p50 {p50:.1f} ms, p99 {p99:.1f} ms", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--people", type=int, default=32)
    parser.add_argument("--asks", type=int, default=40, help="by each annotator")
    parser.add_argument("--pace", type=float, default=5.0, help="seconds that a person needs for an item, on average")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        positive = make_home(folder, given.rows)
        process, url = start(folder)
        try:
            (alone, together), share = undisturbed("asks", lambda: both(url, positive, given), tries=2)
            said("one annotator", alone)
            said(f"{given.people} annotators", together)
            print(f"others took {share:.1%} of the processors")
        finally:
            process.terminate()
            process.wait(60)
    ratio = float(np.quantile(together, 0.99) / np.median(alone))
    print("holds: no error")
    print(
        f"{'holds' if ratio <= MOST else 'FAILS'}: p99 of {given.people} annotators is {ratio:.1f} times the p50 of one, at most {MOST:g}"
    )
    return int(ratio > MOST)


if __name__ == "__main__":
    sys.exit(main())
