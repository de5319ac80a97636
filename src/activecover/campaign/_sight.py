"""What people may see of a campaign: while its promise is open, nothing that rests on which rows are control rows.

All that is shown is worked out from the log as :func:`blinded` gives it, in which every ask looks like every other.
So no figure, count, order or number made of it can tell a control row, whatever is added later.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from activecover.campaign._campaign import Campaign
from activecover.campaign._items import BLIND, Status
from activecover.campaign._records import records_of
from activecover.store import Event, EventLog, Ledger
from activecover.trace import Trace

#: Kinds of events that happen to control rows at other times than to others, or not at all.
_LEFT_OUT = ("reached", "forgotten")
#: Fields that differ between control rows and others, or from which the control rows can be computed.
_HIDDEN = frozenset(
    ("source", "rule", "probability", "open", "nearest", "number", "position", "batch", "seed", "key", "explore")
)
_HIDDEN_IN_RECORDS = _HIDDEN | {"why"}


def blinded(events: Iterable[Event], first: int = 0) -> Iterator[Event]:
    """Events as those see them who must not know the control rows, numbered anew from ``first``.

    Examples
    --------
    >>> asked = {"seq": 4, "event": "asked", "id": "a", "source": "control", "number": 3, "batch": 1, "by": "ann"}
    >>> list(blinded([asked, {"seq": 5, "event": "reached", "id": "a", "number": 4, "source": "learner"}]))
    [{'seq': 0, 'event': 'asked', 'id': 'a', 'by': 'ann'}]
    """
    for event in events:
        if event["event"] not in _LEFT_OUT:
            yield {key: value for key, value in event.items() if key not in _HIDDEN} | {"seq": first}
            first += 1


class Sight:
    """A campaign as people may see it; it follows the log without taking turns.

    Parameters
    ----------
    campaign : Campaign
        Once its promise is kept, or where it has none that needs control rows, everything of it is seen.

    Examples
    --------
    >>> from activecover import Campaign, Pool
    >>> campaign = Campaign(Pool([[0.0], [1.0], [2.0]]), certify="0.5@0.5")
    >>> item = campaign.ask()[0]
    >>> sight = Sight(campaign)
    >>> sight.blind, sight.status().phase, "source" in sight.events()[-1]
    (True, None, False)
    """

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self._lock = threading.RLock()
        self._whole, self._part = _Follower(), _Blindfolded()

    @property
    def blind(self) -> bool:
        """Whether something is withheld."""
        return self.campaign.blind

    def follow(self) -> tuple[Ledger, int]:
        """The ledger up to date, and how many events it has seen."""
        follower = self._part if self.blind else self._whole
        with self._lock:
            return follower.follow(self.campaign.log)

    def status(self) -> Status:
        """How the campaign stands."""
        status = self.campaign.status()
        # How far the learner is, beside how much was asked for, would tell how many rows were drawn otherwise.
        return replace(status, phase=None, note=None, insurance=None) if self.blind else status

    def events(self, id: str | None = None) -> list[Event]:
        """All events, or those of one item, in order."""
        if not self.blind:
            return self.campaign.history(id)
        names = (id, self.follow()[0].groups.first(id)) if id is not None else ()
        return [event for event in blinded(self.campaign.log.read()) if id is None or event.get("id") in names]

    def records(self) -> list[dict[str, Any]]:
        """One record per item that was asked for."""
        if not self.blind:
            return self.campaign.records()
        return [
            {key: value for key, value in record.items() if key not in _HIDDEN_IN_RECORDS}
            for record in records_of(_filled(blinded(self.campaign.log.read())), self.follow()[0])
        ]

    def trace(self) -> Trace:
        """What was asked and found so far; one batch without a seed as long as something is withheld."""
        trace = self.campaign.trace()
        if not self.blind:
            return trace
        return replace(trace, explored=trace.explored & False, batch=trace.batch * 0 + 1, seed=0)


class _Follower:
    """A ledger that is brought up to date with a log."""

    def __init__(self) -> None:
        self._ledger = Ledger()
        self._read = self._seen = 0

    def follow(self, log: EventLog) -> tuple[Ledger, int]:
        for event in log.read(self._read):
            self._read = event["seq"] + 1
            self._take(event)
        return self._ledger, self._seen

    def _take(self, event: Event) -> None:
        self._ledger.apply(event)
        self._seen += 1


class _Blindfolded(_Follower):
    """One that is told no more than people are."""

    def _take(self, event: Event) -> None:
        for seen in _filled(blinded([event], self._seen), self._ledger.next_number):
            self._ledger.take(seen)
            self._seen += 1


def _filled(events: Iterable[Event], number: int = 0) -> Iterator[Event]:
    """Asks with what a ledger needs to know of them, the same for all."""
    for event in events:
        if event["event"] == "asked":
            yield {**event, "number": number, "source": BLIND, "batch": 0}
            number += 1
        else:
            yield event
