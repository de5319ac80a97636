"""The full counts of what a campaign must survive; goes on where it was.

    python benchmarks/durability.py [--only sqlite,postgres,server,crowd-sqlite,crowd-postgres,model]
        [--cycles 500] [--labels 20000] [--examples 2000] [--kept results/durability.json]

- sqlite, postgres: 500 cycles of several processes that label at full speed and are killed at a random moment;
- server: 500 cycles in which the PostgreSQL server is killed and started again, in turns by SIGKILL to all of
  its processes and by an immediate stop;
- crowd-sqlite, crowd-postgres: 16 and 64 processes that label 20,000 items;
- model: 2,000 examples of the state machine that compares a campaign with a naive model after every step.

After every cycle: each acknowledged label is there exactly once, none is invented, nobody was served what somebody
had, and the next proposals equal those of a replay from scratch. What is done is kept in results/durability.json
after each cycle (of the model: after each part, with a seed of its own); docs/evidence.md shows what that file says.
Exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from activecover.files import locked

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "results" / "durability.json"
#: The full counts; a run with fewer must keep its results elsewhere.
CYCLES, LABELS, EXAMPLES = 500, 20_000, 2000
PART = 100
FULL = {
    **dict.fromkeys(("sqlite", "postgres", "server"), ("cycles", CYCLES)),
    **dict.fromkeys(("crowd-sqlite", "crowd-postgres"), ("labels", LABELS)),
    "model": ("examples", EXAMPLES),
}


@dataclass(frozen=True)
class Record:
    """What has been survived so far, in a file."""

    path: Path = KEPT

    def all(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            found = json.loads(self.path.read_text(encoding="utf-8"))
        return found

    def part(self, part: str) -> dict[str, Any]:
        return self.all().get(part, {})

    def keep(self, part: str, state: dict[str, Any]) -> None:
        # Parts may run at the same time, and none may write back an older count of another.
        with locked(self.path.parent):
            text = json.dumps({**self.all(), part: state}, indent=1) + "\n"
            temporary = self.path.with_suffix(f".{os.getpid()}.tmp")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(self.path)

    def said(self, part: str) -> str:
        """What the file says of a part, in one line."""
        state = self.part(part)
        return f"{part}: {', '.join(f'{value:,} {what}' for what, value in state.items()) or 'nothing yet'}"

    def missing(self, part: str) -> str:
        """Which full count a part has not come to yet; nothing if it has."""
        unit, count = FULL[part]
        return "" if self.part(part).get(unit, 0) >= count else f"{count:,} {unit}"


@contextlib.contextmanager
def server() -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        running = import_module("annotators").Server(Path(folder))
        try:
            yield running
        finally:
            running.running.cleanup()


def cycles(record: Record, part: str, count: int) -> None:
    state = {"cycles": 0, "labels": 0, "kills": 0} | record.part(part)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        running = None if part == "sqlite" else stack.enter_context(server())
        url = str(folder / "store.sqlite") if running is None else running.running.get_uri()
        run = import_module("annotators").KillCycles(url, folder, running if part == "server" else None)
        stack.callback(run.close)
        before = dict(state)
        while state["cycles"] < count:
            run.run(state["cycles"])
            state = {
                "cycles": before["cycles"] + run.done,
                "labels": before["labels"] + run.labels,
                "kills": before["kills"] + run.kills,
            }
            record.keep(part, state)


def crowd(record: Record, part: str, people: int, labels: int) -> None:
    if record.part(part):
        return
    measured: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        sqlite = part.endswith("sqlite")
        url = str(folder / "store.sqlite") if sqlite else stack.enter_context(server()).running.get_uri()
        import_module("test_many").label_all(url, folder, people, labels, measured.__setitem__)
    record.keep(part, {"people": people, "labels": labels, "a second": round(measured["labels per second"])})


def model(record: Record, count: int) -> None:
    state = {"examples": 0} | record.part("model")
    while state["examples"] < count:
        seed = state["examples"] // PART
        environment = {**os.environ, "ACTIVECOVER_EXAMPLES": str(PART), "OMP_NUM_THREADS": "1"}
        command = ["-m", "pytest", "-q", "-p", "no:xdist", f"--hypothesis-seed={seed}", "tests/campaign/test_model.py"]
        subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, check=True, stdout=sys.stderr)
        state = {"examples": state["examples"] + PART}
        record.keep("model", state)


def run(record: Record, part: str, options: argparse.Namespace) -> None:
    if part == "model":
        model(record, options.examples)
    elif part.startswith("crowd-"):
        crowd(record, part, 16 if part == "crowd-sqlite" else 64, options.labels)
    else:
        cycles(record, part, options.cycles)


def main() -> int:
    sys.path.insert(0, str(ROOT / "tests" / "campaign"))
    sys.path.insert(0, str(ROOT / "tests"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(FULL), help="parts, by comma")
    parser.add_argument("--cycles", type=int, default=CYCLES)
    parser.add_argument("--labels", type=int, default=LABELS)
    parser.add_argument("--examples", type=int, default=EXAMPLES)
    parser.add_argument("--kept", type=Path, default=KEPT, help="where results are kept")
    options = parser.parse_args()
    parts = options.only.split(",")
    if unknown := [part for part in parts if part not in FULL]:
        parser.error(f"no part {unknown[0]!r}: choose from {', '.join(FULL)}")
    full = (options.cycles, options.labels, options.examples) == (CYCLES, LABELS, EXAMPLES)
    if not full and options.kept.resolve() == KEPT:
        parser.error("fewer counts than the full ones are kept elsewhere: give --kept FILE")
    record = Record(options.kept)
    failed = 0
    for part in parts:
        try:
            run(record, part, options)
            print(f"holds: {record.said(part)}", flush=True)
        except Exception as wrong:
            # Whatever it was, it is said where evidence is kept, and in full where a person looks.
            traceback.print_exc()
            failed += 1
            print(f"FAILS: {part}: {wrong!r} (before that: {record.said(part)})", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
