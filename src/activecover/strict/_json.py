"""Untrusted JSON, with limits on memory and depth, and no ambiguity."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from activecover.errors import InputError


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """Limits on a JSON text."""

    size: int = 1 << 20
    values: int = 100_000
    depth: int = 32


def read_json(data: bytes, limits: JsonLimits | None = None) -> Any:
    """The value of a JSON text within limits; anything else raises an InputError of one line.

    Examples
    --------
    >>> read_json(b'{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> read_json(b"[" * 100_000)
    Traceback (most recent call last):
    activecover.errors.InputError: JSON nested deeper than 32
    >>> read_json(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    activecover.errors.InputError: JSON names 'a' twice
    """
    limits = limits or JsonLimits()
    if len(data) > limits.size:
        raise InputError(f"JSON of {len(data):,} bytes, {limits.size:,} at most")
    # Every value but the first follows one of these characters: an upper bound without parsing.
    if sum(map(data.count, (b",", b"[", b"{", b":"))) > limits.values:
        raise InputError(f"JSON of more than {limits.values:,} values")
    try:
        found = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise InputError(f"JSON nested deeper than {limits.depth}") from None
    except InputError:
        raise
    except ValueError as wrong:
        raise InputError(f"not JSON ({str(wrong)[:100]})") from None
    if _is_deeper(found, limits.depth):
        raise InputError(f"JSON nested deeper than {limits.depth}")
    return found


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InputError(f"JSON names {twice[:50]!r} twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise InputError(f"JSON with {constant}, which is not a number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InputError(f"JSON with the number {text[:20]}, which is too large")
    return value


def _is_deeper(value: object, depth: int) -> bool:
    level: list[object] = [value]
    for _ in range(depth + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True
