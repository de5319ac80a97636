"""What a log holds about each item, as one flat record: for files and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from activecover.store import Ledger, events

_ANSWERS = ("told", "adjudicated", "skipped", "unsure")


def records_of(lines: Iterable[Mapping[str, Any]], ledger: Ledger) -> list[dict[str, Any]]:
    """One record per item that was asked for, in the order of asking.

    Examples
    --------
    >>> asked = {"seq": 0, "at": 5.0, "event": "asked", "number": 0, "id": "a", "source": "explore", "batch": 0, "by": "me"}
    >>> told = {"seq": 1, "at": 6.0, "event": "told", "id": "a", "label": 1, "by": "me"}
    >>> records_of([asked, told], Ledger([asked, told]))[0]["label"]
    1
    """
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        name = line.get("id")
        if line["event"] == "asked":
            event = events.read_event(line)
            assert isinstance(event, events.Asked)
            found[event.id] = {
                "id": event.id, "label": None, "state": "open", "by": event.by, "at": event.at,
                "number": event.number, "source": event.source, "rule": event.rule,
                "probability": event.probability, "why": named_positive(event.nearest), "note": None,
            }  # fmt: skip
        elif name in found and line["event"] in _ANSWERS:
            found[str(name)].update(by=line["by"], at=line.get("at"))
    for name, record in list(found.items()):
        ask = ledger.asks[name]
        record.update(state=ask.state, note=ask.note)
        if ask.settled:
            record["label"] = int(ask.state == "positive")
        same = {"source": "duplicate", "why": name, "probability": None}
        found |= {other: {**record, "id": other, **same} for other in ledger.groups.others(name)}
    return sorted(found.values(), key=lambda record: int(record["number"]))


def named_positive(nearest: str | int | None) -> str | None:
    """A positive in words: an item by its id, one from outside the pool by its number."""
    return f"known positive {nearest} from outside" if isinstance(nearest, int) else nearest
