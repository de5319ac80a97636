"""Checks on what people give to a campaign."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from activecover.errors import InputError


def check_person(by: object) -> None:
    if not isinstance(by, str) or not by:
        raise InputError(f"by {by!r}: give a name, a non-empty string")


def sequence(labels: object) -> Sequence[object]:
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise InputError("labels must be a sequence, one per id")
    return list(labels)


def yes_or_no(value: object) -> bool:
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | np.integer) and value in (0, 1)):
        return bool(value)
    raise InputError(f"label {value!r} is neither yes nor no: give True or False")
