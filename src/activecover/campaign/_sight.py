"""What people may see of a campaign: while its promise is open, nothing that reveals which rows are control rows.

Everything shown is worked out from the log as :func:`blinded` gives it, in which every ask looks like every other.
So no figure, count, order or number made of it can reveal a control row, no matter what is added later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from activecover.campaign._items import BLIND, Status
from activecover.campaign._records import records_of
from activecover.campaign._snapshot import Bound, Snapshot, bound_of, counts_of, curve_of, people_of
from activecover.errors import ActiveCoverError
from activecover.store import Ask, EventLog, Ledger, Line, read_event
from activecover.trace import Trace

if TYPE_CHECKING:
    from activecover.campaign._campaign import Campaign

T = TypeVar("T")
#: The bound is worked out for at most this many labels: beyond, the command line does it.
_MOST_ASSESSED = 100_000
#: Kinds of events that happen to control rows at other times than to others, or not at all.
_LEFT_OUT = ("reached", "forgotten")
#: Fields that differ between control rows and others, or from which the control rows can be computed.
_HIDDEN = frozenset(
    ("source", "rule", "probability", "open", "nearest", "number", "position", "batch", "seed", "key", "explore")
)
_HIDDEN_IN_RECORDS = _HIDDEN | {"why"}


def blinded(lines: Iterable[Mapping[str, Any]], first: int = 0) -> Iterator[Line]:
    """Events as people see them who must not know the control rows, numbered from ``first``.

    Examples
    --------
    >>> asked = {"seq": 4, "event": "asked", "id": "a", "source": "control", "number": 3, "batch": 1, "by": "ann"}
    >>> list(blinded([asked, {"seq": 5, "event": "reached", "id": "a", "number": 4, "source": "learner"}]))
    [{'seq': 0, 'event': 'asked', 'id': 'a', 'by': 'ann'}]
    """
    for event in lines:
        if event["event"] not in _LEFT_OUT:
            yield {key: value for key, value in event.items() if key not in _HIDDEN} | {"seq": first}
            first += 1


class Sight:
    """A campaign as people may see it; it reads the log, and takes no turns.

    Parameters
    ----------
    campaign : Campaign
        Once its promise is kept, or if it has none that needs control rows, everything about it is visible.

    Examples
    --------
    >>> from activecover import Campaign, Pool
    >>> campaign = Campaign(Pool([[0.0], [1.0], [2.0]]), certify="0.5@0.5")
    >>> item = campaign.ask()[0]
    >>> sight = campaign.sight
    >>> sight.blind, sight.status().phase, "source" in sight.events()[-1]
    (True, None, False)
    """

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self._lock = threading.RLock()
        self._part = _Blindfolded()
        self._kept: dict[str, tuple[object, Any]] = {}

    @property
    def blind(self) -> bool:
        """Whether something is withheld."""
        return self.campaign.guarantee.blind

    def follow(self) -> tuple[Ledger, int]:
        """The ledger up to date, and how many events it has seen."""
        if not self.blind:
            with self.campaign.journal.view() as ledger:
                return ledger, self.campaign.journal.position
        with self._lock:
            return self._part.follow(self.campaign.log)

    @property
    def ledger(self) -> Ledger:
        """The ledger, up to date, as people may see it."""
        return self.follow()[0]

    def status(self) -> Status:
        """The status of the campaign."""
        status = self.campaign.status()
        # The learner's phase, beside the number of asks, would reveal how many rows were drawn in other ways.
        return replace(status, phase=None, note=None, insurance=None) if self.blind else status

    def snapshot(self, *, bound: bool = True) -> Snapshot:
        """What a page shows; with the ``bound`` on recall for people who may see it."""
        ledger, pool = self.ledger, self.campaign.pool
        return Snapshot(
            status=self.status(),
            counts=counts_of(ledger, len(pool)),
            grouped=len(ledger.groups),
            curve=self._once("curve", lambda: curve_of(ledger, pool)),
            people=people_of(ledger),
            agreement=self.campaign.agreement(),
            bound=self._once("bound", self._bound) if bound else None,
        )

    def events(self, id: str | None = None) -> list[Line]:
        """All events, or those of one item, in order."""
        if not self.blind:
            return self.campaign.history(id)
        names = (id, self.ledger.groups.first(id)) if id is not None else ()
        return [line for line in blinded(self.campaign.log.read()) if id is None or line.get("id") in names]

    def records(self) -> list[dict[str, Any]]:
        """One record per item that was asked for."""
        if not self.blind:
            return self.campaign.records()
        return [
            {key: value for key, value in record.items() if key not in _HIDDEN_IN_RECORDS}
            for record in records_of(_filled(blinded(self.campaign.log.read())), self.ledger)
        ]

    def trace(self) -> Trace:
        """What was asked and found so far; one batch without a seed as long as something is withheld."""
        trace = self.campaign.trace()
        if not self.blind:
            return trace
        return replace(trace, explored=trace.explored & False, batch=trace.batch * 0 + 1, seed=0)

    def withheld(self, names: Sequence[str]) -> set[str]:
        """Of some items, those whose contents may no longer be shown."""
        return self.campaign.eraser.withheld(names)

    def served(self, name: str, who: str) -> bool:
        """Whether someone has or had an item."""
        ask = self.ledger.asks.get(name)
        if ask is None:
            return False
        return who in ask.also or who in ask.opinions or (ask.by == who and ask.state != "open")

    def counts(self) -> dict[str, int]:
        """How many items are in which state."""
        return counts_of(self.ledger, len(self.campaign.pool))

    def counts_for(self, who: str) -> dict[str, int]:
        """How many items someone has, and how many they answered in which way: nothing of other people's answers."""
        with self._lock, self.campaign.journal.lock:
            ledger = self.ledger
            said = [ask.opinions[who] for ask in ledger.asks.values() if who in ask.opinions]
            skipped, unsure = (
                sum(ask.by == who for ask in ledger.with_state(state)) for state in ("skipped", "unsure")
            )
            declined = sum(who in ask.declined and who not in ask.opinions for ask in ledger.asks.values())
            leased = sum(ask.by == who for ask in ledger.with_state("leased"))
            leased += sum(who in ask.also for ask in ledger.with_state("waiting", "conflict"))
        return {
            "rows": len(self.campaign.pool), "positive": sum(said), "negative": len(said) - sum(said),
            "leased": leased, "skipped": skipped + declined, "unsure": unsure,
        }  # fmt: skip

    def states(self) -> list[tuple[int, str]]:
        """The rows that were asked for, and the state of each."""
        with self._lock, self.campaign.journal.lock:
            ledger = self.ledger
            asks = [ask for ask in ledger.asks.values() if ask.state != "open"]
            names = [ask.id for ask in asks] + list(ledger.known)
            states = [str(ask.state) for ask in asks] + ["positive"] * len(ledger.known)
        return list(zip(self.campaign.pool.rows(names).tolist(), states, strict=True))

    def upcoming(self, k: int) -> list[int]:
        """The learner's next rows, if they may be known: rows that are missing among them are control rows."""
        return [] if self.blind else self.campaign.proposals.upcoming(k)

    def decisions(self) -> list[Ask]:
        """The items that were asked for, latest first."""
        with self._lock, self.campaign.journal.lock:
            asks = sorted(self.ledger.asks.values(), key=lambda ask: -ask.number)
        return [ask for ask in asks if ask.state != "open"]

    def _bound(self) -> Bound | None:
        """The bound on recall and its course; None if there is none."""
        labels = self.ledger.count("positive", "negative")
        if not 0 < labels <= _MOST_ASSESSED:
            return None
        try:
            assessment, bounds = self.campaign.assess(), self.campaign.guarantee.bounds()
        except (ActiveCoverError, ArithmeticError):
            return None
        if self.blind:
            # Owners may see the bound, but they may label too: `assess` tells them about the control sample.
            reasoning = self.campaign.guarantee.in_words() or ""
            assessment = replace(assessment, reasoning=reasoning, price=None, recall_estimate=None)
        return bound_of(assessment, bounds, labels)

    def _once(self, what: str, make: Callable[[], T]) -> T:
        """What was made for this position of the log."""
        with self._lock:
            ledger, position = self.follow()
            # The ledger may be another one as soon as everything may be seen.
            state = position, id(ledger)
            if what not in self._kept or self._kept[what][0] != state:
                self._kept[what] = state, make()
            found: T = self._kept[what][1]
            return found


class _Blindfolded:
    """A ledger that follows a log, and is told no more than people are."""

    def __init__(self) -> None:
        self._ledger = Ledger()
        self._read = self._seen = 0

    def follow(self, log: EventLog) -> tuple[Ledger, int]:
        """The ledger up to date, and how many events it has seen."""
        for line in log.read(self._read):
            self._read += 1
            for seen in _filled(blinded([line], self._seen), self._ledger.next_number):
                self._ledger.take(read_event(seen))
                self._seen += 1
        return self._ledger, self._seen


def _filled(lines: Iterable[Mapping[str, Any]], number: int = 0) -> Iterator[Line]:
    """Asks with what a ledger needs to know of them, the same for all."""
    for event in lines:
        if event["event"] == "asked":
            yield {**event, "number": number, "source": BLIND, "batch": 0}
            number += 1
        elif event["event"] == "created":
            yield {**event, "seed": 0, "explore": 0}
        else:
            yield dict(event)
