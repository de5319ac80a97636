"""Run the full counts and write what was measured to docs/evidence.md.

    python benchmarks/evidence.py            # all steps
    python benchmarks/evidence.py rates core # those whose title has one of the words
    python benchmarks/evidence.py --page     # none: only the page, from what is kept

Each step's answer is kept in results/evidence.json as soon as it is there, and the page is written anew: an
interrupted run loses the step under way; finished cells of the protocol and of the rates, and the cycles that
campaigns have survived, are kept in results/ besides. What campaigns survived is shown as results/durability.json
counts it. Exits with 1 if a step failed; the page says which.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from durability import Record

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "evidence.md"
KEPT = ROOT / "results" / "evidence.json"
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True)
class Step:
    title: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    #: The part of results/durability.json that the page shows in the place of what was printed.
    part: str = ""

    def shown(self) -> str:
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        return " ".join([*settings, "python", *self.command])


@dataclass(frozen=True)
class Result:
    """What a step printed, on which day and with which versions."""

    code: int
    output: str
    seconds: float
    made: str


RATES = (
    "-m", "activecover", "theory", "rates", "--dims", "1,2,3", "--n", "1000..1000000", "--runs", "20",
    "--out", "results/theory-rates.csv", "--plot", "docs/images/rates.png",
)  # fmt: skip
INTRINSIC = (
    "-m", "activecover", "theory", "intrinsic", "--n", "1000..100000", "--runs", "20",
    "--out", "results/theory-intrinsic.csv",
)  # fmt: skip
STEPS = (
    Step("The paper's protocol: O and EC, 26 labels, 100 runs", ("benchmarks/letters.py",)),
    Step(
        "The paper's protocol: all ten methods, 5 labels, 5 runs",
        ("benchmarks/letters.py", "--methods", "all", "--labels", "A,E,H,K,S", "--runs", "5"),
    ),
    Step(
        "The paper's protocol: 30 committed cells made again",
        ("-m", "activecover", "bench", "verify", "results/cells.csv.gz", "--sample", "30"),
    ),
    Step("Speed and exactness of the core", ("benchmarks/core.py",)),
    Step("Speed and exactness of the tree in few dimensions", ("benchmarks/low_dimension.py", "--steps", "3000")),
    Step("Speed of the one-class scores, and two jobs against one", ("benchmarks/one_class.py",)),
    Step("Scale: steps, batches, thinking ahead, memory at 1,000,000 x 128", ("benchmarks/frontier.py", "--write")),
    Step("Scale: how a step grows with the pool", ("benchmarks/growth.py",)),
    Step("Scale: shards on Ray", ("benchmarks/ray_frontier.py",)),
    Step("Scale: the figures of the plan for a billion vectors", ("benchmarks/ray_frontier.py", "--plan")),
    Step("Stopping rules: coverage and cost", ("benchmarks/stopping.py",)),
    Step("Stopping rules: time to replay a run", ("benchmarks/replay.py",)),
    Step("Insurance: a component that was missed", ("benchmarks/insurance.py",)),
    Step("Campaigns: a label with its commit, a million rows, reopening", ("benchmarks/campaign.py",)),
    *(
        Step(f"Campaigns: {title}", ("benchmarks/durability.py", "--only", part), part=part)
        for part, title in {
            "sqlite": "killed again and again, SQLite",
            "postgres": "killed again and again, PostgreSQL",
            "server": "the PostgreSQL server killed again and again",
            "crowd-sqlite": "16 people, SQLite",
            "crowd-postgres": "64 people, PostgreSQL",
            "model": "examples of the state machine",
        }.items()
    ),
    Step("Learners: cost per batch at 100,000 and 1,000,000 rows", ("benchmarks/learners.py", "--full")),
    Step("Learners: labels needed on real pools, ten starts", ("benchmarks/pools.py",)),
    Step("Learners: the portfolio without each of its rules", ("benchmarks/ablation.py", "--starts", "5")),
    Step("Learners: the first batch on Letters", ("benchmarks/first_batch.py",)),
    Step("Learners: a yardstick that is told all letters", ("benchmarks/told_letters.py",)),
    Step("Learners: what text allows", ("benchmarks/hindsight.py",)),
    Step("Rates in 1, 2 and 3 dimensions", RATES),
    Step("Rates on a sheet of 2 dimensions in 50", INTRINSIC),
    Step("The server: 32 annotators on 1,000,000 rows", ("benchmarks/web.py",)),
    Step(
        "The page and the API: 5,000 cases of the document, 100 kills, every answer late",
        ("-m", "pytest", "-q", "-n", "0", "-rP", "tests/web"),
        {"HYPOTHESIS_PROFILE": "deep", "OMP_NUM_THREADS": "1"},
    ),
    Step(
        "All tests, many examples each",
        ("-m", "pytest", "-q", "-n", "2", "--ignore=tests/web"),
        {"HYPOTHESIS_PROFILE": "deep", "OMP_NUM_THREADS": "1"},
    ),
)


def run(step: Step) -> Result:
    """Run one step; its progress is shown as it comes, its results are kept."""
    print(f"$ {step.shown()}", file=sys.stderr, flush=True)
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, *step.command],
        cwd=ROOT, env={**os.environ, **step.environment}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    print(done.stdout, file=sys.stderr, flush=True)
    return Result(done.returncode, clean(done.stdout), round(time.monotonic() - started), made())


def clean(text: str) -> str:
    """Leave out colours, and what would name this machine or its folders."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    for path, name in ((ROOT, "."), (Path.home(), "~")):
        if str(path) != "/":
            text = text.replace(str(path), name)
    host = socket.gethostname()
    text = re.sub(rf"(?<!\w){re.escape(host)}(?!\w)", "(host)", text) if host else text
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


