"""Options that several commands share, most of them about the pool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer

from activecover.errors import LARGEST_COUNT, InputError
from activecover.pool import read_array

PoolFile = Annotated[Path | None, typer.Option("--pool", help="The pool: .npy, .npz, .csv, .tsv or .parquet.")]
VectorFile = Annotated[
    Path | None, typer.Option("--vectors", help="Vectors for the rows of the pool, in the same order: .npy or .npz.")
]
Columns = Annotated[
    str | None, typer.Option("--columns", help="Vector columns, comma-separated; default: the numeric ones.")
]
IdColumn = Annotated[str | None, typer.Option("--id-col", help="Column with the ids; default: row numbers.")]
ContentColumns = Annotated[
    str | None, typer.Option("--content-cols", help="Columns to show, comma-separated; default: all.")
]
LabelColumn = Annotated[str | None, typer.Option("--label-col", help="Column with the known labels.")]
MetricName = Annotated[str, typer.Option("--metric", help="euclidean, cosine, or jaccard (for zeros and ones).")]
Bits = Annotated[
    int | None,
    typer.Option("--bits", min=1, help="The vectors are packed bits (numpy.packbits), with this many bits per row."),
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The text file has no header; its columns are named 1, 2, ….")
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=LARGEST_COUNT, help="Seed of the random numbers.")]
Explore = Annotated[int, typer.Option("--explore", min=0, help="Rows to label at random first.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def split_names(names: str | None) -> list[str] | None:
    """Comma-separated names as a list."""
    if names is None:
        return None
    parts = [part.strip() for part in names.split(",")]
    if not all(parts):
        raise InputError(f"{names!r} contains an empty name: separate names by single commas")
    return parts


def read_labels(path: Path, rows: int) -> npt.NDArray[np.str_]:
    """Read labels from a separate file: .npy, or text with one per line."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.suffix.lower() == ".npy":
        values = [str(value) for value in read_array(path).reshape(-1).tolist()]
    else:
        try:
            values = path.read_text(encoding="utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8") from error
        values = values[:-1] if not values[-1] else values
    if len(values) != rows:
        raise InputError(f"{path}: {len(values)} labels for a pool of {rows} rows; give one per row")
    return np.array(values, dtype=np.str_)


Raw = Annotated[
    bool,
    typer.Option(
        "--raw", help="CSV for programs: no apostrophe before text that a spreadsheet would run as a formula."
    ),
]
