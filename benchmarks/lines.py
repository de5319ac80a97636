"""Lines of the package per room at two revisions: ``python benchmarks/lines.py [OLD [NEW]]``.

Rooms that have moved are counted under their present name, so that a row compares the same code.
"""

from __future__ import annotations

import argparse
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/activecover/"
#: The revision before the rebuilding.
BEFORE = "2b08c20"
#: Present places of files that have moved, by path prefix; the first match counts.
MOVED = {
    "frontier/_graph": "graph",
    "intake/_parquet.py": "tables",
    "home/": "workspace",
    "embed/": "lab",
    "datasets/": "lab",
    "bench/": "lab",
    "theory/_bounds": "planning",
    "theory/_plan": "planning",
    "theory/": "lab",
    "frontier/_compile.py": "compiling.py",
}


def room_of(path: str) -> str:
    """The present room of a file of the package."""
    for prefix, room in MOVED.items():
        if path.startswith(prefix):
            return room
    return path.split("/", 1)[0]


def git(*arguments: str) -> bytes:
    """The output of a git command in this repository."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def lines_by_room(revision: str) -> Counter[str]:
    """Lines of Python per room at a revision."""
    counts: Counter[str] = Counter()
    for name in git("ls-tree", "-r", "--name-only", revision, PACKAGE).decode().splitlines():
        if name.endswith(".py"):
            counts[room_of(name.removeprefix(PACKAGE))] += git("show", f"{revision}:{name}").count(b"\n")
    return counts


def table(old: str, new: str) -> str:
    """A Markdown table of the lines per room at two revisions."""
    before, after = lines_by_room(old), lines_by_room(new)
    rooms = sorted(before | after, key=lambda room: (after[room] - before[room], room))
    rows = [(room, before[room], after[room]) for room in rooms]
    rows.append(("**all**", before.total(), after.total()))
    body = [f"| {room} | {was:,} | {now:,} | {now - was:+,} |" for room, was, now in rows]
    return "\n".join([f"| room | {old} | {new} | change |", "|---|---:|---:|---:|", *body])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?", default=BEFORE)
    parser.add_argument("new", nargs="?", default="HEAD")
    chosen = parser.parse_args()
    print(table(chosen.old, chosen.new))
