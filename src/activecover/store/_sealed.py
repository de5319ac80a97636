"""Checks on what a database gives back: every event against its hash, every campaign against its seal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from activecover.errors import StoreError
from activecover.store._chain import START, canonical, link, link_text
from activecover.store._events import Line
from activecover.store._log import encode
from activecover.store._shared import Ready

REMEDY = "restore the store from a backup"
#: No store has that many campaigns.
_MANY = 2**31


def sealed_row(place: int, event: Mapping[str, object], head: str) -> tuple[Line, str, str]:
    """An event as it will be read, the text to store, and the head of the chain after it."""
    read: Line = json.loads(encode(place, event))
    text = canonical(read)
    return read, text, link_text(head, text)


def checked_events(rows: Sequence[Any], *, first: int, head: str, where: object) -> list[Line]:
    """The events of database rows that follow on ``head``; a row that was changed, lost or damaged is named.

    The stored text is hashed as it is. Only where the hash does not fit is the text put into canonical form first:
    earlier versions stored it in another form.
    """
    events: list[Line] = []
    for place, row in enumerate(rows, first):
        try:
            event = json.loads(row.body)
            fits = link_text(head, row.body) == row.chain or link(head, event) == row.chain
            whole = fits and row.seq == event["seq"] == place and isinstance(event["event"], str)
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
            whole = False
        if not whole:
            raise StoreError(
                f"{where}: event {place} does not fit its hash: it, or one before it, was changed; {REMEDY}"
            )
        head = row.chain
        events.append({"seq": event.pop("seq"), "event": event.pop("event"), **event})
    return events


def check_end(rows: Sequence[Any], *, first: int, head: str, end: tuple[int, str], where: object) -> None:
    """Raise an error unless checked rows that follow on ``head`` end where the campaign does."""
    length, last = end
    missing = length - first - len(rows)
    if missing > 0:
        raise StoreError(f"{where}: the last {missing:,} of {length:,} events are missing; {REMEDY}")
    if missing < 0 or (rows[-1].chain if rows else head) != last:
        raise StoreError(f"{where}: its last event is not the one that the campaign ends with; {REMEDY}")


def end_of(rows: Sequence[Any], *, where: object) -> tuple[int, str]:
    """How many events a campaign has, and their head, from its row."""
    if not rows:
        raise StoreError(f"{where}: this campaign was removed")
    length, head = rows[0]
    if type(length) is not int or length < 0 or not isinstance(head, str) or (not length and head != START):
        raise StoreError(f"{where}: how many events it has is damaged; {REMEDY}")
    return length, head


def seal_of(name: str, about: str) -> str:
    """The hash that is kept with a campaign's name and settings."""
    return _seal([name, about])


def is_sealed(row: Any) -> bool:
    """Whether the row of a campaign is as it was written."""
    texts = isinstance(row.name, str) and isinstance(row.about, str)
    return texts and 0 < row.id < _MANY and row.seal == seal_of(row.name, row.about)


def sealed_proposal(campaign: int, place: int, one: Ready) -> dict[str, Any]:
    """A proposal as a row to store."""
    row = {
        "campaign": campaign, "place": place, "item": one.id, "source": one.source,
        "labels": one.labels, "probability": one.probability,
        "nearest": None if one.nearest is None else json.dumps([one.nearest]),
    }  # fmt: skip
    return {**row, "seal": _seal(row.values())}


def proposal_of(row: Any) -> Ready | None:
    """The proposal in a stored row; None where the row was changed, or cannot be read."""
    try:
        parts = row.campaign, row.place, row.item, row.source, row.labels, row.probability, row.nearest
        if row.seal != _seal(parts):
            return None
        nearest = None if row.nearest is None else json.loads(row.nearest)[0]
        return Ready(row.item, row.source, row.labels, row.probability, nearest)
    except (AttributeError, TypeError, ValueError, KeyError, IndexError):
        return None


def _seal(parts: Iterable[Any]) -> str:
    return hashlib.sha256(canonical(list(parts)).encode("utf-8", "surrogatepass")).hexdigest()
