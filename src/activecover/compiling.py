"""Compiling: once per machine where a folder can be written to, once per process elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function without the interpreter's lock, and keep the result on disk if that is possible."""

    def decorate(function: Function) -> Function:
        try:
            result: Function = numba.njit(function, nogil=True, cache=True, **options)
        except RuntimeError:  # no folder for the cache can be written to
            result = numba.njit(function, nogil=True, **options)
        return result

    return decorate
