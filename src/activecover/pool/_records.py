"""The contents of a row as bytes: how they are stored, and how they are recognised again."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from activecover.errors import InputError

#: What stands for the contents of an erased row; no record begins with it.
BLANK = b" "


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is neither")


_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain).encode


def record_of(values: list[Any], row: int) -> bytes:
    """The contents of one row as they are stored.

    Examples
    --------
    >>> record_of(["über", None, 2.5], 0).decode()
    '["über",null,2.5]'
    """
    try:
        text = _encoded(values)
    except (TypeError, ValueError, RecursionError) as wrong:
        raise InputError(f"row {row}: a content cannot be stored ({wrong}); give texts or numbers") from wrong
    return text.encode("utf-8", "surrogatepass")


def recognised(values: list[Any], row: int) -> bytes:
    """The contents of one row as they are hashed: as they would be stored, if they can be.

    Of a value that cannot be stored (a picture that a library has opened, say) only the type counts.
    """
    try:
        return record_of(values, row)
    except InputError:
        plain = [value if isinstance(value, str | bytes | int | float | None) else type(value) for value in values]
        return repr(plain).encode("utf-8", "surrogatepass")


def heading_of(columns: list[str]) -> bytes:
    """The names and the order of the columns, as they are hashed before the rows."""
    return json.dumps(columns).encode()
