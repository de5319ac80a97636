"""Events in a chain: each is hashed together with the hash of all before it, so that none can be changed unseen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

#: The hash of no events at all.
START = "0" * 64
#: One encoder for all: making one takes longer than using it.
canonical = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode


def link(head: str, event: Mapping[str, Any]) -> str:
    """The head of a chain after one more event.

    It is the SHA-256 of the head before, a line feed, and the event as JSON with sorted keys and without blanks, so
    that anyone can compute it again.

    Examples
    --------
    >>> link(START, {"seq": 0, "event": "told", "id": "a"})[:16]
    '5341fbb568b3aad6'
    """
    return link_text(head, canonical(event))


def link_text(head: str, text: str) -> str:
    """The head of a chain after one more event, from the event's canonical text: nothing is parsed."""
    return hashlib.sha256(f"{head}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def heads(events: Iterable[Mapping[str, Any]], head: str = START) -> Iterator[str]:
    """The head after each of some events that follow on one."""
    for event in events:
        head = link(head, event)
        yield head


def head_of(events: Iterable[Mapping[str, Any]]) -> str:
    """The head after all events from the first on."""
    head = START
    for head in heads(events):  # noqa: B007 - the last one is meant
        pass
    return head


def first_break(events: Iterable[Mapping[str, Any]], kept: Iterable[str | None]) -> int | None:
    """The position of the first event that does not fit the hash kept with it; none if all fit.

    Events without a hash were written before there was a chain: they may stand at the start, and nowhere
    else. The first hash seals them.

    Examples
    --------
    >>> events = [{"seq": 0, "event": "told", "id": "a"}, {"seq": 1, "event": "told", "id": "b"}]
    >>> kept = list(heads(events))
    >>> first_break(events, kept), first_break(events, [None, kept[1]]), first_break(events, [kept[0], None])
    (None, None, 1)
    """
    head, begun = START, False
    for place, (event, given) in enumerate(zip(events, kept, strict=True)):
        try:
            head = link(head, event)
        except (ValueError, RecursionError):  # numbers that no event holds: a digit became an exponent
            return place
        if event.get("seq") != place:
            return place
        begun = begun or given is not None
        if begun and given != head:
            return place
    return None
