"""The errors users can meet, each with a message of one line."""

from __future__ import annotations

from typing import SupportsIndex

__all__ = [
    "ActiveCoverError",
    "ArchiveError",
    "InputError",
    "MissingExtraError",
    "ModelUnavailableError",
    "StoreError",
    "check_count",
]

#: The largest count, seed or position: what fits an int64 wherever it goes.
LARGEST_COUNT = 2**63 - 1


class ActiveCoverError(Exception):
    """Base class of all errors that activecover raises on purpose; the message is one line for the user."""


class InputError(ActiveCoverError, ValueError):
    """The input is wrong: the message says what, where, and what to do."""


class StoreError(ActiveCoverError, OSError):
    """The label log could not be read or written; labels acknowledged earlier are still there."""


class ArchiveError(InputError, StoreError):
    """An archive is damaged, altered or malicious; none of it was kept."""


class MissingExtraError(ActiveCoverError, ImportError):
    """An optional dependency is needed but not installed."""


class ModelUnavailableError(ActiveCoverError):
    """A model cannot be fitted to the labels so far (too few positives, a singular covariance)."""


def check_count(name: str, value: object, least: int = 1) -> None:
    """Refuse anything but a whole number from ``least``, or None.

    Examples
    --------
    >>> check_count("budget", 0)
    Traceback (most recent call last):
    activecover.errors.InputError: budget 0: give a whole number from 1
    """
    # Through __index__, so that NumPy's integers count and floats do not.
    if value is None:
        return
    whole = value.__index__() if isinstance(value, SupportsIndex) and not isinstance(value, bool) else None
    if whole is None or not least <= whole <= LARGEST_COUNT:
        raise InputError(f"{name} {value!r}: give a whole number from {least}")
