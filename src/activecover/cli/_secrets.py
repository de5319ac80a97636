"""Secrets of commands, read from files or the environment, since other users can see command lines."""

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
        help="postgresql://… for teams; default: SQLite in the folder. Put a password in ACTIVECOVER_STORE instead.",
    ),
]
StoreFile = Annotated[
    Path | None, typer.Option("--store-file", help="File with the address of the store, instead of --store.")
]
_LONGEST = 10_000
_PASSWORD = re.compile(r"://[^/@]*:[^/@]+@|[?&]password=", re.IGNORECASE)


def store_of(given: str | None, file: Path | None) -> str | None:
    """The address of a store: as given, from a file, or from ``ACTIVECOVER_STORE``."""
    if given is not None and file is not None:
        raise InputError("--store and --store-file: choose one of them")
    if given is not None and _PASSWORD.search(given):
        warn("every user of this machine can see the password in --store: use ACTIVECOVER_STORE or --store-file")
    return given or secret_from(file, "ACTIVECOVER_STORE", "address of a store")


def secret_from(file: Path | None, variable: str, what: str) -> str | None:
    """Read a secret from a file if one is given, else take it out of the environment."""
    if file is None:
        # Child processes do not need it.
        return os.environ.pop(variable, None) or None
    try:
        with file.open("rb") as opened:
            text = opened.read(_LONGEST).decode("utf-8").strip()
    except OSError as error:
        raise InputError(f"{file}: the {what} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not a text file; it should be one line with the {what}") from error
    if not text or not text.isprintable():
        raise InputError(f"{file}: should be one line with the {what}")
    return text


def warn(text: str) -> None:
    """Print a line on standard error."""
    warnings.warn(text, UserWarning, stacklevel=2)
