"""Put the finished cells of a grid in place of those in results/cells.csv.gz, and keep the rest of that file.

    python benchmarks/renew.py build/grid [results/cells.csv.gz]
    python benchmarks/renew.py build/grid --resume

The grid may be at work meanwhile. Says how many cells are new, and how many came out as they were. --resume goes the other
way: cells of the file that record the code they were made with are put into the grid, so that they are not computed
again. Older ones are left out, and so they will be.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from activecover.errors import ActiveCoverError
from activecover.lab.grid import Grid
from activecover.lab.grid._cells import read_cells

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


def resume(grid: Path, file: Path) -> str:
    """Put the cells of the file that record their code into the grid; how many, in one line."""
    with Grid(grid, create=True) as target:
        recorded = [result for result in read_cells(file) if "code=" in result.made_with]
        there = target.done()
        target.finish(recorded)
        new = len(target.done() - there)
    return f"{grid}: {new:,} new cells of the {len(recorded):,} in {file} that record their code"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", type=Path, help="folder of finished cells")
    parser.add_argument("file", type=Path, nargs="?", default=CELLS)
    parser.add_argument("--resume", action="store_true", help="from the file to the grid")
    given = parser.parse_args()
    try:
        print((resume if given.resume else renew)(given.grid, given.file))
    except (ActiveCoverError, OSError) as wrong:
        print(f"renew.py: {wrong}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
