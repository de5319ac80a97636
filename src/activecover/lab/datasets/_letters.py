"""UCI Letter Recognition, bundled: 20,000 letters as 16 small integers (Slate 1991, CC BY 4.0)."""

from __future__ import annotations

import gzip
import re
from importlib.resources import files
from pathlib import Path

import numpy as np

from activecover.lab.datasets._base import Dataset, Watcher, damaged, readable

NAME = "letter-recognition.data"
# With its line end: a last line without one may have lost a digit.
_LINE = re.compile(r"[A-Z](,([0-9]|1[0-5])){16}\n")


def load_letters(folder: Path | None = None, watch: Watcher | None = None) -> Dataset:
    """Read the bundled Letters data, or ``letter-recognition.data`` if the folder has it.

    Examples
    --------
    >>> letters = load_letters()
    >>> letters.inputs.shape, int(letters.positive("A").sum())
    ((20000, 16), 789)
    """
    path = folder / NAME if folder is not None else None
    if path is None or not path.exists():
        packed = files("activecover.lab.datasets").joinpath(f"{NAME}.gz").read_bytes()
        return _parse(gzip.decompress(packed).decode("ascii"), Path(NAME))
    with readable(path, "letters"):
        return _parse(path.read_text(encoding="ascii"), path)


def _parse(text: str, path: Path) -> Dataset:
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines or [""], start=1):
        if not _LINE.fullmatch(line):
            raise damaged(path, f"line {number} is not a letter and 16 numbers up to 15", "letters")
    fields = [line.rstrip().split(",") for line in lines]
    return Dataset(
        "letters",
        np.array([values[1:] for values in fields], dtype=np.uint8),
        np.array([values[0] for values in fields], dtype=np.str_),
    )
