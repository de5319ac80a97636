"""A live campaign: ask for items by id, tell what they are, and never ask in vain."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.campaign._agreement import Agreement, agreement_of
from activecover.campaign._brain import Brain
from activecover.campaign._items import Item, Status
from activecover.campaign._records import records_of
from activecover.errors import ActiveCoverError, InputError, StoreError, check_count
from activecover.frontier import NO_KEY
from activecover.learners import LEARNERS, Labels, Learner, Proposal, ThinkAhead, make_learner
from activecover.pool import Pool, StoredPool, Vectors
from activecover.store import FORMAT, Ask, Event, EventLog, Ledger, Ready, SqlLog, open_log
from activecover.trace import Trace

DEFAULT_LEARNER = "explore-commit"


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
    overlap : int, optional
        How many people have to say the same of an item before it counts; 1 by default.
    forgets : bool
        Whether negatives are to be forgotten: then the log does not say which positive an item was near to.
    patience : float
        Seconds to wait for proposals from the process that runs the learner, where that is another one.
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
        overlap: int | None = None,
        forgets: bool = False,
        patience: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        for name, value, least in (
            ("budget", budget, 1),
            ("target", target, 1),
            ("seed", seed, 0),
            ("overlap", overlap, 1),
        ):
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
        self._patience = patience
        settings = {**self._settings(learner, seed, explore), "overlap": overlap, "forgets": forgets or None}
        self._lock = threading.RLock()
        self._note: str | None = None
        self._why: dict[str, tuple[float, int]] = {}
        self._brain: Brain | None = None
        self._server: threading.Thread | None = None
        self._closing = threading.Event()
        #: How much of the log the ledger has seen, and which items the learner has not seen yet.
        self._position = 0
        self._changed: dict[str, None] = {}
        self._wrote = self._stale = self._in_turn = False
        #: The name of the request whose turn it is.
        self._request: str | None = None
        #: The item that somebody looks at, if what follows it is being thought of.
        self._awaited: tuple[str, str, int, int, int] | None = None
        self._erased = (-1, False)
        self.log = open_log(log)
        try:
            with self._lock, self.log.turn(), _naming(self.log):
                if len(self.log):
                    self._take_up(learner, settings, known)
                else:
                    self._create(learner, settings, known)
        except BaseException:
            self._closing.set()
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
        with self._turn():
            items = self._ask_once(int(k), by)
        return self._waited(int(k), by) if items is None else items

    def answer(self, id: str, label: Any, by: str = "me", k: int = 1) -> list[Item]:
        """Tell what an item is and ask for the next, in one go: one write instead of two."""
        with self._turn():
            items = self._answer_foreseen(id, label, by) if k == 1 else None
            if items is None:
                self.tell(id, label, by)
                items = self._ask_once(k, by)
        return self._waited(k, by) if items is None else items

    def _answer_foreseen(self, id: str, label: Any, by: str) -> list[Item] | None:
        """The short way where nothing has happened since an item was asked for: what follows is known already."""
        if self._brain is None or self._awaited != self._moment(id, by):
            return None
        answer, ask = _yes_or_no(label), self._ledger.asks[id]
        confirmed = self._brain.confirm(ask, answer)
        if confirmed is None:
            return None
        proposal, held = confirmed
        self._note = proposal.unavailable
        left = self._brain.learner.unlabelled - len(held)
        row, random = int(proposal.rows[0]), bool(proposal.explored)
        name = self.pool.id(row)
        self._why[name] = (float(proposal.distances[0]), int(proposal.nearest[0]))
        # A row that comes back after it was released is not a new draw.
        fresh = isinstance(self._explore, int) and name not in self._ledger.asks
        chance = (1 / left if fresh else None) if random else 1.0
        asked = self._asked(name, "explore" if random else "learner", chance, by, self._ledger.next_number)
        asked["open"], asked["position"] = left, asked["position"] + 1
        if (nearest := self._recorded_nearest(name)) is not None:
            asked["nearest"] = nearest
        self._write([{"event": "told", "id": id, "label": int(answer), "by": by}, asked])
        self._changed.clear()
        following = self._ledger.asks[name]
        self._think(following, by, held)
        return [self._item(following)]

    def _moment(self, id: str, by: str) -> tuple[str, str, int, int, int] | None:
        """Who has which item, and how far things are; none where more than the answer decides on what is next."""
        if self._lease is not None or self.budget is not None or self.target is not None or self._ledger.overlap > 1:
            return None
        return id, by, self._position, self.pool.erasures, len(self.pool)

    def _think(self, ask: Ask, by: str, held: npt.NDArray[np.int64]) -> None:
        """Find what follows either answer to an item, while a person looks at it."""
        if self._think_ahead and self._brain is not None:
            self._brain.think(ask, held)
            self._awaited = self._moment(ask.id, by)

    def ahead(self, id: str) -> dict[bool, Item]:
        """What :meth:`answer` will return for either answer to an item, if nobody else asks before.

        Nothing is leased by it. It needs ``think_ahead``, and waits until the thought is there; where an
        answer was not thought of, or several people are at work, it is missing.
        """
        with self._lock:
            brain, alone = self._brain, self._ledger.active() == 1 and self._ledger.overlap == 1
        thoughts = brain.thought(id) if brain is not None and alone else {}
        return {answer: self._foreseen(proposal) for answer, proposal in thoughts.items() if len(proposal)}

    def _foreseen(self, proposal: Proposal) -> Item:
        row, distance, key = (int(proposal.rows[0]), float(proposal.distances[0]), int(proposal.nearest[0]))
        nearest = None if key == NO_KEY else self._named(key)
        source = "explore" if proposal.explored else "learner"
        name = self.pool.id(row)
        return Item(name, self.pool.content(row), source, None if np.isnan(distance) else distance, nearest)

    @contextmanager
    def once(self, request: str) -> Iterator[list[tuple[str, str | None, int | None]]]:
        """A turn for a request that bears a name; what a request of that name has written before, if any.

        Who does not know whether a request was heard makes it again under the same name. The name is kept
        with the events themselves, so that this is known after a crash too.

        Examples
        --------
        >>> campaign = Campaign(Pool([[0.0], [1.0]]))
        >>> for _ in range(2):
        ...     with campaign.once("a name") as written:
        ...         if not written:
        ...             campaign.tell("0", True)
        >>> written
        [('asked', '0', None), ('told', '0', 1)]
        """
        with self._turn():
            self._request = request
            try:
                yield list(self._ledger.requests.get(request, ()))
            finally:
                self._request = None

    def _waited(self, k: int, by: str) -> list[Item]:
        """What someone gets once the process that runs the learner has something for them."""
        assert isinstance(self.log, SqlLog)
        deadline = time.monotonic() + self._patience
        while True:
            # In a turn of its own, which need not be synced.
            self.log.want(by, k)
            self._wait(by, deadline)
            with self._turn():
                items = self._ask_once(k, by)
            if items is not None:
                return items

    def _ask_once(self, k: int, by: str) -> list[Item] | None:
        """What someone has, filled up with new items; None where those have to be waited for."""
        self._expire()
        mine = self._with(by)[:k]
        missing = min(k - len(mine), self._allowance())
        new = self._lease_new(missing, by) if missing > 0 else []
        return None if new is None else [self._item(ask) for ask in [*mine, *new]]

    def _wait(self, by: str, deadline: float) -> None:
        """Wait until the brain has looked at what someone wants, or until it is for this process to be the brain."""
        assert isinstance(self.log, SqlLog)
        looks = 0
        while self.log.is_wanted(by):
            if time.monotonic() > deadline:
                raise StoreError(
                    f"{self.log}: no proposals after {self._patience:g} s: the process that makes them hangs"
                )
            # The brain mostly lives, so its death is looked for less often than its answer.
            if looks % 10 == 9 and self.log.try_brain():
                return
            time.sleep(0.002 if looks < 5 else 0.01)
            looks += 1

    def tell(
        self, ids: str | Sequence[str], labels: Any, by: str = "me", *, change: bool = False, note: str | None = None
    ) -> None:
        """Say of items whether they are positive; several at once are taken whole or not at all.

        An item need not have been asked for. Telling the same again changes nothing; to tell something
        else, undo first, or say that it is a ``change`` of mind: the earlier decision stays in the
        history, and the learner is as if it had never been told. A ``note`` is kept with the labels.
        """
        names = [ids] if isinstance(ids, str) else list(ids)
        values = [labels] if isinstance(ids, str) else list(_sequence(labels))
        if len(names) != len(values):
            raise InputError(f"{len(values)} labels for {len(names)} ids")
        answers = dict(zip(names, (_yes_or_no(value) for value in values), strict=True))
        if len(answers) != len(names):
            raise InputError("an id was told twice in one call")
        if note is not None and not isinstance(note, str):
            raise InputError(f"note {note!r}: give a text")
        _check_person(by)
        with self._turn():
            rows = self.pool.rows(names)
            events: list[Event] = []
            given = 0
            for (name, label), row in zip(answers.items(), rows, strict=True):
                if self.pool.withdrawn[row]:
                    raise InputError(f"id {name!r} was erased from the pool: it can no longer be told")
                ask = self._ledger.asks.get(name)
                if self._is_known_already(name, ask, label, by, change):
                    continue
                if ask is None:
                    events.append(self._asked(name, "given", None, by, self._ledger.next_number + given))
                    given += 1
                told: Event = {"event": "told", "id": name, "label": int(label), "by": by}
                events.append(told if note is None else {**told, "note": note})
            self._write(events)

    def _is_known_already(self, name: str, ask: Ask | None, label: bool, by: str, change: bool) -> bool:
        """Whether an answer says nothing new; one that contradicts is refused unless it is meant to."""
        if name in self._known:
            if not label:
                raise InputError(f"id {name!r} is known to be positive: it cannot be told as negative")
            return True
        if ask is None:
            return False
        said = ask.opinions.get(by) if self._ledger.overlap > 1 else (ask.state == "positive" if ask.settled else None)
        if said == label:
            return True
        if name in self._ledger.forgotten:
            raise InputError(f"id {name!r} was forgotten: that it is negative can no longer be changed")
        if said is not None and not change:
            what = "positive" if said else "negative"
            raise InputError(f"id {name!r} was told as {what} before: undo that first, or say that it is a change")
        if said is None and ask.state in ("positive", "negative", "conflict"):
            raise InputError(f"id {name!r} has its {self._ledger.overlap} opinions already")
        return False

    def conflicts(self) -> list[tuple[Item, dict[str, bool]]]:
        """Items on which people disagree, with who said what."""
        with self._turn():
            return [(self._item(ask), dict(ask.opinions)) for ask in self._ledger.with_state("conflict")]

    def adjudicate(self, id: str, label: Any, by: str = "me") -> None:
        """Decide on an item on which people disagree."""
        _check_person(by)
        with self._turn():
            ask = self._ledger.asks.get(id)
            if ask is None or ask.state != "conflict":
                raise InputError(f"id {id!r} is not in conflict: there is nothing to decide between")
            self._write([{"event": "adjudicated", "id": id, "label": int(_yes_or_no(label)), "by": by}])

    def agreement(self) -> Agreement:
        """How far people agree who labelled the same items."""
        with self._turn():
            return agreement_of([ask.opinions for ask in self._ledger.asks.values() if len(ask.opinions) > 1])

    def history(self, id: str | None = None) -> list[Event]:
        """All events, or those of one item, in order."""
        with self._turn():
            return [event for event in self.log.read() if id is None or event.get("id") == id]

    def records(self) -> list[dict[str, Any]]:
        """One record per item that was asked for: its label, who gave it, when, and why it was asked."""
        with self._turn():
            return records_of(self.log.read(), self._ledger)

    def record(self, events: Sequence[Event]) -> None:
        """Write down what was done outside of labelling: ``withdrawn``, ``forgotten``, ``grown``."""
        with self._turn():
            self.pool.rows([event["id"] for event in events if "id" in event])
            self._write(events)

    def final_negatives(self, window: int) -> list[str]:
        """Negatives that nobody will undo: decided before the last ``window`` decisions, and not forgotten yet."""
        with self._turn():
            late = set(self._ledger.last_decisions(window, None))
            negatives = self._ledger.with_state("negative")
            return [ask.id for ask in negatives if ask.id not in late and ask.id not in self._ledger.forgotten]

    def forgotten(self) -> list[str]:
        """The items whose vectors and contents were given up."""
        with self._turn():
            return list(self._ledger.forgotten)

    def skip(self, ids: str | Sequence[str], by: str = "me") -> None:
        """Put items aside; they come back when nothing else is left."""
        self._set_aside("skipped", ids, by)

    def unsure(self, ids: str | Sequence[str], by: str = "me") -> None:
        """Say that an item cannot be decided on now; it comes back when nothing else is left."""
        self._set_aside("unsure", ids, by)

    def release(self, ids: str | Sequence[str] | None = None, by: str = "me") -> None:
        """Give back items that were asked for, skipped or unsure; all that someone has where none is named."""
        _check_person(by)
        with self._turn():
            mine = [ask.id for ask in self._with(by)]
            names = mine if ids is None else [ids] if isinstance(ids, str) else list(ids)
            self.pool.rows(names)
            for name in names:
                ask = self._ledger.asks.get(name)
                if ask is None or (by not in ask.also and ask.state not in ("leased", "skipped", "unsure")):
                    raise InputError(f"id {name!r} is not leased, skipped or unsure: there is nothing to release")
            self._write([{"event": "released", "id": name, "by": by} for name in names])

    def undo(self, count: int = 1, *, by: str | None = None) -> list[str]:
        """Take back the last decisions (of one person, if given), as if they had never been told.

        The items are leased again to who decided, so that :meth:`ask` shows them next.
        """
        check_count("undo", count)
        with self._turn():
            pairs = self._ledger.last_deciders(count, by)
            for name, _ in pairs:
                if name in self._ledger.forgotten:
                    raise InputError(f"id {name!r} was forgotten: that it is negative can no longer be undone")
            self._write([{"event": "undone", "id": name, "by": who, "expires": self._expiry()} for name, who in pairs])
            return [name for name, _ in pairs]

    def status(self) -> Status:
        """How the campaign stands."""
        with self._turn():
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
                unlabelled=self._unlabelled(),
                phase=self._phase(),
                learner=self.rule,
                budget=self.budget,
                target=self.target,
                stopped=self._stopped(),
                note=self._note,
                waiting=ledger.count("waiting"),
                conflicts=ledger.count("conflict"),
            )

    def trace(self) -> Trace:
        """What was asked and found so far."""
        with self._turn():
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
        with self._turn():
            return {ask.id: ask.state == "positive" for ask in self._ledger.with_state("positive", "negative")}

    @property
    def learner(self) -> Learner | ThinkAhead:
        """What decides, up to date with the log."""
        with self._turn():
            brain = self._own_brain()
            if brain is None:
                raise StoreError(f"{self.log}: another process runs the learner of this campaign")
            return brain.learner

    def close(self) -> None:
        """Let go of the log, and of the learner."""
        self._closing.set()
        if self._server is not None:
            self._server.join()
        with self._lock:
            if self._brain is not None:
                self._brain.close()
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
        defaults = {
            "learner": LEARNERS[DEFAULT_LEARNER].versioned,
            "seed": 0,
            "explore": 100,
            "overlap": 1,
            "forgets": False,
        }
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
        self._begin(created, learner, known)
        # The learner first: what it refuses must not leave a log behind.
        self._own_brain()
        self._write([created, *({"event": "known", "id": name} for name in self._known)])

    def _take_up(self, learner: Any, settings: dict[str, Any], known: Sequence[str]) -> None:
        self._ledger = Ledger(self.log.read())
        created = self._ledger.created
        if created is None:
            raise StoreError("the label log has no beginning; restore it from a copy")
        self._check_same(created, settings, known)
        self._position = len(self.log)
        self.pool.rows(list(self._ledger.asks))
        self._begin(created, learner, self._ledger.known)
        if not self.log.shared:
            self._own_brain()

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
            if value is not None and value != created.get(name, 1):
                raise InputError(
                    f"the label log was made with {name} {created.get(name, 1)!r}, not {value!r}: start a new log"
                )
        if known and list(dict.fromkeys(known)) != self._ledger.known:
            raise InputError("the label log was made with other known positives: start a new log")

    def _begin(self, created: Event, learner: Any, known: Sequence[str]) -> None:
        self.seed: int = created["seed"]
        self.rule: str = created["learner"]
        self._known = dict.fromkeys(known)
        self.pool.rows(list(self._known))
        if isinstance(learner, Learner):
            self._make_learner: Callable[[], Learner] = lambda: learner
        elif "(" in self.rule:
            raise InputError(f"the label log was made with a learner of your own: give it again ({self.rule})")
        else:
            self._make_learner = lambda: make_learner(self.rule, explore=created["explore"])
        self._explore = created["explore"]

    def _own_brain(self) -> Brain | None:
        """The learner, up to date, if it is for this process to run it."""
        if not self.log.try_brain():
            return None
        if self._brain is None:
            learner = self._make_learner().begin(self.pool, seed=self.seed, outside=self._outside)
            seeds = self.pool.rows(list(self._known))
            if len(seeds):
                learner.tell(Labels.of(-1 - np.arange(len(seeds)), seeds, np.ones(len(seeds)), True))
            self._brain = Brain(self.pool, learner, think_ahead=self._think_ahead)
            self._changed = dict.fromkeys(self._ledger.asks)
            if isinstance(self.log, SqlLog):
                self._server = threading.Thread(target=self._serve, args=(self.log,), daemon=True)
                self._server.start()
        self._brain.follow(self._ledger, self._changed)
        self._changed.clear()
        return self._brain

    def _outside_fingerprint(self) -> str | None:
        return None if self._outside is None else self.pool.digest(self._outside)

    # -- writing ---------------------------------------------------------------------------------

    @contextmanager
    def _turn(self, lasting: bool = True) -> Iterator[None]:
        """A time in which nobody else writes, with all that others have written taken in."""
        with self._lock:
            if self._in_turn:
                yield
                return
            self._in_turn, self._wrote = True, False
            try:
                with self.log.turn(lasting):
                    self._catch_up()
                    yield
            except BaseException:
                # What was written in a turn that failed may not have been kept.
                self._stale = self._stale or self._wrote
                raise
            finally:
                self._in_turn = False

    def _catch_up(self) -> None:
        if self._stale:
            self._ledger = Ledger(self.log.read())
            self._position, self._stale = len(self.log), False
            self._changed.update(dict.fromkeys(self._ledger.asks))
            if self._brain is not None:
                self._brain.follow_all(self._ledger)
        elif self.log.shared and len(self.log) > self._position:
            for event in self.log.read(self._position):
                self._apply(event)

    def _apply(self, event: Event) -> None:
        self._ledger.apply(event)
        self._position = event["seq"] + 1
        if event["event"] in ("grown", "withdrawn", "forgotten") and isinstance(self.pool, StoredPool):
            # Someone else may have done it: what lies on the disk holds.
            self.pool.refresh()
        if "id" in event:
            self._changed[event["id"]] = None

    def _write(self, events: Sequence[Event]) -> None:
        """Append events; only what the log has taken happens to the ledger and the learner."""
        if not events:
            return
        # A clock that is set back must not turn the order of events around.
        stamp = max(self._clock(), self._ledger.last_at)
        named = {} if self._request is None else {"request": self._request}
        stamped = [{"at": stamp, **event, **named} for event in events]
        asked = {event["id"] for event in stamped if event["event"] == "asked"}
        for event in stamped:
            # What could not be read again must not be written.
            if event.get("id") not in asked:
                self._ledger.check(event)
        written = self.log.append(stamped)
        self._wrote = True
        for event in written:
            self._apply(event)

    def _set_aside(self, kind: str, ids: str | Sequence[str], by: str) -> None:
        _check_person(by)
        names = [ids] if isinstance(ids, str) else list(ids)
        with self._turn():
            self.pool.rows(names)
            for name in names:
                ask = self._ledger.asks.get(name)
                if ask is None or (by not in ask.also and ask.state not in ("leased", "skipped", "unsure")):
                    raise InputError(f"id {name!r} was not asked for: only an item on the table can be put aside")
            self._write([{"event": kind, "id": name, "by": by} for name in names])

    # -- asking ----------------------------------------------------------------------------------

    def _with(self, by: str) -> list[Ask]:
        """What someone has on the table."""
        mine = [ask for ask in self._ledger.with_state("leased") if ask.by == by]
        if self._ledger.overlap > 1:
            mine += [ask for ask in self._ledger.with_state("waiting", "conflict") if by in ask.also]
        return self._not_erased(mine)

    def _not_erased(self, asks: list[Ask]) -> list[Ask]:
        if self._erased[0] != self.pool.erasures:
            self._erased = (self.pool.erasures, bool(self.pool.withdrawn.any()))
        if not self._erased[1]:
            return asks
        return [ask for ask in asks if not self.pool.withdrawn[self.pool.rows([ask.id])[0]]]

    def _lease_new(self, k: int, by: str) -> list[Ask] | None:
        """Lease up to ``k`` items that nobody has; None where they have to be waited for."""
        events = self._second_opinions(k, by)
        missing = k - len(events)
        if missing:
            proposed = self._propose(missing, by)
            if proposed is None and not events:
                return None
            events += proposed or []
        self._write(events)
        asks = [self._ledger.asks[event["id"]] for event in events]
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

    def _propose(self, k: int, by: str) -> list[Event] | None:
        """Lease what the learner proposes; None where another process runs it and has nothing ready."""
        brain = self._own_brain()
        if brain is not None:
            proposal = brain.propose(k, self._held())
            self._note = proposal.unavailable
            events = self._events_of(proposal, by)
        else:
            assert isinstance(self.log, SqlLog)
            events = self._events_of_ready(self._take_ready(self.log, k), by)
            if not events and self._unasked() > 0:
                return None
        if len(events) < k and self._unasked() - len(events) <= 0:
            events += self._second_round(k - len(events), by, len(events))
        return events

    def _take_ready(self, log: SqlLog, k: int) -> list[Ready]:
        """Proposals of the brain that are fresh enough: with so many people, each may miss one label of each other."""
        oldest = self._ledger.changes - (self._ledger.active() - 1)
        taken: list[Ready] = []
        while len(taken) < k and (more := log.take_ready(k - len(taken), oldest)):
            # The brain's own people lease past what it has laid out.
            taken += [one for one in more if not self._is_taken(one.id)]
        return taken

    def _is_taken(self, name: str) -> bool:
        ask = self._ledger.asks.get(name)
        return (ask is not None and ask.state != "open") or bool(self.pool.withdrawn[self.pool.rows([name])[0]])

    def _events_of(self, proposal: Proposal, by: str) -> list[Event]:
        names = [self.pool.id(row) for row in proposal.rows.tolist()]
        for place, name in enumerate(names):
            self._why[name] = (float(proposal.distances[place]), int(proposal.nearest[place]))
        return self._events_of_ready(self._ready_of(proposal), by)

    def _ready_of(self, proposal: Proposal) -> list[Ready]:
        """Proposals with what the log has to know of each."""
        unlabelled = self._unasked()
        # Rows that the caller chose for exploration were drawn with a probability that only the caller knows.
        drawn_by_us = isinstance(self._explore, int)
        found = []
        for place, row in enumerate(proposal.rows.tolist()):
            name = self.pool.id(row)
            random = place < proposal.explored
            # A row that comes back after it was released is not a new draw.
            fresh = drawn_by_us and name not in self._ledger.asks
            chance = (1 / (unlabelled - place) if fresh else None) if random else 1.0
            found.append(
                Ready(
                    name, "explore" if random else "learner", self._ledger.changes, chance, self._recorded_nearest(name)
                )
            )
        return found

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

    def _recorded_nearest(self, name: str) -> str | None:
        """What the log may say of why an item was asked for: nothing, where negatives are to be forgotten."""
        return None if (self._ledger.created or {}).get("forgets") else self._nearest_of(name)

    def _nearest_of(self, name: str) -> str | None:
        """Which positive an item was proposed for, as far as it is known."""
        key = self._why.get(name, (0.0, NO_KEY))[1]
        if key == NO_KEY:
            return None
        return self._named(key)

    def _named(self, key: int) -> str:
        return self.pool.id(key) if key >= 0 else f"known positive {-key} from outside"

    # -- the brain, for others -------------------------------------------------------------------

    def _serve(self, log: SqlLog) -> None:
        """Keep proposals ready for other processes, as long as this one runs the learner."""
        served, idle = -1, 0
        while not self._closing.wait(0.002 if idle < 100 else 0.01):
            try:
                asked, there = log.demand()
                stale = there and self._ledger.changes - served >= max(1, self._ledger.active() // 2)
                idle = 0 if asked or stale else idle + 1
                if asked or stale:
                    served = self._refill(log, asked)
            except StoreError:
                # The database is away for the moment, or someone else has taken over: whoever asks finds out.
                self._closing.wait(0.2)

    def _refill(self, log: SqlLog, asked: int) -> int:
        with self._turn(lasting=False):
            brain = self._own_brain()
            if brain is not None:
                proposal = brain.propose(asked + 2 * self._ledger.active(), self._held())
                for place, row in enumerate(proposal.rows.tolist()):
                    self._why[self.pool.id(row)] = (float(proposal.distances[place]), int(proposal.nearest[place]))
                log.put_ready(self._ready_of(proposal))
            return self._ledger.changes

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

    def _held(self) -> npt.NDArray[np.int64]:
        held = self._ledger.with_state("leased", "skipped", "unsure", "waiting", "conflict")
        return self.pool.rows([ask.id for ask in held])

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
        if not self._unlabelled():
            return "every item is labelled"
        leased = self._ledger.count("leased")
        if leased and (leased == self._unlabelled() or (self.budget and labelled + leased >= self.budget)):
            return f"waiting: all that may still be asked for is leased ({leased})"
        return None

    def _unlabelled(self) -> int:
        """How many items could still be asked for."""
        if not self.pool.withdrawn.any():
            return len(self.pool) - self._ledger.count("positive", "negative") - len(self._known)
        closed = self.pool.withdrawn.copy()
        names = [ask.id for ask in self._ledger.with_state("positive", "negative")]
        closed[self.pool.rows([*names, *self._known])] = True
        return int((~closed).sum())

    def _unasked(self) -> int:
        """How many items nobody has and nobody has put aside."""
        held = self._held()
        return self._unlabelled() - int((~self.pool.withdrawn[held]).sum())

    def _phase(self) -> str:
        brain = self._own_brain()
        if brain is not None:
            return "explore" if brain.learner.exploring(self._held()) else "commit"
        found = self._ledger.count("positive") + len(self._known) + (self._outside is not None)
        wanted = self._explore if isinstance(self._explore, int) else len(self._explore)
        drawn = sum(ask.source == "explore" for ask in self._ledger.asks.values())
        return "explore" if not found or drawn < wanted else "commit"

    def _item(self, ask: Ask) -> Item:
        row = int(self.pool.rows([ask.id])[0])
        distance = self._why.get(ask.id, (float("nan"), NO_KEY))[0]
        nearest = self._nearest_of(ask.id) or ask.nearest
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
