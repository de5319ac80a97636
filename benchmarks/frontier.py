"""The pruned scan at 1,000,000 x 128 against what people would use instead, measured in one run.

    python benchmarks/frontier.py [--only steps,batches,ahead,memory] [--rows 1000000] [--threads 1,2] [--write]

Each part prints its figures and whether its bound holds; ratios are of times measured in this run, and a
bound that does not hold makes the exit code 1. A part during which others used the processors is measured again (once
or twice; what counts is the one that was least disturbed, whatever came out).

Single steps are compared with the rivals of ``_rivals.py``: everyone has the same number of threads and is warmed up, and
only the fastest rival counts. There are three pools: a friendly one (covariance eigenvalues proportional to 1/i, 200
clusters), an isotropic one, on which nothing can be pruned, and a real one, patches of the pictures of CIFAR-10 and SVHN
(needs ACTIVECOVER_DATA). Each is followed once with every answer a yes, which is what costs most, and once with a no for
two answers of three. With ``--write`` the tables go to docs/scale.md.
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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from _clusters import DIMENSIONS, isotropic, patches, synthetic
from _rivals import Rival, rivals, threads_for_all, versions
from _undisturbed import undisturbed
from activecover import Campaign, ExploreCommit, Pool
from activecover.frontier import ExactFrontier, Frontier, PrunedFrontier
from activecover.lab.datasets import load_dataset

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


def real_patches(rows: int) -> Vectors:
    """Patches of real pictures, half of each data set; rows in random order."""
    halves = [
        patches(np.asarray(load_dataset(name).inputs), part)
        for name, part in (("cifar10", rows // 2), ("svhn", rows - rows // 2))
    ]
    points = np.concatenate(halves)
    return points[np.random.default_rng(0).permutation(rows)]


# -- single steps --------------------------------------------------------------------------------


def run_steps(
    frontier: Frontier, pool: Pool, answers: Sequence[bool], first: int = 5, pause: float = 0.0
) -> tuple[list[int], list[float]]:
    """Follow the nearest row and tell its answer: the rows, and the seconds of each step."""
    frontier.retire([first])
    frontier.add([first], pool.take([first]))
    row = int(frontier.nearest(1).rows[0])
    rows, seconds = [], []
    for positive in answers:
        time.sleep(pause)
        started = time.perf_counter()
        frontier.retire([row])
        if positive:
            frontier.add([row], pool.take([row]))
        following = int(frontier.nearest(1).rows[0])
        seconds.append(time.perf_counter() - started)
        rows.append(row)
        row = following
    return rows, seconds


def timed(rival: Rival, rows: Sequence[int], answers: Sequence[bool], warm: int = 5) -> float:
    """Mean seconds of a rival that is told the same rows and answers, after some steps that do not count."""
    seconds = []
    for row, positive in zip(rows, answers, strict=True):
        started = time.perf_counter()
        rival.tell(row, positive)
        seconds.append(time.perf_counter() - started)
    return float(np.mean(seconds[warm:]))


#: How much faster than the fastest rival the exact step has to be, by pool.
BOUNDS = {"friendly": 3.0, "isotropic": 1 / 1.1, "real": 3.0}


def steps(name: str, points: Vectors, count: int, threads: int) -> None:
    """One pool, with every answer a yes and with mixed answers."""
    pool = Pool(points)
    say(f"\n### Single steps, {name}: {len(points):,} x {points.shape[1]}, {threads} thread{'s' * (threads > 1)}\n")
    say("| one answer told, next row found | all yes | one yes in three |")
    say("|---|---|---|")
    with threads_for_all(threads):
        answers = {"all yes": [True] * count, "mixed": [number % 3 == 0 for number in range(count)]}
        run_steps(PrunedFrontier(pool), pool, [True] * 5)
        ours, rows = {}, {}
        for kind, told in answers.items():
            rows[kind], seconds = run_steps(PrunedFrontier(pool), pool, told)
            ours[kind] = float(np.mean(seconds[5:]))
        say(f"| activecover, pruned | {milliseconds(ours['all yes'])} | {milliseconds(ours['mixed'])} |")
        fastest = dict.fromkeys(answers, np.inf)
        few = min(count, 60)
        for rival in rivals(points, threads):
            theirs = {kind: timed(rival, rows[kind][:few], told[:few]) for kind, told in answers.items()}
            say(f"| {rival.name} | {milliseconds(theirs['all yes'])} | {milliseconds(theirs['mixed'])} |")
            fastest = {kind: min(fastest[kind], theirs[kind]) for kind in answers}
        reference, _ = run_steps(ExactFrontier(pool), pool, answers["mixed"][:few])
    ratio = {kind: fastest[kind] / ours[kind] for kind in answers}
    say(f"| the fastest of them / activecover | {ratio['all yes']:.1f} | {ratio['mixed']:.1f} |")
    say(f"\nMeans over the steps after the first five. {versions()}.\n")
    least = BOUNDS[name]
    for kind in answers:
        check(f"{name}, {kind}: at least {least:.2g} times as fast as the fastest rival", ratio[kind] >= least)
    check(f"the order of the exact frontier over {few} steps", rows["mixed"][:few] == reference)


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms"


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
    _, bare = run_steps(PrunedFrontier(pool), pool, [True] * 60, pause=pause)
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
    parser.add_argument("--threads", default="1,2", help="numbers of threads for single steps, by comma")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scale.md")
    given = parser.parse_args()
    parts = given.only.split(",")
    points = synthetic(given.rows) if set(parts) - {"memory"} else np.empty((0, 0), np.float32)
    holds: list[bool] = []
    if "steps" in parts:
        threads = [int(count) for count in given.threads.split(",")]
        pools: dict[str, Callable[[], Vectors]] = {
            "friendly": lambda: points,
            "isotropic": lambda: isotropic(given.rows),
        }
        if os.environ.get("ACTIVECOVER_DATA"):
            pools["real"] = lambda: real_patches(given.rows)
        else:
            print("patches of real pictures: skipped, ACTIVECOVER_DATA is not set")
        for name, make in pools.items():
            pool = make()
            for count in threads:
                holds += measured(f"steps, {name}, {count}", partial(steps, name, pool, given.steps, count))
            del pool
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
