"""A lock for frontiers whose queries change internal state, so that calls from several threads take turns."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


def one_at_a_time(method: Callable[_Arguments, _Answer]) -> Callable[_Arguments, _Answer]:
    """Hold the object's reentrant lock (``_lock``) during a method."""

    @wraps(method)
    def waiting(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Answer:
        with arguments[0]._lock:  # type: ignore[attr-defined]
            return method(*arguments, **named)

    return waiting
