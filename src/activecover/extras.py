"""Optional dependencies: imported where they are used, with one clear line if one is missing."""

from __future__ import annotations

import importlib
from types import ModuleType

from activecover.errors import MissingExtraError


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional module, or say which extra to install.

    Examples
    --------
    >>> require("json", extra="plot", purpose="pictures").dumps([1])
    '[1]'
    >>> require("no_such_module", extra="plot", purpose="pictures")
    Traceback (most recent call last):
    activecover.errors.MissingExtraError: pictures need no_such_module: pip install 'activecover[plot]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        top = module.partition(".")[0]
        raise MissingExtraError(f"{purpose} need {top}: pip install 'activecover[{extra}]'") from missing