def made() -> str:
    """The day, and the versions that a result rests on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    system = f"{platform.system()} {platform.machine()}, {cores} core{'s' if cores != 1 else ''}"
    return f"{today}, activecover {version('activecover')}, Python {platform.python_version()}, {versions}; {system}"


def page(results: Mapping[str, Result]) -> str:
    lines = [
        "# Evidence",
        "",
        "Written by `make deep`; do not edit. Each part shows a command and what it printed. Runs of the",
        "protocol and of the rates that an earlier call had finished are not measured again. Times are of one busy",
        "machine: only their ratios mean anything elsewhere.",
    ]
    for step in STEPS:
        lines += ["", f"## {step.title}", ""]
        if step.title not in results:
            lines.append(f"`{step.shown()}`: not run yet")
            continue
        result = results[step.title]
        verdict = "passed" if result.code == 0 else f"FAILED (exit code {result.code})"
        lines += [f"`{step.shown()}`: {verdict}, {result.seconds:.0f} s", "", f"{result.made}."]
        lines += ["", "```text", shown(step, result) or "(no output)", "```"]
    return "\n".join(lines) + "\n"


def shown(step: Step, result: Result) -> str:
    """What a step printed; of what is counted over several calls, the count so far."""
    if not step.part or result.code:
        return result.output
    record = Record()
    missing = record.missing(step.part)
    return f"{'so far' if missing else 'holds'}: {record.said(step.part)}{missing and f'; not yet {missing}'}"


def load() -> dict[str, Result]:
    """The results that earlier calls have kept."""
    if not KEPT.exists():
        return {}
    return {title: Result(**kept) for title, kept in json.loads(KEPT.read_text(encoding="utf-8")).items()}


def main() -> int:
    words = [word.lower() for word in sys.argv[1:]]
    results = load()
    if words == ["--page"]:
        PAGE.write_text(page(results), encoding="utf-8")
        return 0
    for step in STEPS:
        if words and not any(word in step.title.lower() for word in words):
            continue
        results[step.title] = run(step)
        kept = {title: asdict(result) for title, result in results.items()}
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(results), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")
    return 0 if all(result.code == 0 for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
