"""The contents of a row as bytes, for storing and for hashing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from activecover.errors import InputError

#: Replaces the contents of an erased row; no record begins with it.
BLANK = b" "


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is neither text nor number")


_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain).encode


def record_of(values: list[Any], row: int) -> bytes:
    """The contents of one row, as stored.

    Examples
    --------
    >>> record_of(["über", None, 2.5], 0).decode()
    '["über",null,2.5]'
    """
    try:
        text = _encoded(values)
    except (TypeError, ValueError, RecursionError) as wrong:
        raise InputError(f"row {row}: its contents cannot be stored ({wrong}); give texts or numbers") from wrong
    return text.encode("utf-8", "surrogatepass")


def recognised(values: list[Any], row: int) -> bytes:
    """The contents of one row, as hashed: in their stored form, if they can be stored.

    For a value that cannot be stored, such as an image opened by a library, only the type counts.
    """
    try:
        return record_of(values, row)
    except InputError:
        plain = [value if isinstance(value, str | bytes | int | float | None) else type(value) for value in values]
        return repr(plain).encode("utf-8", "surrogatepass")


def heading_of(columns: list[str]) -> bytes:
    """The names and order of the columns, hashed before the rows."""
    return json.dumps(columns).encode()
