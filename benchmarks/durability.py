"""The full counts of what a campaign must survive; goes on where it was.

    python benchmarks/durability.py [--only sqlite,postgres,server,crowd-sqlite,crowd-postgres,model]

- sqlite, postgres: 500 cycles of several processes that label at full speed and are killed at a random moment;
- server: 500 cycles in which the PostgreSQL server is killed and started again, in turns by SIGKILL to all of
  its processes and by an immediate stop;
- crowd-sqlite, crowd-postgres: 16 and 64 processes that label 20,000 items;
- model: 2,000 examples of the state machine that compares a campaign with a naive model after every step.

After every cycle: each acknowledged label is there exactly once, none is invented, nobody was served what somebody
had, and the next proposals equal those of a replay from scratch. What is done is kept in results/durability.json
after each cycle (of the model: after each part, with a seed of its own). Exits with 1 if anything failed.
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
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "results" / "durability.json"
sys.path.insert(0, str(ROOT / "tests" / "campaign"))

CYCLES = 500
LABELS = 20_000
EXAMPLES, PART = 2000, 100


def kept() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return found


def keep(part: str, state: dict[str, Any]) -> None:
    # Parts may run at the same time: the file is read again just before.
    text = json.dumps({**kept(), part: state}, indent=1) + "\n"
    temporary = KEPT.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(KEPT)


@contextlib.contextmanager
def server() -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        running = import_module("annotators").Server(Path(folder))
        try:
            yield running
        finally:
            running.running.cleanup()


def cycles(part: str, count: int) -> None:
    state = kept().get(part, {"cycles": 0, "labels": 0, "kills": 0})
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
            keep(part, state)


def crowd(part: str, people: int) -> None:
    if part in kept():
        return
    measured: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        sqlite = part.endswith("sqlite")
        url = str(folder / "store.sqlite") if sqlite else stack.enter_context(server()).running.get_uri()
        import_module("test_many").label_all(url, folder, people, LABELS, measured.__setitem__)
    keep(part, {"people": people, "labels": LABELS, "a second": round(measured["labels per second"])})


def model(count: int) -> None:
    state = kept().get("model", {"examples": 0})
    while state["examples"] < count:
        seed = state["examples"] // PART
        environment = {**os.environ, "ACTIVECOVER_EXAMPLES": str(PART), "OMP_NUM_THREADS": "1"}
        command = ["-m", "pytest", "-q", "-p", "no:xdist", f"--hypothesis-seed={seed}", "tests/campaign/test_model.py"]
        subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, check=True, stdout=sys.stderr)
        state = {"examples": state["examples"] + PART}
        keep("model", state)


PARTS: dict[str, Callable[[], None]] = {
    "sqlite": lambda: cycles("sqlite", CYCLES),
    "postgres": lambda: cycles("postgres", CYCLES),
    "server": lambda: cycles("server", CYCLES),
    "crowd-sqlite": lambda: crowd("crowd-sqlite", 16),
    "crowd-postgres": lambda: crowd("crowd-postgres", 64),
    "model": lambda: model(EXAMPLES),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, by comma")
    failed = 0
    for part in parser.parse_args().only.split(","):
        try:
            PARTS[part]()
            said = ", ".join(f"{value:,} {what}" for what, value in kept()[part].items())
            print(f"holds: {part}: {said}", flush=True)
        except Exception as wrong:
            # Whatever it was, it is said where evidence is kept, and in full where a person looks.
            traceback.print_exc()
            failed += 1
            done = ", ".join(f"{value:,} {what}" for what, value in kept().get(part, {}).items()) or "nothing"
            print(f"FAILS: {part}: {wrong!r} (before that: {done})", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
