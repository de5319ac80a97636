"""What a campaign shows: items to decide on, and its status."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from activecover.campaign._records import named_positive
from activecover.frontier import NO_KEY
from activecover.learners import Proposal

_REASONS = {
    "explore": "drawn at random",
    "insurance": "drawn at random",
    "audit": "drawn at random",
    "control": "drawn at random",
    "given": "given by you",
    "blind": "not shown in this campaign: some items are controls",
}
#: The source of every item as long as nobody who labels may know it.
BLIND = "blind"


@dataclass(frozen=True, slots=True)
class Item:
    """Something to decide on, and why it was chosen."""

    id: str
    content: dict[str, Any]
    source: str
    distance: float | None = None
    #: The positive that it is near to: the id of an item, or the number of one from outside the pool.
    nearest: str | int | None = None
    #: Duplicates of it, which get the same label.
    duplicates: tuple[str, ...] = ()
    #: The learner's own reason, if it gives one: ``blend, rank 1; its yield lately 41 %``.
    because: str | None = None

    @property
    def reason(self) -> str:
        """Why this item, in a few words."""
        reasons = [] if self.because is None else [self.because]
        if self.nearest is not None:
            far = "" if self.distance is None else f" (distance {self.distance:.4g})"
            reasons.append(f"nearest to {named_positive(self.nearest)}{far}")
        return "; ".join(reasons) or _REASONS.get(self.source, "ranked highest by the learner")


class Why(NamedTuple):
    """Why an item was proposed: its distance to the nearest positive, which one that is, and the learner's own reason."""

    distance: float = math.nan
    nearest: int = NO_KEY
    because: str | None = None

    @classmethod
    def of(cls, proposal: Proposal, place: int) -> Why:
        """The reason for one row of a proposal."""
        because = proposal.reasons[place] if proposal.reasons and place >= proposal.explored else None
        return cls(float(proposal.distances[place]), int(proposal.nearest[place]), because)

    @property
    def far(self) -> float | None:
        """The distance, if there is one."""
        return None if math.isnan(self.distance) else self.distance


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a campaign: counts, limits, and what stopped it."""

    rows: int
    labelled: int
    positives: int
    negatives: int
    known: int
    leased: int
    skipped: int
    unsure: int
    unlabelled: int
    #: Whether the learner still explores; None if that is withheld.
    phase: str | None
    learner: str
    budget: int | None
    target: int | None
    stopped: str | None
    note: str | None
    waiting: int = 0
    conflicts: int = 0
    #: Labelled items that nobody looked at, as one of their duplicates was labelled.
    duplicates: int = 0
    #: Positives that deserve a second look.
    suspicious: int = 0
    certificate: str | None = None
    insurance: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)
