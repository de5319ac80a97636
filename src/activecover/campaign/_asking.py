"""Asking: who gets which item, for how long, and when there is nothing left to ask for."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from activecover.campaign._certifying import Certifying
from activecover.campaign._checks import check_person
from activecover.campaign._items import BLIND, Foreseen, Item, Why
from activecover.errors import InputError, StoreError
from activecover.frontier import NO_KEY
from activecover.learners import Proposal
from activecover.store import Ask, Event, Ready, SharedLog


class Asking(Certifying):
    """Leases of items to people."""

    def ask(self, k: int = 1, by: str = "me", *, shown: str | None = None, avoid: Collection[str] = ()) -> list[Item]:
        """Lease up to ``k`` items to someone; asking again returns the same ones until they are told.

        An item that ``ahead`` has ``shown`` to them already is the first new one, unless somebody has it. Items to
        ``avoid``, such as those that were shown to others, are no new ones.

        Items set aside (skipped, unsure) come back when nothing else is left. An empty list means that
        the pool is through or that a limit has been reached: :meth:`status` says which.
        """
        if not isinstance(k, int | np.integer) or k < 1:
            raise InputError(f"ask for a number of items from 1, not {k!r}")
        check_person(by)
        with self._turn():
            items = self._ask_once(int(k), by, shown, avoid)
        return self._waited(int(k), by, avoid) if items is None else items

    def _waited(self, k: int, by: str, avoid: Collection[str] = ()) -> list[Item]:
        """What someone gets once the process that runs the learner has something for them."""
        assert isinstance(self.log, SharedLog)
        patience = Patience(self._patience)
        while True:
            # In a turn of its own, which need not be synced.
            self.log.want(by, k)
            self._wait(by, patience)
            with self._turn():
                items = self._ask_once(k, by, avoid=avoid)
            if items is not None:
                return items

    def _ask_once(self, k: int, by: str, shown: str | None = None, avoid: Collection[str] = ()) -> list[Item] | None:
        """What someone has, filled up with new items; None where those have to be waited for."""
        self._expire()
        mine = self._with(by)[:k]
        missing = min(k - len(mine), self._allowance())
        new = self._lease_new(missing, by, shown, avoid) if missing > 0 else []
        return None if new is None else [self._item(ask) for ask in [*mine, *new]]

    def _wait(self, by: str, patience: Patience) -> None:
        """Wait until the brain has looked at what someone wants, or until it is for this process to be the brain."""
        assert isinstance(self.log, SharedLog)
        looks = 0
        while self.log.is_wanted(by):
            if patience.is_over():
                raise StoreError(
                    f"{self.log}: no proposals after {self._patience:g} s: the process that makes them hangs"
                )
            # The brain mostly lives, so its death is looked for less often than its answer.
            if looks % 10 == 9 and self.log.try_brain():
                return
            time.sleep(0.002 if looks < 5 else 0.01)
            looks += 1

    def _with(self, by: str) -> list[Ask]:
        """What someone has on the table."""
        mine = [ask for ask in self._ledger.with_state("leased") if ask.by == by]
        if self._ledger.overlap > 1:
            mine += [ask for ask in self._ledger.with_state("waiting", "conflict") if by in ask.also]
        return self._not_erased(mine)

    def _lease_new(self, k: int, by: str, shown: str | None, avoid: Collection[str]) -> list[Ask] | None:
        """Lease up to ``k`` items that nobody has; None where they have to be waited for."""
        events = self._second_opinions(k, by)
        self._write(events)
        asks = [self._ledger.asks[event["id"]] for event in events]
        if shown is not None and len(asks) < k:
            asks += self._lease_shown(shown, by)
        if len(asks) < k:
            proposed = self._lease_proposed(k - len(asks), by, avoid)
            if proposed is None and not asks:
                return None
            asks += proposed or []
        self._awaited = None
        if len(asks) == 1 and self._think_ahead:
            held = self._held()
            self._think(asks[0], by, held[held != self.pool.rows([asks[0].id])[0]])
        return asks

    def _second_opinions(self, k: int, by: str) -> list[Event]:
        """Items that others have labelled and that need this person's opinion too."""
        if self._ledger.overlap == 1:
            return []
        return self._shared([ask for ask in self._wanting(by) if by not in ask.declined][:k], by)

    def _wanting(self, by: str) -> list[Ask]:
        """Items that still need an opinion which this person may give."""
        waiting = self._not_erased(self._ledger.with_state("waiting"))
        return [
            ask for ask in waiting
            if by not in ask.opinions and by not in ask.also
            and len(ask.opinions) + len(ask.also) < self._ledger.overlap
        ]  # fmt: skip

    def _shared(self, asks: Sequence[Ask], by: str) -> list[Event]:
        return [{"event": "shared", "id": ask.id, "by": by, "expires": self._expiry()} for ask in asks]

    def _lease_proposed(self, k: int, by: str, avoid: Collection[str]) -> list[Ask] | None:
        """Lease what the learner proposes; None where another process runs it and has nothing ready."""
        brain = self._own_brain()
        if brain is not None:
            held = self._held()
            proposal = brain.propose(k, np.union1d(held, self.pool.rows(list(avoid))) if avoid else held)
            self._note = proposal.unavailable
            events = self._events_of(proposal, by)
        else:
            assert isinstance(self.log, SharedLog)
            events = self._events_of_ready(self._take_ready(self.log, k, avoid), by)
            if not events and self._unasked() > 0:
                return None
        if len(events) < k and self._unasked() - len(events) <= 0:
            events += self._second_round(k - len(events), by, len(events))
        self._write(events)
        return [self._ledger.asks[event["id"]] for event in events]

    def _lease_shown(self, name: str, by: str) -> list[Ask]:
        """Lease an item that someone has seen already: one label of somebody else may be missing in its choice."""
        proposal = self._shown.pop(name, None)
        if proposal is None or self._is_taken(name) or self._own_brain() is None:
            return []
        self._write(self._events_of(proposal, by))
        return [self._ledger.asks[name]]

    def _take_ready(self, log: SharedLog, k: int, avoid: Collection[str] = ()) -> list[Ready]:
        """Proposals of the brain that are fresh enough: with so many people, each may miss one label of each other."""
        oldest = self._ledger.changes - (self._ledger.active() - 1)
        taken: list[Ready] = []
        while len(taken) < k and (more := log.take_ready(k - len(taken), oldest)):
            # The brain's own people lease past what it has laid out; what is to be avoided it lays out again.
            taken += [one for one in more if one.id not in avoid and not self._is_taken(one.id)]
        return taken

    def _is_taken(self, name: str) -> bool:
        ask = self._ledger.asks.get(name)
        if self._ledger.groups.first(name) != name:
            return True
        # A control row is taken, but the brain must come to know that its learner has come by it.
        taken = ask is not None and ask.state != "open" and not ask.hidden
        return taken or bool(self.pool.withdrawn[self.pool.rows([name])[0]])

    def _events_of(self, proposal: Proposal, by: str) -> list[Event]:
        self._remember_why(proposal)
        return self._events_of_ready(self._ready_of(proposal), by)

    def _events_of_ready(self, proposals: Sequence[Ready], by: str) -> list[Event]:
        unlabelled = self._unasked()
        events = []
        for place, one in enumerate(proposals):
            event = self._asked(one.id, one.source, one.probability, by, self._ledger.next_number + place)
            event["open"] = unlabelled - place
            if one.nearest is not None:
                event["nearest"] = one.nearest
            events.append(event)
        return events

    def _second_round(self, k: int, by: str, asked: int) -> list[Event]:
        """Items set aside come back, skipped ones first, when nothing else is left."""
        aside = self._not_erased([*self._ledger.with_state("skipped"), *self._ledger.with_state("unsure")])[:k]
        again = [
            self._asked(ask.id, ask.source, None, by, self._ledger.next_number + asked + place)
            for place, ask in enumerate(aside)
        ]
        declined = [ask for ask in self._wanting(by) if by in ask.declined] if self._ledger.overlap > 1 else []
        return again + self._shared(declined[: k - len(again)], by)

    def _asked(self, name: str, source: str, chance: float | None, by: str, number: int) -> Event:
        return {
            "event": "asked",
            "number": number,
            "id": name,
            "source": source,
            "rule": self.rule,
            "probability": chance,
            "position": len(self.log),
            "batch": self._ledger.next_batch,
            "by": by,
            "expires": self._expiry(),
        }

    def _found(self) -> int:
        """How many items of the pool were found positive, duplicates included."""
        return self._ledger.count("positive") + self._ledger.duplicates("positive")

    def _expire(self) -> None:
        now = self._clock()
        late = [ask for ask in self._ledger.with_state("leased") if ask.expires is not None and ask.expires <= now]
        expired = [(ask.id, ask.by) for ask in late]
        if self._ledger.overlap > 1:
            for ask in self._ledger.with_state("waiting", "conflict"):
                expired += [(ask.id, who) for who, end in ask.also.items() if end is not None and end <= now]
        self._write([{"event": "released", "id": name, "by": who, "why": "expired"} for name, who in expired])

    def _expiry(self) -> float | None:
        return None if self._lease is None else self._clock() + self._lease

    def _allowance(self) -> int:
        """How many more items the limits let us ask for."""
        if self._certified() is not None:
            return 0
        found = self._found()
        if self.target is not None and found >= self.target:
            return 0
        if self.budget is None:
            return len(self.pool)
        return max(0, self.budget - self._ledger.count("positive", "negative", "leased"))

    def _think(self, ask: Ask, by: str, held: npt.NDArray[np.int64]) -> None:
        """Find what follows either answer to an item, while a person looks at it."""
        # With several people at work something else comes in between: the thought would be in vain.
        if self._think_ahead and self._brain is not None and self._ledger.active() == 1:
            self._brain.think(ask, held, self._foreseen)
            self._awaited = self._moment(ask.id, by)

    def _moment(self, id: str, by: str) -> tuple[str, str, int, int, int] | None:
        """Who has which item, and how far things are; none where more than the answer decides on what is next."""
        if self.budget is not None or self.target is not None:
            return None
        if self._ledger.overlap > 1 or len(self._ledger.groups):
            return None
        return id, by, self._position, self.pool.erasures, len(self.pool)

    def _foreseen(self, proposal: Proposal) -> Foreseen:
        """What may come next, as people see it; made while someone looks at an item."""
        row, why = int(proposal.rows[0]), Why.of(proposal, 0)
        nearest = None if why.nearest == NO_KEY else self._named(why.nearest)
        source = "explore" if proposal.explored else "learner"
        name = self.pool.id(row)
        others = tuple(self._ledger.groups.others(name))
        return Foreseen(Item(name, self.pool.content(row), source, why.far, nearest, others, why.because), proposal)

    def _item(self, ask: Ask) -> Item:
        row = self.pool.row(ask.id)
        if self._is_blind():
            return Item(ask.id, self.pool.content(row), BLIND)
        why = self._why.get(ask.id, Why())
        nearest = self._nearest_of(ask.id) or ask.nearest
        others = tuple(self._ledger.groups.others(ask.id))
        return Item(ask.id, self.pool.content(row), ask.source, why.far, nearest, others, why.because)


class Patience:
    """Time that we were awake: a machine that slept, or was stopped, does not use it up.

    Parameters
    ----------
    seconds : float
        How much of it there is.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._looked = time.monotonic()

    def is_over(self) -> bool:
        """Whether it is used up; to be asked often."""
        now = time.monotonic()
        self._left -= min(now - self._looked, 1.0)
        self._looked = now
        return self._left < 0
