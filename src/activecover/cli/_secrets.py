"""Secrets that commands need: from files or the environment, as command lines can be seen by other users."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Annotated

import typer

from activecover.errors import InputError

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="postgresql://… for teams; default: an SQLite file in the folder. With a password: ACTIVECOVER_STORE.",
    ),
]
StoreFile = Annotated[
    Path | None, typer.Option("--store-file", help="A file with the address of the store, in place of --store.")
]
_LONGEST = 10_000
_PASSWORD = re.compile(r"://[^/@]*:[^/@]+@|[?&]password=", re.IGNORECASE)


def store_of(given: str | None, file: Path | None) -> str | None:
    """The address of a store: as given, from a file, or from ``ACTIVECOVER_STORE``."""
    if given is not None and file is not None:
        raise InputError("--store and --store-file: choose one of them")
    if given is not None and _PASSWORD.search(given):
        warn("the password in --store can be seen by every user of this machine: use ACTIVECOVER_STORE or --store-file")
    return given or secret_from(file, "ACTIVECOVER_STORE", "address of a store")


def secret_from(file: Path | None, variable: str, what: str) -> str | None:
    """A secret from a file if one is given, else from the environment, which forgets it."""
    if file is None:
        # What this process starts has no use for it.
        return os.environ.pop(variable, None) or None
    try:
        with file.open("rb") as opened:
            text = opened.read(_LONGEST).decode("utf-8").strip()
    except OSError as wrong:
        raise InputError(f"{file}: the {what} cannot be read ({wrong.strerror})") from wrong
    except UnicodeDecodeError as wrong:
        raise InputError(f"{file}: no {what}, but something that is not text") from wrong
    if not text or not text.isprintable():
        raise InputError(f"{file}: one line with a {what} is expected")
    return text


def warn(text: str) -> None:
    """A line on the standard error output."""
    warnings.warn(text, UserWarning, stacklevel=2)
