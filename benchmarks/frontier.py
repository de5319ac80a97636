"""The pruned scan at 1,000,000 x 128 against what people would use instead, measured in one run.

    python benchmarks/frontier.py [--only steps,batches,ahead,memory] [--rows 1000000] [--write]

Each part prints its figures and whether its bound holds; ratios are of times measured in this run, and a
bound that does not hold makes the exit code 1. A part during which others used the processors is measured again (once
or twice; what counts is the one that was least disturbed, whatever came out). The rivals, for one new positive among all rows:

- NumPy: matrix-vector product, running minimum, argmin;
- FAISS: ``IndexFlatL2.search`` for the new positive;
- scikit-learn: ``NearestNeighbors`` fitted again to the positives, asked for all rows.

The synthetic pool has covariance eigenvalues proportional to 1/i and 200 clusters. The real one has the
vectors of CIFAR-10's images (a small VGG trained on 100 of them; needs ACTIVECOVER_DATA), repeated up to the
same size with small noise. With ``--write`` the tables go to docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from _clusters import DIMENSIONS, synthetic
from _undisturbed import undisturbed
from activecover import Campaign, ExploreCommit, Pool
from activecover.frontier import ExactFrontier, Frontier, PrunedFrontier
from activecover.lab.datasets import load_dataset
from activecover.lab.grid import prepare_trial

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "scale.md"
Vectors = npt.NDArray[np.float32]

checks: list[bool] = []
lines: list[str] = []
page: list[str] = []


def say(text: str = "") -> None:
    lines.append(text)


def check(what: str, holds: bool) -> None:
    checks.append(holds)
    say(f"{'holds' if holds else 'FAILS'}: {what}")


def measured(what: str, part: Callable[[], None], tries: int = 2) -> list[bool]:
    """What a part says and whether its bounds hold, measured while others were least at work."""

    def measure() -> tuple[list[str], list[bool]]:
        lines.clear()
        checks.clear()
        part()
        return list(lines), list(checks)

    (said, holds), share = undisturbed(what, measure, tries)
    said.append(f"\n(Others took {share:.1%} of the processors meanwhile.)")
    print("\n".join(said), flush=True)
    page.extend(said)
    return holds


def embedded(rows: int) -> Vectors:
    """Vectors of real images, repeated with noise of a twentieth of their spread."""
    images = load_dataset("cifar10")
    cache = ROOT / "build" / "embeddings"
    vectors = np.asarray(prepare_trial(images, "airplane", 0, cache=cache).pool.vectors)
    random = np.random.default_rng(0)
    points = vectors[np.arange(rows) % len(vectors)]
    for start in range(0, rows, 50_000):
        part = points[start : start + 50_000]
        part += 0.05 * vectors.std() * random.normal(size=part.shape).astype(np.float32)
    return points


# -- single steps --------------------------------------------------------------------------------


def run_steps(
    frontier: Frontier, pool: Pool, count: int, first: int = 5, pause: float = 0.0
) -> tuple[list[int], list[float]]:
    """Follow the nearest row, each of them a yes: the rows, and the seconds of each step."""
    frontier.retire([first])
    frontier.add([first], pool.take([first]))
    row = int(frontier.nearest(1).rows[0])
    rows, seconds = [], []
    for _ in range(count):
        time.sleep(pause)
        started = time.perf_counter()
        frontier.retire([row])
        frontier.add([row], pool.take([row]))
        following = int(frontier.nearest(1).rows[0])
        seconds.append(time.perf_counter() - started)
        rows.append(row)
        row = following
    return rows, seconds


def timed(work: Callable[[int], object], rows: Sequence[int]) -> float:
    """Median seconds of some work on each of some rows."""
    seconds = []
    for row in rows:
        started = time.perf_counter()
        work(row)
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def numpy_step(points: Vectors) -> Callable[[int], object]:
    squares = np.einsum("ij,ij->i", points, points)
    nearest = np.full(len(points), np.inf, np.float32)

    def step(row: int) -> int:
        distances = points @ points[row]
        distances *= -2
        distances += squares
        distances += squares[row]
        np.minimum(nearest, distances, out=nearest)
        nearest[row] = np.inf
        return int(nearest.argmin())

    return step


def faiss_step(points: Vectors) -> Callable[[int], object]:
    import faiss

    index = faiss.IndexFlatL2(points.shape[1])
    index.add(points)
    return lambda row: index.search(points[row : row + 1], 64)


def sklearn_step(points: Vectors, told: list[int]) -> Callable[[int], object]:
    from sklearn.neighbors import NearestNeighbors

    def step(row: int) -> int:
        told.append(row)
        distances, _ = NearestNeighbors(n_neighbors=1).fit(points[told]).kneighbors(points)
        distances[told] = np.inf
        return int(distances.argmin())

    return step


def steps(name: str, points: Vectors, count: int) -> None:
    pool = Pool(points)
    say(f"\n### Single steps, {name}: {len(points):,} x {points.shape[1]}\n")
    started = time.perf_counter()
    frontier = PrunedFrontier(pool)
    built = time.perf_counter() - started
    rows, seconds = run_steps(frontier, pool, count)
    ours = float(np.median(seconds))
    reference, slow = run_steps(ExactFrontier(pool), pool, min(count, 100))
    say("| one *yes* told, next row found | median | ours is faster by |")
    say("|---|---|---|")
    say(f"| activecover, pruned (built in {built:.1f} s) | {1e3 * ours:.1f} ms (p99 {_p99(seconds)}) | |")
    say(f"| activecover, exact | {1e3 * np.median(slow):.1f} ms | {np.median(slow) / ours:.1f} |")
    rivals = {
        "NumPy product + argmin": (numpy_step(points), 25, 3.0),
        "FAISS IndexFlatL2.search": (faiss_step(points), 25, 3.0),
        "scikit-learn refit": (sklearn_step(points, rows[:20]), 4, 20.0),
    }
    ratios = {}
    for rival, (step, repeats, _) in rivals.items():
        theirs = timed(step, rows[20 : 20 + repeats])
        ratios[rival] = theirs / ours
        say(f"| {rival} | {1e3 * theirs:.1f} ms | {theirs / ours:.1f} |")
    say()
    for rival, (_, _, least) in rivals.items():
        check(f"at least {least:g} times faster than {rival}", ratios[rival] >= least)
    check(f"the order of the reference over {len(reference)} steps", rows[: len(reference)] == reference)


def _p99(seconds: Sequence[float]) -> str:
    return f"{1e3 * np.percentile(seconds, 99):.1f} ms"


# -- batches -------------------------------------------------------------------------------------


def batches(points: Vectors, size: int = 1000, repeats: int = 3) -> None:
    say(f"\n### Batches of {size:,}, {len(points):,} x {points.shape[1]}\n")
    pool = Pool(points)
    random = np.random.default_rng(1)
    groups = random.permutation(len(points))[: size * (repeats + 1)].reshape(repeats + 1, size)
    frontier = PrunedFrontier(pool)
    ours, products = [], []
    for group in groups:
        started = time.perf_counter()
        frontier.retire(group)
        frontier.add(group, pool.take(group))
        frontier.nearest(size)
        ours.append(time.perf_counter() - started)
        products.append(_product(points, points[group]))
    # The first one finds an empty frontier, where everything is new.
    ratio = float(np.median(ours[1:]) / np.median(products[1:]))
    say("| | seconds |")
    say("|---|---|")
    say(f"| activecover: {size:,} positives told, the next {size:,} found | {np.median(ours[1:]):.2f} |")
    say(
        f"| BLAS: one product of all rows with the {size:,} (in blocks that stay in cache) | {np.median(products[1:]):.2f} |"
    )
    say()
    check(f"not slower than the product by more than 30 % (ratio {ratio:.2f})", ratio <= 1.3)


def _product(points: Vectors, positives: Vectors) -> float:
    """Seconds of the product alone; its results are overwritten block by block, which is kinder to it."""
    step = 8192
    out = np.empty((step, len(positives)), np.float32)
    turned = np.ascontiguousarray(positives.T)
    started = time.perf_counter()
    for start in range(0, len(points), step):
        part = points[start : start + step]
        np.matmul(part, turned, out=out[: len(part)])
    return time.perf_counter() - started


# -- thinking ahead ------------------------------------------------------------------------------


def ahead(points: Vectors, answers: int = 300, pause: float = 0.3) -> None:
    say(f"\n### Thinking ahead, {len(points):,} x {points.shape[1]}, an annotator who takes {1e3 * pause:.0f} ms\n")
    pool = Pool(points)
    truth = points[:, 0] > np.quantile(points[:100_000, 0], 0.8)
    # Compiled code is loaded before the clock starts.
    with Campaign(Pool(points[:2000]), ExploreCommit(10, "pruned"), seed=1, think_ahead=True) as warm:
        for _ in range(40):
            (item,) = warm.ask()
            warm.tell(item.id, bool(truth[int(item.id)]))
    # Under the same conditions: after a pause a processor has forgotten most of what it knew.
    _, bare = run_steps(PrunedFrontier(pool), pool, 60, pause=pause)
    served: dict[bool, list[str]] = {}
    seconds: list[float] = []
    for think in (True, False):
        learner = ExploreCommit(explore=20, frontier="pruned")
        with Campaign(pool, learner, seed=1, think_ahead=think) as campaign:
            (item,) = campaign.ask()
            served[think] = []
            for _ in range(answers):
                served[think].append(item.id)
                answer = bool(truth[int(item.id)])
                if think:
                    time.sleep(pause)
                started = time.perf_counter()
                (item,) = campaign.answer(item.id, answer)
                if think:
                    seconds.append(time.perf_counter() - started)
    late = float(np.percentile(seconds, 99))
    yes = sum(bool(truth[int(name)]) for name in served[True])
    say("| | median | p99 |")
    say("|---|---|---|")
    say(f"| a bare step of the frontier, after the same pause | {1e3 * np.median(bare):.1f} ms | {_p99(bare)} |")
    say(
        f"| `answer` (`tell` + `ask` in one call), thinking ahead ({yes} yes, {answers - yes} no) | {1e3 * np.median(seconds):.2f} ms | {1e3 * late:.2f} ms |"
    )
    say()
    check("p99 of tell + ask at most a tenth of a bare step", late <= float(np.median(bare)) / 10)
    check("the items are those of a campaign that does not think ahead", served[True] == served[False])


# -- memory --------------------------------------------------------------------------------------

CHILD = """
import json, sys
import numpy as np
from activecover.frontier import PrunedFrontier, choose_frontier
from activecover.pool import Pool, load_pool

