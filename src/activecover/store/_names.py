"""What a campaign may be called: its name is part of paths, addresses and tables."""

from __future__ import annotations

import unicodedata

from activecover.errors import InputError

#: Bytes: a file system takes names of 255, and ours get an ending.
_LONGEST = 200


def check_name(name: str) -> str:
    """Give back a name that a campaign can have; any other one is refused.

    Examples
    --------
    >>> check_name("spam 2024")
    'spam 2024'
    >>> check_name("../spam")
    Traceback (most recent call last):
    activecover.errors.InputError: '../spam' is no name for a campaign: use letters, digits, - and _
    """
    sound = (
        isinstance(name, str)
        and len(name) > 0
        and name.isprintable()
        and not name.startswith(".")
        and not any(sign in name for sign in "/\\")
        and len(name.encode("utf-8", "replace")) <= _LONGEST
        and unicodedata.normalize("NFC", name) == name
    )
    if not sound:
        shown = name if len(str(name)) <= _LONGEST else f"{name[:50]}…"
        raise InputError(f"{shown!r} is no name for a campaign: use letters, digits, - and _")
    return name
