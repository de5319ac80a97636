"""What the events of a log add up to: which items are leased to whom, and how each was labelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, get_args

from activecover.store import _events as events
from activecover.store._events import Event, damaged, read_event
from activecover.store._groups import Groups

State = Literal["open", "leased", "positive", "negative", "skipped", "unsure", "waiting", "conflict"]
_NEED_AN_ASK = (
    events.Told, events.Skipped, events.Unsure, events.Released, events.Undone, events.Shared, events.Adjudicated,
    events.Confirmed, events.Reached,
)  # fmt: skip


@dataclass(slots=True)
class Ask:
    """The latest ask for an item, and its outcome."""

    number: int
    id: str
    source: str
    batch: int
    by: str
    expires: events.Time | None
    state: State = "leased"
    probability: events.Time | None = None
    open: int | None = None
    #: The draw that counts, if the item was asked for again.
    first: Ask | None = None
    #: Each person's opinion, in the order in which they gave them.
    opinions: dict[str, bool] = field(default_factory=dict)
    #: Who else has it, for an opinion of their own, and until when.
    also: dict[str, events.Time | None] = field(default_factory=dict)
    #: Who decided between opinions that differ.
    judge: str | None = None
    #: Who would rather not give a second opinion on it, as long as there is anything else.
    declined: set[str] = field(default_factory=set)
    note: str | None = None
    nearest: str | int | None = None
    #: Who looked at it a second time and agreed.
    confirmed: str | None = None
    #: Of a control row: the number under which the learner reached it, and whether that was in its own sample.
    reached: int | None = None
    reached_by: str | None = None

    @property
    def hidden(self) -> bool:
        """Whether the learner must not know of it: a control row that it has not reached itself."""
        return self.source == "control" and self.reached is None

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

    def __init__(self, log: Iterable[Event | Mapping[str, Any]] = ()) -> None:
        self.created: events.Created | None = None
        #: The learner that proposes from now on, since the campaign was created.
        self.learner_changed: events.LearnerChanged | None = None
        self.known: dict[str, None] = {}
        self.asks: dict[str, Ask] = {}
        self.next_number = 0
        self.next_batch = 0
        #: How often a label came, went or changed, or an item went back: the age of a proposal is counted in these.
        self.changes = 0
        #: Of these changes, how many were control rows with a label that the learner reached.
        self.reached = 0
        #: How often something that had been settled was changed, or the pool was: what was counted before is void.
        self.revisions = 0
        #: How many rows were asked for by each source; what was asked again counts once.
        self.sources: Counter[str] = Counter()
        #: Control rows that the learner has not reached.
        self.hidden = 0
        #: When each person was last heard of.
        self.people: dict[str, float] = {}
        self.withdrawn: dict[str, None] = {}
        self.forgotten: dict[str, None] = {}
        #: Duplicates, and how many rows of the pool have been looked at for them.
        self.groups = Groups()
        self.grouped_rows = 0
        #: Rows and hashes of the pool when it last grew.
        self.grown: events.Grown | None = None
        #: A hash of the known positives from outside, since some were added.
        self.outside: str | None = None
        self.last_at = 0.0
        #: What each request that bears a name has written: kind, item, label.
        self.requests: dict[str, list[tuple[str, str | None, int | None]]] = {}
        # Dictionaries as ordered sets: the latest decision is last, and any one can be dropped at once.
        self._decisions: dict[tuple[str, str], None] = {}
        self._in_state: dict[State, dict[str, Ask]] = {state: {} for state in get_args(State)}
        #: How many duplicates the asks in each state stand for.
        self._duplicates: dict[State, int] = dict.fromkeys(get_args(State), 0)
        for event in log:
            self.apply(event)

    def apply(self, event: Event | Mapping[str, Any]) -> None:
        """Check an event, or a line of a log, and fold it in."""
        found = event if isinstance(event, Event) else read_event(event)
        self.check(found)
        self.take(found)

    def take(self, event: Event) -> None:
        """Fold in an event that was checked."""
        self.last_at = max(self.last_at, event.at or 0.0)
        if event.by is not None and not (isinstance(event, events.Released) and event.why == "expired"):
            self.people[event.by] = self.last_at
        if event.request is not None:
            label = event.label if isinstance(event, events.Told | events.Adjudicated) else None
            self.requests.setdefault(event.request, []).append((event.kind, event.id, label))
        _FOLDS[type(event)](self, event)

    def check(self, event: Event) -> None:
        """Refuse an event that does not follow from those before it."""
        if isinstance(event, _NEED_AN_ASK) and event.id not in self.asks:
            raise damaged(event.seq, event.kind, f"{event.id!r} was never asked for")
        if isinstance(event, events.Created) and (self.created or self.known or self.asks):
            raise damaged(event.seq, event.kind, "a label log is created once, at its start")

    def with_state(self, *states: State) -> list[Ask]:
        """The asks in some states, in the order asked."""
        chosen = [ask for state in states for ask in self._in_state[state].values()]
        return sorted(chosen, key=lambda ask: ask.number)

    def count(self, *states: State) -> int:
        """How many asks are in some states."""
        return sum(len(self._in_state[state]) for state in states)

    def duplicates(self, *states: State) -> int:
        """How many items the asks in some states stand for, besides themselves."""
        return sum(self._duplicates[state] for state in states)

    def last_decisions(self, count: int, by: str | None) -> list[str]:
        """The items decided on last, latest first; those of one person if given."""
        return [name for name, _ in self.last_deciders(count, by)]

    def last_deciders(self, count: int, by: str | None) -> list[tuple[str, str]]:
        """The items decided on last, and who did."""
        mine = (pair for pair in reversed(self._decisions) if by is None or pair[1] == by)
        return list(islice(mine, count))

    def is_known(self, name: str) -> bool:
        """Whether an item, or one that it stands for, was known to be positive from the start."""
        return name in self.known or any(other in self.known for other in self.groups.others(name))

    @property
    def forgets(self) -> bool:
        """Whether the campaign forgets its negatives."""
        return self.created is not None and bool(self.created.forgets)

    @property
    def learner(self) -> str:
        """The learner that proposes, by name and version."""
        chosen = self.learner_changed or self.created
        return "" if chosen is None else chosen.learner

    @property
    def overlap(self) -> int:
        """How many people have to give the same label before it counts."""
        return 1 if self.created is None else self.created.overlap

    def active(self, seconds: float = 600.0) -> int:
        """How many people were heard of lately; one at least."""
        return max(1, sum(at >= self.last_at - seconds for at in self.people.values()))

    def _on_created(self, event: events.Created) -> None:
        self.created = event

    def _on_learner_changed(self, event: events.LearnerChanged) -> None:
        self.learner_changed = event
        self.changes += 1

    def _on_outside(self, event: events.Outside) -> None:
        self.outside = event.outside

    def _on_known(self, event: events.Known) -> None:
        self.known[event.id] = None

    def _on_asked(self, event: events.Asked) -> None:
        if earlier := self.asks.get(event.id):
            self._drop(earlier)
            self._undecide(earlier.id)
        else:
            self.sources[event.source] += 1
        ask = Ask(event.number, event.id, event.source, event.batch, event.by, event.expires)
        ask.probability, ask.open = event.probability, event.open
        # Asking again is no new draw, unless a row that was chosen without chance had gone back unanswered.
        if earlier and not (earlier.state == "open" and (earlier.first or earlier).probability == 1):
            ask.first = earlier.first or earlier
        if earlier and ask.source == "control":
            ask.reached, ask.reached_by = earlier.reached, earlier.reached_by
        self.hidden += ask.hidden - (earlier is not None and earlier.hidden)
        ask.nearest = event.nearest
        self.asks[ask.id] = ask
        self._move(ask, "leased")
        self.next_number = ask.number + 1
        self.next_batch = max(self.next_batch, ask.batch + 1)

    def _on_reached(self, event: events.Reached) -> None:
        """The learner has reached a control row by itself: from now on it is one of its own asks."""
        ask = self.asks[event.id]
        self.hidden -= ask.hidden
        ask.reached, ask.reached_by = event.number, event.source
        self.next_number = event.number + 1
        self.changes += ask.settled
        self.reached += ask.settled

    def _on_told(self, event: events.Told) -> None:
        ask, label = self.asks[event.id], bool(event.label)
        self.revisions += ask.settled
        if self.overlap == 1:
            # One opinion is enough, and the latest counts: people with an earlier one have nothing to take back.
            self._undecide(ask.id)
            ask.opinions.clear()
        self._unjudge(ask)
        ask.opinions[event.by] = label
        ask.note = ask.note if event.note is None else event.note
        ask.confirmed = None
        self._decide(event, self._verdict(ask))

    def _on_adjudicated(self, event: events.Adjudicated) -> None:
        ask = self.asks[event.id]
        self.revisions += ask.settled
        self._unjudge(ask)
        self._decide(event, "positive" if event.label else "negative")
        ask.judge, ask.confirmed = event.by, None

    def _on_shared(self, event: events.Shared) -> None:
        self.asks[event.id].also[event.by] = event.expires

    def _on_skipped(self, event: events.Skipped) -> None:
        self._set_aside(event, "skipped")

    def _on_unsure(self, event: events.Unsure) -> None:
        self._set_aside(event, "unsure")

    def _on_released(self, event: events.Released) -> None:
        ask = self.asks[event.id]
        if event.by in ask.also:
            del ask.also[event.by]
            return
        self._undecide(ask.id)
        ask.opinions.clear()
        self._move(ask, "open")
        # What was proposed while someone had it rests on less than is free now.
        self.changes += 1

    def _on_undone(self, event: events.Undone) -> None:
        ask = self.asks[event.id]
        was_settled, ask.confirmed = ask.settled, None
        self.revisions += was_settled
        if self.overlap == 1:
            self._undecide(ask.id)
            ask.opinions.clear()
        if ask.judge == event.by:
            # Taken back by who had decided between opinions; those stand, their own one too.
            self._unjudge(ask)
            self._move(ask, self._verdict(ask))
            self.changes += was_settled
            return
        self._unjudge(ask)
        self._decisions.pop((ask.id, event.by), None)
        ask.opinions.pop(event.by, None)
        if ask.opinions:
            # The others' opinions stand; this person is to say again.
            ask.also[event.by] = event.expires
            self._move(ask, self._verdict(ask))
        else:
            self._move(ask, "leased")
            ask.by, ask.expires = event.by, event.expires
        self.changes += was_settled

    def _on_confirmed(self, event: events.Confirmed) -> None:
        self.asks[event.id].confirmed = event.by

    def _on_grouped(self, event: events.Grouped) -> None:
        for first, *others in event.groups:
            with self._regrouping(first):
                self.groups.join(first, others)
        self.grouped_rows = event.rows

    def _on_ungrouped(self, event: events.Ungrouped) -> None:
        self._take_out(event.id)

    def _on_withdrawn(self, event: events.Withdrawn) -> None:
        name = event.id
        self.withdrawn[name] = None
        self.revisions += 1
        # Who was labelled stands for the others even when erased; else the next of them does from now on.
        labelled = name in self.known or (name in self.asks and self.asks[name].settled)
        if not (labelled and self.groups.first(name) == name):
            self._take_out(name)

    def _take_out(self, name: str) -> None:
        with self._regrouping(self.groups.first(name)):
            self.groups.leave(name)

    @contextmanager
    def _regrouping(self, first: str) -> Iterator[None]:
        """While a group changes, what is counted by it does too."""
        self.revisions += 1
        ask = self.asks.get(first)
        if ask is not None:
            self._drop(ask)
        yield
        if ask is not None:
            self._put(ask)
            self.changes += ask.settled

    def _on_forgotten(self, event: events.Forgotten) -> None:
        self.forgotten[event.id] = None

    def _on_grown(self, event: events.Grown) -> None:
        self.grown = event
        self.revisions += 1

    def _set_aside(self, event: events.Skipped | events.Unsure, state: State) -> None:
        ask = self.asks[event.id]
        if event.by in ask.also:
            # A second opinion that is not to be had from this person; the first one stands.
            del ask.also[event.by]
            ask.declined.add(event.by)
            return
        self._decide(event, state)

    def _verdict(self, ask: Ask) -> State:
        said = set(ask.opinions.values())
        if len(ask.opinions) < self.overlap:
            return "waiting"
        if len(said) > 1:
            return "conflict"
        return "positive" if said.pop() else "negative"

    def _decide(self, event: events.Told | events.Adjudicated | events.Skipped | events.Unsure, state: State) -> None:
        ask = self.asks[event.id]
        was = ask.state
        if was in ("skipped", "unsure"):
            # The person who put it aside has nothing left to take back.
            self._decisions.pop((ask.id, ask.by), None)
        ask.also.pop(event.by, None)
        self._move(ask, state)
        ask.by = event.by
        self._decisions.pop((ask.id, event.by), None)
        self._decisions[ask.id, event.by] = None
        self.changes += was != state and ("positive" in (was, state) or "negative" in (was, state))

    def _unjudge(self, ask: Ask) -> None:
        """The opinions count again, and not what someone decided between them."""
        judge, ask.judge = ask.judge, None
        if judge is not None:
            self._decisions.pop((ask.id, judge), None)
            if judge in ask.opinions:
                self._decisions[ask.id, judge] = None

    def _undecide(self, name: str) -> None:
        for who in (*self.asks[name].opinions, self.asks[name].by):
            self._decisions.pop((name, who), None)

    def _move(self, ask: Ask, state: State) -> None:
        self._drop(ask)
        ask.state = state
        if ask.id in self.withdrawn and not ask.settled:
            # Nobody can be asked for it any more: the next of its group has to be.
            self.groups.leave(ask.id)
        self._put(ask)

    def _drop(self, ask: Ask) -> None:
        if self._in_state[ask.state].pop(ask.id, None) is not None:
            self._duplicates[ask.state] -= len(self.groups.others(ask.id))

    def _put(self, ask: Ask) -> None:
        self._in_state[ask.state][ask.id] = ask
        self._duplicates[ask.state] += len(self.groups.others(ask.id))


#: What takes in each kind of event.
_FOLDS: dict[type[Event], Callable[[Ledger, Any], None]] = {
    kind: getattr(Ledger, f"_on_{name}") for name, kind in events.KINDS.items()
}
