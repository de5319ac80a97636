"""The values of a table as text and as numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError

#: Texts that mean a missing number.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})


def as_text(value: object) -> str:
    """A value as text; empty if it is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def number(value: object) -> float | None:
    """A value as a number: NaN if it is missing, None if it is something else.

    Examples
    --------
    >>> number(" 2.5 "), number("?"), number("2021_07")
    (2.5, nan, None)
    """
    if value is None:
        return math.nan
    if isinstance(value, str):
        text = value.strip()
        return math.nan if text.lower() in MISSING else plain_number(text)
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def plain_number(text: str) -> float | None:
    """A text as a number, None if it is not one; NaN only if it says so."""
    try:
        # Python also parses 2021_07 as a number; in a table it is a name.
        return float(text.replace("_", "?"))
    except ValueError:
        return None


def as_numbers(column: Sequence[object] | npt.NDArray[np.generic], where: str, name: str) -> npt.NDArray[np.float64]:
    """A column as numbers, NaN if one is missing; an error names the row of any other value."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
        return np.asarray(column, np.float64)
    values = [number(value) for value in column]
    if None in values:
        row = values.index(None)
        raise InputError(f"{where}row {row}, column {name!r}: {as_text(column[row])[:40]!r} is not a number")
    return np.array(values, np.float64)
