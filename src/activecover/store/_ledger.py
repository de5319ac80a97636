"""What the events add up to: who has which item, and what was said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, get_args

from activecover.errors import LARGEST_COUNT, StoreError
from activecover.store._log import Event

State = Literal["open", "leased", "positive", "negative", "skipped", "unsure"]
#: Of the events; a log of another format is refused.
FORMAT = 1


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT


def _time(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


#: What each kind of event must hold. Whatever reads events may rely on it.
_FIELDS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "created": {
        "rows": _count,
        "pool": lambda value: isinstance(value, dict) and all(map(_text, map(value.get, ("ids", "vectors")))),
        "outside": lambda value: value is None or _text(value),
        "learner": _text,
        "seed": _count,
        "explore": lambda value: _count(value) or (isinstance(value, list) and all(map(_count, value))),
    },
    "known": {"id": _text},
    "asked": {
        "number": _count, "id": _text, "source": _text, "batch": _count, "by": _text, "expires": _time,
    },
    "told": {"id": _text, "label": lambda value: value in (0, 1), "by": _text},
    "skipped": {"id": _text, "by": _text},
    "unsure": {"id": _text, "by": _text},
    "released": {"id": _text, "by": _text},
    "undone": {"id": _text, "by": _text, "expires": _time},
}  # fmt: skip
_NEED_AN_ASK = {"told", "skipped", "unsure", "released", "undone"}


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
    probability: float | None = None
    open: int | None = None
    first: Ask | None = None

    @property
    def settled(self) -> bool:
        """Whether it has a label."""
        return self.state in ("positive", "negative")


class Ledger:
    """A fold over the events of a log.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ask = {"event": "asked", "number": 0, "id": "a", "source": "explore", "batch": 0, "by": "me"}
    >>> ledger.apply({"seq": 0, **ask})
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
        self.check(event)
        getattr(self, f"_on_{event['event']}")(event)

    def check(self, event: Event) -> None:
        """Refuse an event that is not one, or that does not follow from those before it."""
        kind, place = event["event"], f"event {event.get('seq')}"
        if kind not in _FIELDS:
            raise StoreError(f"{place}: unknown kind {kind!r}; was it written by a newer version?")
        if kind == "created" and event.get("format") != FORMAT:
            raise StoreError(f"{place}: the label log has format {event.get('format')}, this version reads {FORMAT}")
        for name, fits in _FIELDS[kind].items():
            if not fits(event.get(name)):
                raise StoreError(
                    f"{place} ({kind}): {name} {event.get(name)!r} is damaged; restore the log from a copy"
                )
        if kind in _NEED_AN_ASK and event["id"] not in self.asks:
            raise StoreError(f"{place} ({kind}): {event['id']!r} was never asked for; restore the log from a copy")
        if kind == "created" and (self.created or self.known or self.asks):
            raise StoreError(f"{place} ({kind}): a label log is created once, at its start; restore it from a copy")

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
        if earlier := self.asks.get(event["id"]):
            self._in_state[earlier.state].pop(earlier.id)
            self._decisions.pop(earlier.id, None)
        ask = Ask(event["number"], event["id"], event["source"], event["batch"], event["by"], event.get("expires"))
        ask.probability, ask.open = event.get("probability"), event.get("open")
        # Asking again is no new draw, unless a row that was chosen without chance had gone back unanswered.
        if earlier and not (earlier.state == "open" and (earlier.first or earlier).probability == 1):
            ask.first = earlier.first or earlier
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
