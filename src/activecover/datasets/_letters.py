"""UCI Letter Recognition, bundled: 20,000 letters as 16 small integers (Slate 1991, CC BY 4.0)."""

from __future__ import annotations

import gzip
from importlib.resources import files

import numpy as np

from activecover.datasets._base import Dataset

ROWS = 20_000


def load_letters() -> Dataset:
    """Read the bundled Letters data.

    Examples
    --------
    >>> letters = load_letters()
    >>> letters.inputs.shape, int(letters.positive("A").sum())
    ((20000, 16), 789)
    """
    packed = files("activecover.datasets").joinpath("letter-recognition.data.gz").read_bytes()
    lines = gzip.decompress(packed).decode("ascii").split()
    assert len(lines) == ROWS
    fields = [line.split(",") for line in lines]
    return Dataset(
        "letters",
        np.array([field[1:] for field in fields], dtype=np.uint8),
        np.array([field[0] for field in fields], dtype=np.str_),
    )
