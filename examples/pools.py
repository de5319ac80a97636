"""Real pools, from their files to the labels needed: text, molecules, tables and vectors.

    python examples/pools.py FOLDER [--only sms_spam,hiv] [--limit 2000]

FOLDER holds the files named below (or ACTIVECOVER_DATA/pools does). Each becomes a campaign with one command,
which is shown, and is labelled with its known labels as people would: a random sample first, then what the default
learner asks for, every answer synced to a store, until 95 % of the positives are found.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover import Campaign, cli
from activecover.errors import ActiveCoverError, InputError
from activecover.intake import Table, make_pool, read_table
from activecover.metrics import labels_for
from activecover.pool import as_positive
from activecover.workspace import Workspace


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
    "sms_spam": Source("sms_spam.tsv", "tfidf:2", "1", "spam", header=False),
    "hate_speech": Source("hate_speech.csv", "tfidf:tweet", "class", "0"),
    "hiv": Source("hiv.csv", "smiles", "HIV_active", "1"),
    "german_credit": Source("german_credit.data", "columns", "21", "2", header=False),
    "mammography": Source("mammography.npz", "vectors", "y", "1"),
    "systematic_review": Source(
        "systematic_review.csv", "tfidf:title,abstract", "label_included", "1", id_column="record_id"
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
    parser.add_argument("--batch", type=int, default=10, help="rows asked for and told at once")
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
    positive = as_positive(np.array([text.strip() for text in table.texts(source.label_column)]), source.positive)
    with tempfile.TemporaryDirectory() as place, Workspace(place) as home:
        begin(home, name, folder / source.file, table, given)
        taken = time.perf_counter() - started
        with home.open(name) as campaign:
            rows, total = len(positive), int(positive.sum())
            started = time.perf_counter()
            label(campaign, positive, given.batch)
            labels = labels_for(replace(campaign.trace(), positives=total), 0.95)
            seconds = time.perf_counter() - started
            vectors = f"{source.embed.partition(':')[0]}, {campaign.pool.dimensions:,} {campaign.pool.kind}"
    return [
        name,
        f"{rows:,}",
        f"{total:,}",
        vectors,
        "-" if labels is None else f"{labels:,}",
        "-" if labels is None else f"{labels / rows:.0%}",
        f"{at_random(rows, total):,}",
        f"{taken:.1f}",
        f"{seconds:.1f}",
    ]


def begin(home: Workspace, name: str, file: Path, table: Table, given: argparse.Namespace) -> None:
    """Begin a campaign: with one command, or, on some rows only, with what intake makes of them."""
    source = POOLS[name]
    if given.limit is not None:
        how: dict[str, Any] = {"id_column": source.id_column, "label_column": source.label_column}
        home.new(
            name, make_pool(table, embed=source.embed, seed=given.seed, **how), explore=given.explore, seed=given.seed
        ).close()
        return
    command = ["new", name, "--pool", str(file), "--embed", source.embed, "--label-col", source.label_column]
    command += [] if source.header else ["--no-header"]
    command += [] if source.id_column is None else ["--id-col", source.id_column]
    command += ["--explore", str(given.explore), "--seed", str(given.seed)]
    print("$ activecover", " ".join(command), file=sys.stderr, flush=True)
    with contextlib.redirect_stdout(io.StringIO()):
        code = cli.main([*command, "--home", str(home.folder)])
    if code:
        raise InputError("the campaign could not begin")


def label(campaign: Campaign, positive: npt.NDArray[np.bool_], batch: int) -> None:
    """Ask and tell until 95 % of the positives are found."""
    wanted = int(np.ceil(round(0.95 * positive.sum(), 9)))
    found = 0
    while found < wanted:
        names = [item.id for item in campaign.ask(batch)]
        answers = positive[campaign.pool.rows(names)]
        campaign.tell(names, answers.tolist())
        found += int(answers.sum())


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
