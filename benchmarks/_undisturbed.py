"""Measuring on a machine that is shared: a part that others disturbed is measured again.

How much others took, on this machine or on the host around it, is read from /proc/stat, and it alone decides which
measurement counts: never what came out of it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_FINE = 0.01


def undisturbed(what: str, measure: Callable[[], T], tries: int = 4) -> tuple[T, float]:
    """The result of a measurement while others took less than 1 % of the processors, or the least of some tries.

    Also says how much they took.
    """
    found: list[tuple[float, int, T]] = []
    for number in range(tries):
        before = _used()
        result = measure()
        ours, others, total = (now - then for now, then in zip(_used(), before, strict=True))
        share = max(0.0, others - ours) / max(total, 1e-9)
        found.append((share, number, result))
        if share < _FINE:
            break
        print(f"({what}: others took {share:.1%} of the processors while this was measured)", flush=True)
    share, _, result = min(found, key=lambda one: one[:2])
    return result, share


def _used() -> tuple[float, float, float]:
    """Seconds of processor time: of this process and those that it started, of all that is not idle, and in all."""
    if not Path("/proc/stat").exists():
        return 0.0, 0.0, 1.0
    # user, nice, system, idle, iowait, irq, softirq, steal; what guests use is within user.
    ticks = [int(value) for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    total, second = sum(ticks), os.sysconf("SC_CLK_TCK")
    return _ours() / second, (total - ticks[3] - ticks[4]) / second, total / second


def _ours() -> int:
    """Ticks of all processes of our group, with those of their children that have ended."""
    used = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # Behind the name, which may contain anything: state, parent, group, ... and at 12 to 15 the times.
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[2]) == os.getpgrp():
                used += sum(map(int, fields[11:15]))
    return used
