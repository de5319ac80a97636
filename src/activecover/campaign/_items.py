"""What a campaign shows: items to decide on, and how it stands."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

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

    @property
    def reason(self) -> str:
        """Why this item, in a few words."""
        if self.nearest is not None:
            far = "" if self.distance is None else f" (distance {self.distance:.4g})"
            return f"nearest to {self.nearest}{far}"
        return _REASONS.get(self.source, "ranked highest by the learner")


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
    phase: str
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