def anonymous(name="RssAnon"):
    for line in open("/proc/self/status"):
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024

def follow(frontier, pool, steps):
    row = 5
    for _ in range(steps):
        frontier.retire([row])
        frontier.add([row], pool.take([row]))
        row = int(frontier.nearest(1).rows[0])

# What the libraries take once, whatever the pool, belongs to the idle interpreter.
small = Pool(np.random.default_rng(0).normal(size=(20_000, 128)))
for half in (False, True):
    follow(PrunedFrontier(small, half), small, 30)
path, how = sys.argv[1:]
idle = anonymous()
if how == "mapped":
    pool = load_pool(path).pool
    frontier = choose_frontier(pool)
else:
    pool = Pool(np.load(path))
    frontier = PrunedFrontier(pool, half=how == "half")
follow(frontier, pool, 20)
print(json.dumps({"idle": idle, "now": anonymous(), "kind": type(frontier).__name__}))
"""


def memory(rows: int) -> None:
    say("\n### Memory\n")
    say("| pool | backend | anonymous memory above the idle interpreter | of the float32 pool |")
    say("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pool.npy"
        np.save(path, synthetic(rows))
        size = rows * DIMENSIONS * 4
        shares = {}
        for how in ("single", "half"):
            used = _child(path, how)
            shares[how] = (used["now"] - used["idle"]) / size
            say(
                f"| {rows:,} x {DIMENSIONS} in RAM | pruned, {how} | {_mib(used['now'] - used['idle'])} | {shares[how]:.2f} |"
            )
        large = Path(folder) / "large.npy"
        _write_large(large, 10 * rows, 64)
        used = _child(large, "mapped")
        say(f"| {10 * rows:,} x 64 mapped | {used['kind']} (auto) | {_mib(used['now'])} in all | |")
    say()
    check("float32: at most 1.5 times the pool", shares["single"] <= 1.5)
    check("float16: at most 1.1 times the pool", shares["half"] <= 1.1)
    check("mapped: at most 0.6 GiB of anonymous memory in all", used["now"] <= 0.6 * 2**30)


def _write_large(path: Path, rows: int, dimensions: int) -> None:
    target = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, dimensions))
    block = synthetic(500_000, dimensions)
    for start in range(0, rows, len(block)):
        part = target[start : start + len(block)]
        part[:] = block[: len(part)] + np.float32(1e-3 * start / rows)
    target.flush()


def _child(path: Path, how: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", CHILD, str(path), how], capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _mib(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"


def write_page(parts: Sequence[str]) -> None:
    """Put the tables between the markers of the page on scale."""
    begin, end = "<!-- measured: begin -->", "<!-- measured: end -->"
    text = PAGE.read_text()
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    note = f"\n*`python benchmarks/frontier.py --write`, {os.cpu_count()} shared cores, one run.*\n"
    PAGE.write_text(before + begin + note + "\n".join(parts) + "\n" + end + after)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="steps,batches,ahead,memory", help="parts, by comma")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scale.md")
    given = parser.parse_args()
    parts = given.only.split(",")
    points = synthetic(given.rows) if set(parts) - {"memory"} else np.empty((0, 0), np.float32)
    holds: list[bool] = []
    if "steps" in parts:
        holds += measured("steps", lambda: steps("synthetic", points, given.steps))
        if os.environ.get("ACTIVECOVER_DATA"):
            real = embedded(given.rows)
            holds += measured("steps", lambda: steps("CIFAR-10 images", real, given.steps))
            del real
        else:
            print("real images: skipped, ACTIVECOVER_DATA is not set")
    if "batches" in parts:
        holds += measured("batches", lambda: batches(points))
    if "ahead" in parts:
        holds += measured("ahead", lambda: ahead(points), tries=3)
    if "memory" in parts:
        del points
        holds += measured("memory", lambda: memory(given.rows), tries=1)
    if given.write:
        write_page(page)
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
