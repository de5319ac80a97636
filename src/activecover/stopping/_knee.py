"""Stop where the curve of positives found bends."""

from __future__ import annotations

import numpy as np

from activecover.stopping._heuristic import Heuristic, from_then_on, looks
from activecover.stopping._record import Ints, Record
from activecover.stopping._rule import Course


class Knee(Heuristic):
    """Stop when the curve of positives found has bent sharply. A heuristic.

    The knee is the point of the curve farthest above the line to its present end. The slope before it,
    divided by the slope after it, must be at least ``156 - min(found at the knee, 150)``: the fewer the positives,
    the sharper the bend must be. The rule looks each time the record has grown by 5 %. It assumes a single knee;
    a second cluster makes a second one.

    References
    ----------
    G. V. Cormack, M. R. Grossman: Engineering quality and reliability in technology-assisted review. SIGIR 2016.
    """

    name = "knee"
    assumptions = ("the curve of finds has one knee, after which nothing comes",)

    def follow(self, record: Record) -> Course:
        """Stop at the first look with a sharp knee."""
        found = record.found
        time = next((time for time in looks(len(record)) if time and _sharp(found[: time + 1])), None)
        return Course.nothing(record, from_then_on(record, time))


def _sharp(found: Ints) -> bool:
    time = len(found) - 1
    clock = np.arange(time + 1)
    knee = int(np.argmax(found - clock * (found[-1] / time)))
    if not 0 < knee < time:
        return False
    before = found[knee] / knee
    after = (1 + found[-1] - found[knee]) / (time - knee)
    return bool(before / after >= 156 - min(int(found[knee]), 150))
