"""Checks on what people give to a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from activecover.errors import InputError


def check_person(by: Any) -> None:
    if not isinstance(by, str) or not by:
        raise InputError(f"by {by!r}: give a name, a non-empty string")


def sequence(labels: Any) -> Sequence[Any]:
    if isinstance(labels, str | bytes) or not hasattr(labels, "__iter__"):
        raise InputError("labels must be a sequence, one per id")
    return list(labels)


def yes_or_no(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | np.integer) and value in (0, 1)):
        return bool(value)
    raise InputError(f"label {value!r} is neither yes nor no: give True or False")
