"""A live campaign: ask for items by id, tell what they are, and never ask in vain."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import ActiveCoverError, InputError, StoreError, check_count
from activecover.frontier import NO_KEY
from activecover.learners import LEARNERS, Labels, Learner, Proposal, ThinkAhead, make_learner
from activecover.pool import Pool, Vectors
from activecover.store import FORMAT, Ask, Event, EventLog, Ledger, open_log
from activecover.trace import Trace

DEFAULT_LEARNER = "explore-commit"


@dataclass(frozen=True, slots=True)
class Item:
    """Something to decide on, and why it was chosen."""

    id: str
    content: dict[str, Any]
    source: str
    distance: float | None = None
    nearest: str | None = None

    @property
    def reason(self) -> str:
        """Why this item, in a few words."""
        if self.nearest is not None:
            return f"nearest to {self.nearest} (distance {self.distance:.4g})"
        return {"explore": "drawn at random", "given": "given by you"}.get(self.source, "ranked highest by the learner")


@dataclass(frozen=True, slots=True)
class Status:
    """How a campaign stands."""

    rows: int
    labelled: int
    positives: int
    negatives: int
    known: int
    leased: int
    skipped: int
    unsure: int
    unlabelled: int
    phase: str
    learner: str
    budget: int | None
    target: int | None
    stopped: str | None
    note: str | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Campaign:
    """Find the positives of a pool by asking for one label after the other.

    Parameters
    ----------
    pool : Pool
        The items.
    learner : str or Learner, optional
        What decides; ``explore-commit`` where neither this nor the log says otherwise.
    log : path or EventLog, optional
        Where the events go: a JSON Lines file, or memory where not given. A log that has events already
        is taken up where it ended; its settings then hold, and other ones given here are refused.
    seed : int, optional
        Of all randomness.
    explore : int or sequence of int, optional
        Rows to label at random first, or which; 100 by default.
    budget : int, optional
        Most labels to ask for.
    target : int, optional
        Stop once so many positives have been found.
    known : sequence of str
        Ids of items known to be positive.
    outside : array, optional
        Vectors of positives that are not in the pool. They must be given again when a log is taken up.
    lease : float, optional
        Seconds after which an item that was asked for and not answered goes back; never by default.
    think_ahead : bool
        Find the next item for either answer while a person looks at one, so that ``tell`` and ``ask``
        return at once. Items and their order are the same.
    clock : callable
        Where the time comes from.

    Examples
    --------
    >>> pool = Pool([[0.0], [9.0], [1.0], [8.0]], ids=["a", "b", "c", "d"])
    >>> campaign = Campaign(pool, explore=0, known=["a"])
    >>> [item.id for item in campaign.ask(2)]
    ['c', 'd']
    >>> campaign.tell(["c", "d"], [True, False])
    >>> campaign.status().positives
    1
    >>> campaign.undo()
    ['d']
    """

    def __init__(
        self,
        pool: Pool,
        learner: str | Learner | None = None,
        *,
        log: EventLog | str | Path | None = None,
        seed: int | None = None,
        explore: int | Sequence[int] | None = None,
        budget: int | None = None,
        target: int | None = None,
        known: Sequence[str] = (),
        outside: Any = None,
        lease: float | None = None,
        think_ahead: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        for name, value, least in (("budget", budget, 1), ("target", target, 1), ("seed", seed, 0)):
            check_count(name, value, least)
        if lease is not None and not lease >= 1:
            raise InputError(f"lease {lease!r}: give a number of seconds from 1")
        if isinstance(known, str):
            raise InputError(f"known {known!r}: give a list of ids")
        self.pool = pool
        self.budget = budget
        self.target = target
        self._lease = lease
        self._clock = clock
        self._think_ahead = think_ahead
        self._outside = None if outside is None else _encode_outside(pool, outside)
        settings = self._settings(learner, seed, explore)
        self._lock = threading.RLock()
        self._note: str | None = None
        self._why: dict[str, tuple[float, int]] = {}
        self.log = open_log(log)
        try:
            if len(self.log):
                with _naming(self.log):
                    self._take_up(learner, settings, known)
            else:
                self._create(learner, settings, known)
        except BaseException:
            self.log.close()
            raise

    def ask(self, k: int = 1, by: str = "me") -> list[Item]:
        """Lease up to ``k`` items to someone; asking again returns the same ones until they are told.

        Items set aside (skipped, unsure) come back when nothing else is left. An empty list means that
        the pool is through or that a limit has been reached: :meth:`status` says which.
        """
        if not isinstance(k, int | np.integer) or k < 1:
            raise InputError(f"ask for a number of items from 1, not {k!r}")
        _check_person(by)
        with self._lock:
            self._take_in_new_rows()
            self._expire()
            mine = [ask for ask in self._ledger.with_state("leased") if ask.by == by][:k]
            missing = min(k - len(mine), self._allowance())
            new = self._lease_new(missing, by) if missing > 0 else []
            return [self._item(ask) for ask in [*mine, *new]]

    def tell(self, ids: str | Sequence[str], labels: Any, by: str = "me") -> None:
        """Say of items whether they are positive; several at once are taken whole or not at all.

        An item need not have been asked for. Telling the same again changes nothing; to tell something
        else, undo first.
        """
        names = [ids] if isinstance(ids, str) else list(ids)
        values = [labels] if isinstance(ids, str) else list(_sequence(labels))
        if len(names) != len(values):
            raise InputError(f"{len(values)} labels for {len(names)} ids")
        answers = dict(zip(names, (_yes_or_no(value) for value in values), strict=True))
        if len(answers) != len(names):
            raise InputError("an id was told twice in one call")
        _check_person(by)
        with self._lock:
            self._take_in_new_rows()
            rows = self.pool.rows(names)
            events: list[Event] = []
            given = 0
            for (name, label), row in zip(answers.items(), rows, strict=True):
                if self.pool.withdrawn[row]:
                    raise InputError(f"id {name!r} was erased from the pool: it can no longer be told")
                ask = self._ledger.asks.get(name)
                if name in self._known:
                    if not label:
                        raise InputError(f"id {name!r} is known to be positive: it cannot be told as negative")
                    continue
                if ask is not None and ask.settled:
                    if (ask.state == "positive") != label:
                        raise InputError(f"id {name!r} was told as {ask.state} before: undo that first")
                    continue
                if ask is None:
                    events.append(self._asked(name, "given", None, by, self._ledger.next_number + given))
                    given += 1
                events.append({"event": "told", "id": name, "label": int(label), "by": by})
            self._write(events)

    def skip(self, ids: str | Sequence[str], by: str = "me") -> None:
        """Put items aside; they come back when nothing else is left."""
        self._set_aside("skipped", ids, by)

    def unsure(self, ids: str | Sequence[str], by: str = "me") -> None:
        """Say that an item cannot be decided on now; it comes back when nothing else is left."""
        self._set_aside("unsure", ids, by)

    def release(self, ids: str | Sequence[str] | None = None, by: str = "me") -> None:
        """Give back items that were asked for, skipped or unsure; all that someone has where none is named."""
        _check_person(by)
        with self._lock:
            if ids is None:
                names = [ask.id for ask in self._ledger.with_state("leased") if ask.by == by]
            else:
                names = [ids] if isinstance(ids, str) else list(ids)
            self.pool.rows(names)
            for name in names:
                ask = self._ledger.asks.get(name)
                if ask is None or ask.settled or ask.state == "open":
                    raise InputError(f"id {name!r} is not leased, skipped or unsure: there is nothing to release")
            self._write([{"event": "released", "id": name, "by": by} for name in names])

    def undo(self, count: int = 1, *, by: str | None = None) -> list[str]:
        """Take back the last decisions (of one person, if given), as if they had never been told.

        The items are leased again to who decided, so that :meth:`ask` shows them next.
        """
        check_count("undo", count)
        with self._lock:
            names = self._ledger.last_decisions(count, by)
            asks = [self._ledger.asks[name] for name in names]
            self._write([{"event": "undone", "id": ask.id, "by": ask.by, "expires": self._expiry()} for ask in asks])
            return names

    def status(self) -> Status:
        """How the campaign stands."""
        with self._lock:
            ledger = self._ledger
            positives, negatives = ledger.count("positive"), ledger.count("negative")
            return Status(
                rows=len(self.pool),
                labelled=positives + negatives,
                positives=positives,
                negatives=negatives,
                known=len(self._known),
                leased=ledger.count("leased"),
                skipped=ledger.count("skipped"),
                unsure=ledger.count("unsure"),
                unlabelled=self.learner.unlabelled,
                phase="explore" if self.learner.exploring(self._held()) else "commit",
                learner=self.rule,
                budget=self.budget,
                target=self.target,
                stopped=self._stopped(),
                note=self._note,
            )

    def trace(self) -> Trace:
        """What was asked and found so far."""
        with self._lock:
            asks = self._ledger.with_state("positive", "negative")
            explored = np.array([ask.source == "explore" for ask in asks], bool)
            batch = np.array([ask.batch for ask in asks], np.int64)
            # Batch 0 is the random sample; the others count up from 1, however they were asked for.
            later = np.unique(batch[~explored], return_inverse=True)[1]
            batch[explored], batch[~explored] = 0, 1 + later
            return Trace(
                rows=self.pool.rows([ask.id for ask in asks]),
                positive=np.array([ask.state == "positive" for ask in asks], bool),
                batch=batch,
                explored=explored,
                pool_rows=len(self.pool),
                learner=self.rule,
                seed=self.seed,
            )

    def labels(self) -> dict[str, bool]:
        """The labels so far, by id, in the order asked."""
        with self._lock:
            return {ask.id: ask.state == "positive" for ask in self._ledger.with_state("positive", "negative")}

    def close(self) -> None:
        """Let go of the log."""
        if isinstance(self.learner, ThinkAhead):
            self.learner.close()
        self.log.close()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- opening ---------------------------------------------------------------------------------

    def _settings(self, learner: Any, seed: int | None, explore: Any) -> dict[str, Any]:
        """What was asked for; None stands for 'as the log says'."""
        name: str | None = None
        if isinstance(learner, Learner):
            name = repr(learner)
        elif learner is not None:
            name = LEARNERS[learner].versioned
        explore = learner.explore if isinstance(learner, Learner) else explore
        if explore is not None:
            explore = int(explore) if isinstance(explore, int | np.integer) else [int(row) for row in explore]
        return {"learner": name, "seed": None if seed is None else int(seed), "explore": explore}

    def _create(self, learner: Any, settings: dict[str, Any], known: Sequence[str]) -> None:
        defaults = {"learner": LEARNERS[DEFAULT_LEARNER].versioned, "seed": 0, "explore": 100}
        chosen = {name: defaults[name] if value is None else value for name, value in settings.items()}
        created: Event = {
            "event": "created",
            "format": FORMAT,
            "rows": len(self.pool),
            "pool": self.pool.fingerprint(),
            "outside": self._outside_fingerprint(),
            **chosen,
        }
        self._ledger = Ledger()
        # The learner first: what it refuses must not leave a log behind.
        self._begin(created, learner, known)
        self._write([created, *({"event": "known", "id": name} for name in self._known)])

    def _take_up(self, learner: Any, settings: dict[str, Any], known: Sequence[str]) -> None:
        self._ledger = Ledger(self.log.read())
        created = self._ledger.created
        if created is None:
            raise StoreError("the label log has no beginning; restore it from a copy")
        self._check_same(created, settings, known)
        self.pool.rows(list(self._ledger.asks))
        self._begin(created, learner, self._ledger.known)
        self._tell_learner(self._ledger.with_state("positive", "negative"))

    def _check_same(self, created: Event, settings: dict[str, Any], known: Sequence[str]) -> None:
        if created["rows"] > len(self.pool):
            raise InputError(f"the label log is of a pool of {created['rows']} rows, this one has {len(self.pool)}")
        now = self.pool.fingerprint(created["rows"])
        # An erased row changes the vectors and nothing else: then the ids have to do.
        parts = ["ids"] if self.pool.withdrawn.any() else ["ids", "vectors"]
        for part in parts:
            if now[part] != created["pool"][part]:
                raise InputError(
                    f"the label log belongs to another pool (its {part} differ): open it with the same file"
                )
        if created.get("outside") != self._outside_fingerprint():
            raise InputError("the label log was made with other known positives from outside: give the same ones")
        for name, value in settings.items():
            if value is not None and value != created[name]:
                raise InputError(
                    f"the label log was made with {name} {created[name]!r}, not {value!r}: start a new log"
                )
        if known and list(dict.fromkeys(known)) != self._ledger.known:
            raise InputError("the label log was made with other known positives: start a new log")

    def _begin(self, created: Event, learner: Any, known: Sequence[str]) -> None:
        self.seed: int = created["seed"]
        self.rule: str = created["learner"]
        self._known = dict.fromkeys(known)
        seeds = self.pool.rows(list(self._known))
        if isinstance(learner, Learner):
            chosen = learner
        elif "(" in self.rule:
            raise InputError(f"the label log was made with a learner of your own: give it again ({self.rule})")
        else:
            chosen = make_learner(self.rule, explore=created["explore"])
        chosen.begin(self.pool, seed=self.seed, outside=self._outside)
        self.learner: Learner | ThinkAhead = ThinkAhead(chosen) if self._think_ahead else chosen
        if len(seeds):
            self.learner.tell(Labels.of(-1 - np.arange(len(seeds)), seeds, np.ones(len(seeds)), True))

    def _outside_fingerprint(self) -> str | None:
        return None if self._outside is None else self.pool.digest(self._outside)

    # -- writing ---------------------------------------------------------------------------------

    def _write(self, events: Sequence[Event]) -> None:
        """Append events; only what the log has taken happens to the ledger and the learner."""
        if not events:
            return
        stamp = self._clock()
        stamped = [{"at": stamp, **event} for event in events]
        asked = {event["id"] for event in stamped if event["event"] == "asked"}
        for event in stamped:
            # What could not be read again must not be written.
            if event.get("id") not in asked:
                self._ledger.check(event)
        written = self.log.append(stamped)
        told = [event["id"] for event in written if event["event"] == "told"]
        taken_back = [
            event["id"] for event in written
            if event["event"] == "undone" and self._ledger.asks[event["id"]].settled
        ]  # fmt: skip
        for event in written:
            self._ledger.apply(event)
        if taken_back:
            self.learner.untell(self.pool.rows(taken_back))
        self._tell_learner([self._ledger.asks[name] for name in told])

    def _tell_learner(self, asks: Sequence[Ask]) -> None:
        if asks:
            asks = sorted(asks, key=lambda ask: ask.number)
            self.learner.tell(
                Labels.of(
                    [ask.number for ask in asks],
                    self.pool.rows([ask.id for ask in asks]),
                    [ask.state == "positive" for ask in asks],
                    [ask.source == "explore" for ask in asks],
                )
            )

    def _set_aside(self, kind: str, ids: str | Sequence[str], by: str) -> None:
        _check_person(by)
        names = [ids] if isinstance(ids, str) else list(ids)
        with self._lock:
            self.pool.rows(names)
            for name in names:
                ask = self._ledger.asks.get(name)
                if ask is None or ask.state not in ("leased", "skipped", "unsure"):
                    raise InputError(f"id {name!r} was not asked for: only an item on the table can be put aside")
            self._write([{"event": kind, "id": name, "by": by} for name in names])

    # -- asking ----------------------------------------------------------------------------------

    def _lease_new(self, k: int, by: str) -> list[Ask]:
        proposal = self.learner.propose(k, self._held())
        self._note = proposal.unavailable
        events = self._events_of(proposal, by)
        if len(proposal) < k:
            events += self._second_round(k - len(proposal), by, len(events))
        self._write(events)
        asks = [self._ledger.asks[event["id"]] for event in events if event["event"] == "asked"]
        if isinstance(self.learner, ThinkAhead) and len(asks) == 1:
            self._prepare(self.learner, asks[0])
        return asks

    def _prepare(self, learner: ThinkAhead, ask: Ask) -> None:
        """Have the learner find what follows the answer to an item."""
        row = self.pool.rows([ask.id])
        held = self._held()
        learner.think(Labels.of([ask.number], row, [True], ask.source == "explore"), held[held != row])

    def _events_of(self, proposal: Proposal, by: str) -> list[Event]:
        unlabelled = self.learner.unlabelled - self._ledger.count("leased", "skipped", "unsure")
        # Rows that the caller chose for exploration were drawn with a probability that only the caller knows.
        drawn_by_us = isinstance(self.learner.explore, int)
        events = []
        for place, row in enumerate(proposal.rows.tolist()):
            name = self.pool.id(row)
            random = place < proposal.explored
            # A row that comes back after it was released is not a new draw.
            fresh = drawn_by_us and name not in self._ledger.asks
            chance = (1 / (unlabelled - place) if fresh else None) if random else 1.0
            number = self._ledger.next_number + place
            event = self._asked(name, "explore" if random else "learner", chance, by, number)
            event["open"] = unlabelled - place
            events.append(event)
            self._why[name] = (float(proposal.distances[place]), int(proposal.nearest[place]))
        return events

    def _second_round(self, k: int, by: str, asked: int) -> list[Event]:
        """Items set aside come back, skipped ones first, when nothing else is left."""
        aside = [*self._ledger.with_state("skipped"), *self._ledger.with_state("unsure")][:k]
        return [
            self._asked(ask.id, ask.source, None, by, self._ledger.next_number + asked + place)
            for place, ask in enumerate(aside)
        ]

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

    def _held(self) -> npt.NDArray[np.int64]:
        return self.pool.rows([ask.id for ask in self._ledger.with_state("leased", "skipped", "unsure")])

    def _expire(self) -> None:
        now = self._clock()
        late = [ask for ask in self._ledger.with_state("leased") if ask.expires is not None and ask.expires <= now]
        self._write([{"event": "released", "id": ask.id, "by": ask.by, "why": "expired"} for ask in late])

    def _expiry(self) -> float | None:
        return None if self._lease is None else self._clock() + self._lease

    def _allowance(self) -> int:
        """How many more items the limits let us ask for."""
        found = self._ledger.count("positive")
        if self.target is not None and found >= self.target:
            return 0
        if self.budget is None:
            return len(self.pool)
        return max(0, self.budget - self._ledger.count("positive", "negative", "leased"))

    def _stopped(self) -> str | None:
        found, labelled = self._ledger.count("positive"), self._ledger.count("positive", "negative")
        if self.target is not None and found >= self.target:
            return f"target reached: {found} positives found"
        if self.budget is not None and labelled >= self.budget:
            return f"budget spent: {labelled} labels"
        if not self.learner.unlabelled:
            return "every item is labelled"
        leased = self._ledger.count("leased")
        if leased and (leased == self.learner.unlabelled or (self.budget and labelled + leased >= self.budget)):
            return f"waiting: all that may still be asked for is leased ({leased})"
        return None

    def _take_in_new_rows(self) -> None:
        """The pool may have grown since the last call."""
        if len(self.learner.closed_) < len(self.pool):
            self.learner.extend()

    def _item(self, ask: Ask) -> Item:
        row = int(self.pool.rows([ask.id])[0])
        distance, key = self._why.get(ask.id, (float("nan"), NO_KEY))
        nearest = None
        if key != NO_KEY:
            nearest = self.pool.id(key) if key >= 0 else f"known positive {-key} from outside"
        return Item(ask.id, self.pool.content(row), ask.source, None if np.isnan(distance) else distance, nearest)


@contextmanager
def _naming(log: EventLog) -> Iterator[None]:
    """What is wrong with a log is said with its name."""
    try:
        yield
    except ActiveCoverError as wrong:
        raise type(wrong)(f"{log}: {wrong}") from wrong


def _encode_outside(pool: Pool, vectors: Any) -> Vectors:
    try:
        return pool.encode(vectors)
    except InputError as wrong:
        raise InputError(f"known positives from outside: {wrong}") from wrong


def _check_person(by: Any) -> None:
    if not isinstance(by, str) or not by:
        raise InputError(f"by {by!r}: say who it is with a non-empty string")


def _sequence(labels: Any) -> Sequence[Any]:
    if isinstance(labels, str | bytes) or not hasattr(labels, "__iter__"):
        raise InputError("labels must be a sequence, one per id")
    return list(labels)


def _yes_or_no(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | np.integer) and value in (0, 1)):
        return bool(value)
    raise InputError(f"label {value!r} is neither yes nor no: give True or False")
