"""What a log says of each item, as one flat record: for files and tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from activecover.store import Event, Ledger


def records_of(events: Iterable[Event], ledger: Ledger) -> list[dict[str, Any]]:
    """One record per item that was asked for, in the order of asking.

    Examples
    --------
    >>> asked = {"seq": 0, "at": 5.0, "event": "asked", "number": 0, "id": "a", "source": "explore", "batch": 0, "by": "me"}
    >>> told = {"seq": 1, "at": 6.0, "event": "told", "id": "a", "label": 1, "by": "me"}
    >>> records_of([asked, told], Ledger([asked, told]))[0]["label"]
    1
    """
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        name = event.get("id")
        if event["event"] == "asked":
            found[str(name)] = {
                "id": name, "label": None, "state": "open", "by": event["by"], "at": event.get("at"),
                "number": event["number"], "source": event["source"], "rule": event.get("rule"),
                "probability": event.get("probability"), "why": event.get("nearest"), "note": None,
            }  # fmt: skip
        elif name in found and event["event"] in ("told", "adjudicated", "skipped", "unsure"):
            found[name].update(by=event["by"], at=event.get("at"))
    for name, record in list(found.items()):
        ask = ledger.asks[name]
        record.update(state=ask.state, note=ask.note)
        if ask.settled:
            record["label"] = int(ask.state == "positive")
        same = {"source": "duplicate", "why": name, "probability": None}
        found |= {other: {**record, "id": other, **same} for other in ledger.groups.others(name)}
    return sorted(found.values(), key=lambda record: int(record["number"]))
