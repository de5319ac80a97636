"""Measuring on a machine that is shared: a part that others disturbed is measured again.

How much others took, on this machine or on the host around it, is read from /proc/stat, and it alone decides which
measurement counts: never what came out of it.
"""

from __future__ import annotations

import os
import resource
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
    """Seconds of processor time: of this process and its children, of all that is not idle, and in all."""
    ours = sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    stat = Path("/proc/stat")
    if not stat.exists():
        return ours, ours, ours
    # user, nice, system, idle, iowait, irq, softirq, steal; what guests use is within user.
    ticks = [int(value) for value in stat.read_text().split("\n", 1)[0].split()[1:9]]
    second = os.sysconf("SC_CLK_TCK")
    total = sum(ticks)
    return ours, (total - ticks[3] - ticks[4]) / second, total / second
