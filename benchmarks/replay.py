"""Replaying a run against all rules takes time in step with its labels: measured for 10^3, 10^4 and 10^5 of them.

A simulated run is a trace; a live one is a label log, whose events are read, folded and replayed. The table
goes into docs/stopping.md. Exits with 1 if a label of a run of 10^5 costs more than twice one of a run of 10^4.

    python benchmarks/replay.py [--no-page]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from _page import write_parts
from activecover.stopping import Record, replay
from activecover.store import Ledger
from activecover.testing import RANKINGS
from activecover.trace import Trace

PAGE = Path(__file__).resolve().parents[1] / "docs" / "stopping.md"
SIZES = (1000, 10_000, 100_000)
MOST_GROWTH = 2.0


def truth_of(rows: int) -> np.ndarray:
    return RANKINGS["benign"].draw(rows, rows // 20, np.random.default_rng(rows))


def simulated(rows: int) -> Callable[[], object]:
    clock = np.arange(rows)
    trace = Trace(clock, truth_of(rows), clock, clock < 0, pool_rows=rows, positives=rows // 20)
    return lambda: replay(trace, target=0.9)


def live(rows: int) -> Callable[[], object]:
    """Half of the asks are control rows, as a certified campaign has them."""
    events: list[dict[str, object]] = []
    for row, positive in enumerate(truth_of(rows).tolist()):
        control = row % 2 == 0
        asked = {
            "event": "asked", "number": row, "id": str(row), "source": "control" if control else "learner", "batch": row,
            "by": "me", "expires": None, "probability": 1 / (rows - row) if control else 1.0, "open": rows - row,
        }  # fmt: skip
        events += [asked, {"event": "told", "id": str(row), "label": int(positive), "by": "me"}]
    numbered = [{"seq": place, **event} for place, event in enumerate(events)]
    return lambda: replay(Record.from_ledger(Ledger(numbered), rows=rows), target=0.9)


def seconds(run: Callable[[], object], times: int = 3) -> float:
    """The shortest of a few runs: what else the machine does can only add to it."""
    found = []
    for _ in range(times):
        started = time.process_time()
        run()
        found.append(time.process_time() - started)
    return min(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-page", action="store_true", help="print only")
    given = parser.parse_args()
    lines = [
        "| labels | a simulated run, s | microseconds a label | a live label log, s | microseconds a label |",
        "|---:|---:|---:|---:|---:|",
    ]
    each: dict[str, list[float]] = {"simulated": [], "live": []}
    for rows in SIZES:
        times = [seconds(simulated(rows)), seconds(live(rows))]
        for kind, spent in zip(each, times, strict=True):
            each[kind].append(spent / rows)
        cells = [f"{spent:.2f} | {1e6 * spent / rows:.0f}" for spent in times]
        lines.append(f"| {rows:,} | " + " | ".join(cells) + " |")
    print(*lines, sep="\n")
    if not given.no_page:
        write_parts(PAGE, {"timing": lines})
    linear = all(costs[2] <= MOST_GROWTH * costs[1] for costs in each.values())
    print(f"linear: {'yes' if linear else 'NO'}")
    return 0 if linear else 1


if __name__ == "__main__":
    sys.exit(main())
