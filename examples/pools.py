"""Real pools, from their files to the labels needed: text, molecules, tables and vectors.

    python examples/pools.py FOLDER [--only sms_spam,hiv] [--limit 2000]

FOLDER holds the files named below (or ACTIVECOVER_DATA/pools does). Each goes through intake, which makes a
pool of it, and explore-commit is run against its known labels: a random sample first, then the rows nearest
to any positive found.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from activecover.errors import ActiveCoverError, InputError
from activecover.intake import Table, make_pool, read_table
from activecover.learners import ExploreCommit
from activecover.metrics import labels_for
from activecover.pool import as_positive
from activecover.simulate import cover


@dataclass(frozen=True)
class Source:
    """A file, how vectors are made of it, and which label counts as positive."""

    file: str
    embed: str
    label_column: str
    positive: str
    header: bool = True
    id_column: str | None = None


POOLS = {
    "sms_spam": Source("sms_spam.tsv", "text:2", "1", "spam", header=False),
    "hate_speech": Source("hate_speech.csv", "text:tweet", "class", "0"),
    "hiv": Source("hiv.csv", "smiles", "HIV_active", "1"),
    "german_credit": Source("german_credit.data", "columns", "21", "2", header=False),
    "mammography": Source("mammography.npz", "vectors", "y", "1"),
    "systematic_review": Source(
        "systematic_review.csv", "text:title,abstract", "label_included", "1", id_column="record_id"
    ),
}

#: What is printed: a title, its width, and on which side it stands.
COLUMNS = [
    ("pool", 18, "<"),
    ("rows", 7, ">"),
    ("positives", 10, ">"),
    ("vectors", 24, "<"),
    ("labels for 95 %", 16, ">"),
    ("of the pool", 12, ">"),
    ("at random", 10, ">"),
    ("intake s", 9, ">"),
    ("run s", 7, ">"),
]


def _beside_the_data() -> str | None:
    folder = os.environ.get("ACTIVECOVER_DATA")
    return str(Path(folder) / "pools") if folder else None


def main() -> int:
    """Run every pool that was asked for and print a line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", default=_beside_the_data(), help="where the files are")
    parser.add_argument("--only", help=f"pools, comma-separated: {', '.join(POOLS)}")
    parser.add_argument("--limit", type=int, help="use so many rows only, from all over each pool")
    parser.add_argument("--explore", type=int, default=100, help="rows to label at random first")
    parser.add_argument("--batch", type=int, default=10, help="rows per batch")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.folder is None:
        parser.error("name the folder with the pools, or set ACTIVECOVER_DATA, with a folder pools in it")
    names = given.only.split(",") if given.only else list(POOLS)
    for name in names:
        if name not in POOLS:
            parser.error(f"unknown pool {name!r} (known: {', '.join(POOLS)})")
    print(line([title for title, _, _ in COLUMNS]))
    for name in names:
        try:
            print(line(run(name, Path(given.folder), given)), flush=True)
        except ActiveCoverError as wrong:
            print(f"{name}: {wrong}", file=sys.stderr)
            return 2
    return 0


def run(name: str, folder: Path, given: argparse.Namespace) -> list[object]:
    """One pool, from its file to the labels that 95 % of its positives take."""
    source = POOLS[name]
    started = time.perf_counter()
    table = some_rows(read_table(folder / source.file, header=source.header), given.limit)
    made = make_pool(
        table,
        embed=source.embed,
        id_column=source.id_column,
        label_column=source.label_column,
        seed=given.seed,
    )
    if made.labels is None:
        raise InputError(f"{table.source}: no labels")
    positive = as_positive(made.labels, source.positive)
    taken = time.perf_counter() - started
    trace = cover(made.pool, positive, ExploreCommit(explore=given.explore), batch=given.batch, seed=given.seed)
    labels = labels_for(trace, 0.95)
    rows, total = len(positive), int(positive.sum())
    return [
        name,
        f"{rows:,}",
        f"{total:,}",
        f"{made.embedding.name}, {made.pool.dimensions:,} {made.pool.kind}",
        "-" if labels is None else f"{labels:,}",
        "-" if labels is None else f"{labels / rows:.0%}",
        f"{at_random(rows, total):,}",
        f"{taken:.1f}",
        f"{trace.seconds:.1f}",
    ]


def at_random(rows: int, total: int) -> int:
    """Labels that the same takes on average in a random order."""
    return round(int(np.ceil(0.95 * total)) * (rows + 1) / (total + 1))


def some_rows(table: Table, limit: int | None) -> Table:
    """So many rows from all over a table, or all of it."""
    if limit is None or limit >= len(table):
        return table
    rows = np.linspace(0, len(table) - 1, limit).astype(int)
    columns = {name: [table.columns[name][row] for row in rows] for name in table.names}
    vectors = None if table.vectors is None else table.vectors[rows]
    return Table(table.source, limit, columns, vectors=vectors)


def line(cells: list[object]) -> str:
    """Cells set in columns."""
    return " ".join(f"{cell!s:{side}{width}}" for cell, (_, width, side) in zip(cells, COLUMNS, strict=True)).rstrip()


if __name__ == "__main__":
    sys.exit(main())
