"""Put the finished cells of a grid in place of those in results/cells.csv.gz, and keep the rest of that file.

    python benchmarks/renew.py build/grid [results/cells.csv.gz]

The grid may be at work meanwhile. Says how many cells are new, and how many came out as they were.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from activecover.errors import ActiveCoverError
from activecover.lab.grid import Grid

CELLS = Path(__file__).resolve().parents[1] / "results" / "cells.csv.gz"


def renew(grid: Path, file: Path) -> str:
    """Replace cells of the file by those of the grid; what has changed, in one line."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "fresh.csv.gz"
        with Grid(grid) as source:
            count = source.export(fresh)
        with Grid(Path(folder) / "old", create=True) as old:
            if file.exists():
                old.include(file)
            before = {result.cell: result for result in old.results()}
        # What is in a grid stays there, so the new ones go first.
        with Grid(Path(folder) / "all", create=True) as target:
            target.include(fresh)
            new = list(target.results())
            if file.exists():
                target.include(file)
            file.parent.mkdir(parents=True, exist_ok=True)
            total = target.export(file)
    known = [result for result in new if result.cell in before]
    same = sum(result.curve == before[result.cell].curve for result in known)
    return (
        f"{file}: {total:,} cells, {count:,} of them from {grid}: {count - len(known):,} new, "
        f"{same:,} as they were, {len(known) - same:,} changed"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", type=Path, help="folder of finished cells")
    parser.add_argument("file", type=Path, nargs="?", default=CELLS)
    given = parser.parse_args()
    try:
        print(renew(given.grid, given.file))
    except (ActiveCoverError, OSError) as wrong:
        print(f"renew.py: {wrong}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
