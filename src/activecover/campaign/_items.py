"""What a campaign shows: items to decide on, and how it stands."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from activecover.frontier import NO_KEY
from activecover.learners import Proposal

_REASONS = {
    "explore": "drawn at random",
    "insurance": "drawn at random",
    "audit": "drawn at random",
    "control": "drawn at random",
    "given": "given by you",
    "blind": "not said in this campaign: some items are controls",
}
#: Stands for where an item comes from where nobody who labels may know.
BLIND = "blind"


@dataclass(frozen=True, slots=True)
class Item:
    """Something to decide on, and why it was chosen."""

    id: str
    content: dict[str, Any]
    source: str
    distance: float | None = None
    nearest: str | None = None
    #: Other items that get the same label, as they are one with it.
    duplicates: tuple[str, ...] = ()
    #: What the learner says of its choice, where it says something: ``blend, rank 1; its yield lately 41 %``.
    because: str | None = None

    @property
    def reason(self) -> str:
        """Why this item, in a few words."""
        said = [] if self.because is None else [self.because]
        if self.nearest is not None:
            far = "" if self.distance is None else f" (distance {self.distance:.4g})"
            said.append(f"nearest to {self.nearest}{far}")
        return "; ".join(said) or _REASONS.get(self.source, "ranked highest by the learner")


class Why(NamedTuple):
    """How far from which positive an item was when it was proposed, and what the learner said of it."""

    distance: float = math.nan
    nearest: int = NO_KEY
    because: str | None = None

    @classmethod
    def of(cls, proposal: Proposal, place: int) -> Why:
        """What a proposal says of one of its rows."""
        because = proposal.reasons[place] if proposal.reasons and place >= proposal.explored else None
        return cls(float(proposal.distances[place]), int(proposal.nearest[place]), because)

    @property
    def far(self) -> float | None:
        """The distance, where there is one."""
        return None if math.isnan(self.distance) else self.distance


@dataclass(frozen=True, slots=True)
class Foreseen:
    """An item that may come next, and the proposal that it is of."""

    item: Item
    proposal: Proposal


@dataclass(frozen=True, slots=True)
class Status:
    """How a campaign stands."""

    rows: int
    labelled: int
    positives: int
    negatives: int
    known: int
    leased: int
    skipped: int
    unsure: int
    unlabelled: int
    #: Whether the learner still explores; None where that is withheld.
    phase: str | None
    learner: str
    budget: int | None
    target: int | None
    stopped: str | None
    note: str | None
    waiting: int = 0
    conflicts: int = 0
    #: Of those labelled, how many were not looked at themselves, but a duplicate of theirs was.
    duplicates: int = 0
    #: Positives that deserve a second look.
    suspicious: int = 0
    certificate: str | None = None
    insurance: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)
