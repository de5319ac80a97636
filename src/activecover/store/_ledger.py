"""What the events add up to: who has which item, and what was said of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

from activecover.errors import StoreError
from activecover.store._log import Event

State = Literal["open", "leased", "positive", "negative", "skipped", "unsure"]


@dataclass(slots=True)
class Ask:
    """The latest time an item was asked for, and what has come of it."""

    number: int
    id: str
    source: str
    batch: int
    by: str
    expires: float | None
    state: State = "leased"

    @property
    def settled(self) -> bool:
        """Whether it has a label."""
        return self.state in ("positive", "negative")


class Ledger:
    """A fold over the events of a log.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ledger.apply({"seq": 0, "event": "asked", "number": 0, "id": "a", "source": "explore", "batch": 0, "by": "me"})
    >>> ledger.apply({"seq": 1, "event": "told", "id": "a", "label": 1, "by": "me"})
    >>> ledger.asks["a"].state
    'positive'
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.created: Event | None = None
        self.known: list[str] = []
        self.asks: dict[str, Ask] = {}
        self.next_number = 0
        self.next_batch = 0
        # Dictionaries as ordered sets: the latest decision is last, and any one can be dropped at once.
        self._decisions: dict[str, None] = {}
        self._in_state: dict[State, dict[str, Ask]] = {state: {} for state in get_args(State)}
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Take in one event."""
        kind = event["event"]
        change = getattr(self, f"_on_{kind}", None)
        if change is None:
            raise StoreError(f"event {event.get('seq')}: unknown kind {kind!r}; was it written by a newer version?")
        try:
            change(event)
        except (KeyError, TypeError) as wrong:
            raise StoreError(f"event {event.get('seq')} ({kind}) does not follow from those before it: {wrong}") from wrong

    def with_state(self, *states: State) -> list[Ask]:
        """The asks in some states, in the order asked."""
        chosen = [ask for state in states for ask in self._in_state[state].values()]
        return sorted(chosen, key=lambda ask: ask.number)

    def count(self, *states: State) -> int:
        """How many asks are in some states."""
        return sum(len(self._in_state[state]) for state in states)

    def last_decisions(self, count: int, by: str | None) -> list[str]:
        """The items decided on last, latest first; those of one person if given."""
        mine = (name for name in reversed(self._decisions) if by is None or self.asks[name].by == by)
        return list(islice(mine, count))

    def _on_created(self, event: Event) -> None:
        self.created = event

    def _on_known(self, event: Event) -> None:
        self.known.append(event["id"])

    def _on_asked(self, event: Event) -> None:
        if event["id"] in self.asks:
            self._move(self.asks[event["id"]], "open")
        ask = Ask(event["number"], event["id"], event["source"], event["batch"], event["by"], event.get("expires"))
        self.asks[ask.id] = ask
        self._move(ask, "leased")
        self.next_number = ask.number + 1
        self.next_batch = max(self.next_batch, ask.batch + 1)

    def _on_told(self, event: Event) -> None:
        self._decide(event, "positive" if event["label"] else "negative")

    def _on_skipped(self, event: Event) -> None:
        self._decide(event, "skipped")

    def _on_unsure(self, event: Event) -> None:
        self._decide(event, "unsure")

    def _on_released(self, event: Event) -> None:
        self._move(self.asks[event["id"]], "open")
        self._decisions.pop(event["id"], None)

    def _on_undone(self, event: Event) -> None:
        ask = self.asks[event["id"]]
        self._move(ask, "leased")
        ask.by, ask.expires = event["by"], event.get("expires")
        self._decisions.pop(ask.id, None)

    def _decide(self, event: Event, state: State) -> None:
        ask = self.asks[event["id"]]
        self._move(ask, state)
        ask.by = event["by"]
        self._decisions.pop(ask.id, None)
        self._decisions[ask.id] = None

    def _move(self, ask: Ask, state: State) -> None:
        self._in_state[ask.state].pop(ask.id, None)
        ask.state = state
        self._in_state[state][ask.id] = ask
