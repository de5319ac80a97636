"""UCI Letter Recognition, bundled: 20,000 letters as 16 small integers (Slate 1991, CC BY 4.0)."""

from __future__ import annotations

import gzip
from importlib.resources import files
from pathlib import Path

import numpy as np

from activecover.datasets._base import Dataset, Watcher
from activecover.errors import InputError

COLUMNS = 16


def load_letters(folder: Path | None = None, watch: Watcher | None = None) -> Dataset:
    """Read the bundled Letters data, or ``letter-recognition.data`` of a folder that has it.

    Examples
    --------
    >>> letters = load_letters()
    >>> letters.inputs.shape, int(letters.positive("A").sum())
    ((20000, 16), 789)
    """
    path = folder / "letter-recognition.data" if folder is not None else None
    if path is not None and path.exists():
        text = path.read_text(encoding="ascii")
    else:
        packed = files("activecover.datasets").joinpath("letter-recognition.data.gz").read_bytes()
        text = gzip.decompress(packed).decode("ascii")
    fields = [line.split(",") for line in text.split()]
    for number, values in enumerate(fields, start=1):
        if len(values) != COLUMNS + 1:
            raise InputError(f"{path} line {number}: {len(values)} values, not a letter and {COLUMNS} numbers")
    return Dataset(
        "letters",
        np.array([values[1:] for values in fields], dtype=np.uint8),
        np.array([values[0] for values in fields], dtype=np.str_),
    )
