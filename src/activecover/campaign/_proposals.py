"""The learner of a campaign: built when it is first needed, and run by one process for all others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from activecover.campaign._availability import Availability
from activecover.campaign._brain import Brain
from activecover.campaign._items import Why
from activecover.campaign._journal import Journal
from activecover.errors import InputError, StoreError
from activecover.frontier import NO_KEY
from activecover.learners import LEARNERS, Exploration, Learner, Proposal, ThinkAhead, make_learner
from activecover.pool import Vectors
from activecover.store import Ask, Ready, events

#: Seconds between two looks at what other processes want, if nothing says that something was written.
_LOOK = 10.0
#: Seconds to wait when the database is away.
_AWAY = 0.2


@dataclass(frozen=True, slots=True)
class Draw:
    """A row to ask for next, and how it was chosen."""

    id: str
    source: str
    #: The probability of being drawn; 1 if nothing was left to chance, None if unknown.
    chance: float | None = None
    nearest: str | int | None = None
    #: How many rows were open to the draw.
    open: int | None = None
    #: The stopping rule that needs the draw; None if the learner proposed it.
    rule: str | None = None


class Proposals:
    """What the learner proposes.

    Contract: the learner is never built before :meth:`own` is called, and it is a fold over the ledger: it can be
    dropped and built again at any time. At most one process per campaign runs it; the others take what that process
    has laid out for them. Only :meth:`change_learner` writes.

    Parameters
    ----------
    journal : Journal
        Of the campaign.
    rows : Availability
        Which rows can be asked for.
    build : callable
        Makes the learner that the log names.
    seed : int
        Of the learner.
    explore : int or list of int
        The random sample: its size, or its rows.
    outside : array or None
        Known positives from outside the pool.
    think_ahead : bool
        Whether to find the next item for either answer while a person looks at one.
    """

    def __init__(
        self,
        journal: Journal,
        rows: Availability,
        build: Callable[[], Learner],
        *,
        seed: int,
        explore: int | list[int],
        outside: Vectors | None,
        think_ahead: bool,
    ) -> None:
        self._journal, self._rows = journal, rows
        self._build, self._seed, self._explore = build, seed, explore
        self._outside, self._think_ahead = outside, think_ahead
        self._brain: Brain | None = None
        #: The event that chose the learner, and how often the ledger had been rebuilt, when it was last up to date.
        self._running = (-1, 0)
        self._server: threading.Thread | None = None
        self._closing = threading.Event()
        self._why: dict[str, Why] = {}
        self._sample: tuple[int, Exploration] | None = None
        #: Why a proposal is not the learner's, if the learner cannot propose now.
        self.note: str | None = None

    @property
    def learner(self) -> Learner | ThinkAhead:
        """The learner, up to date with the log."""
        with self._journal.turn():
            brain = self.own()
            if brain is None:
                raise StoreError(f"{self._journal.log}: another process runs the learner of this campaign")
            return brain.learner

    def own(self) -> Brain | None:
        """The learner, up to date; None if another process runs it. To be called in a turn."""
        if not self._journal.log.try_brain():
            return None
        ledger = self._journal.ledger
        choice = -1 if ledger.learner_changed is None else ledger.learner_changed.seq
        if self._brain is not None and self._running[0] != choice:
            self._brain.close()
            self._brain = None
        changed = self._journal.take_changed()
        if self._brain is None:
            self._brain, changed = self._built(), None
            self._serve_others()
        if changed is None or self._running[1] != self._journal.rebuilt:
            self._brain.follow_all(ledger)
        else:
            self._brain.follow(ledger, changed)
        self._running = choice, self._journal.rebuilt
        return self._brain

    def change_learner(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Write that another learner proposes from now on, once it was found to work on this pool."""
        entry, journal = LEARNERS[name], self._journal
        if journal.ledger.forgets and entry.negatives != "none":
            raise InputError(f"{name} learns from negatives, which this campaign forgets: choose explore-commit")
        learner = make_learner(entry.versioned, explore=self._explore, **parameters)
        learner.begin(journal.pool, seed=self._seed, outside=self._outside)
        with journal.turn():
            journal.write([events.LearnerChanged(learner=entry.versioned, params=dict(parameters) or None)])
            if journal.log.shared:
                # What was laid out for other processes is the earlier learner's.
                journal.shared_log.put_ready([])

    def next(self, k: int, avoid: Collection[str] = ()) -> list[Draw] | None:
        """The learner's next ``k`` rows; None if another process runs it and has nothing ready."""
        brain = self.own()
        if brain is None:
            taken = self._take_ready(k, avoid)
            left = self._rows.unasked()
            if not taken and left > 0:
                return None
            return [_draw(one, left - place) for place, one in enumerate(taken)]
        held = self._rows.held()
        return self.draws(brain.propose(k, np.union1d(held, self._journal.pool.rows(list(avoid))) if avoid else held))

    def for_review(self, k: int, taken: Sequence[str]) -> list[Draw] | None:
        """As :meth:`next`, if the learner must not know the control rows; rows that were ``taken`` are left out."""
        brain = self.own()
        if brain is None:
            return [_draw(one, None) for one in self._take_ready(k)] or None
        held = np.concatenate([self._rows.held_from_learner(), self._journal.pool.rows(taken)])
        return self.draws(brain.propose(k, held))

    def upcoming(self, k: int) -> list[int]:
        """The learner's next rows; none if another process runs it."""
        with self._journal.turn(lasting=False):
            brain = self.own()
            return [] if brain is None else brain.propose(k, self._rows.held()).rows.tolist()

    def draws(self, proposal: Proposal) -> list[Draw]:
        """A proposal, with what the log records of each row."""
        self.note = proposal.unavailable
        open_rows = self._rows.unasked()
        found = []
        for place, row in enumerate(proposal.rows.tolist()):
            name, random = self._journal.pool.id(row), place < proposal.explored
            self._why[name] = Why.of(proposal, place)
            # A row that comes back after it was released is not a new draw, and only those who chose the rows of a
            # given sample know how they were drawn.
            fresh = isinstance(self._explore, int) and name not in self._journal.ledger.asks
            chance = (1 / (open_rows - place) if fresh else None) if random else 1.0
            nearest = None if self._journal.ledger.forgets else self._nearest_of(name)
            found.append(Draw(name, "explore" if random else "learner", chance, nearest, open_rows - place))
        return found

    def why(self, ask: Ask) -> tuple[Why, str | int | None]:
        """Why an item was proposed, as far as this process knows, and the positive that it is near to."""
        nearest = self._nearest_of(ask.id)
        return self._why.get(ask.id, Why()), ask.nearest if nearest is None else nearest

    def why_of(self, proposal: Proposal) -> tuple[Why, str | int | None]:
        """The same for the first row of a proposal."""
        why = Why.of(proposal, 0)
        return why, self._named(why.nearest)

    def exploring(self) -> bool:
        """Whether the learner still samples at random: rows of the sample are left, or no positive is known.

        It is read from the ledger: no learner is built for it.
        """
        ledger, pool = self._journal.ledger, self._journal.pool
        positives = [*self._journal.known, *(ask.id for ask in ledger.with_state("positive") if not ask.hidden)]
        if self._outside is None and bool(pool.withdrawn[pool.rows(positives)].all()):
            return True
        size = self._explore if isinstance(self._explore, int) else len(self._explore)
        if not size:
            return False
        if self._sample is None or self._sample[0] != len(pool):
            self._sample = len(pool), Exploration(self._explore, self._seed).begin(len(pool))
        exploration = self._sample[1]
        closed = pool.withdrawn.copy()
        settled = [ask.id for ask in ledger.with_state("positive", "negative") if not ask.hidden]
        closed[pool.rows([*settled, *self._journal.known])] = True
        closed[self._rows.held_from_learner()] = True
        return not bool(closed[exploration.order()[: exploration.size]].all())

    # -- thinking ahead ------------------------------------------------------------------------------

    def think(self, ask: Ask, prepare: Callable[[Proposal], object]) -> None:
        """Begin to find what follows either answer to an item, while a person looks at it."""
        # With several people at work others change what follows: the thought would be in vain.
        if not self._think_ahead or self._brain is None or self._journal.ledger.active() > 1:
            return
        # An item that came back by undo is settled for the learner until that has caught up.
        brain = self.own()
        if brain is not None:
            held = self._rows.held()
            brain.think(ask, held[held != self._journal.pool.row(ask.id)], prepare)

    def thought(self, name: str) -> dict[bool | None, object]:
        """What follows either answer to an item, or none, as it was prepared; waits until it is found."""
        with self._journal.lock:
            ledger = self._journal.ledger
            brain = self._brain if ledger.active() == 1 and ledger.overlap == 1 else None
        return {} if brain is None else brain.thought(name)

    # -- for other processes -------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the learner, and what it does for others."""
        self._closing.set()
        server, self._server = self._server, None
        if server is not None:
            self._journal.shared_log.wake()
            server.join()
        with self._journal.lock:
            if self._brain is not None:
                self._brain.close()
                self._brain = None

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closing.is_set()

    def _built(self) -> Brain:
        try:
            learner = self._build().begin(self._journal.pool, seed=self._seed, outside=self._outside)
        except InputError as wrong:
            remedy = (
                "" if self._learner_is_here() else "; or go on with another one: activecover learner, change_learner"
            )
            raise InputError(f"{self._journal.log}: {wrong}{remedy}") from wrong
        return Brain(self._journal.pool, learner, self._journal.known, think_ahead=self._think_ahead)

    def _learner_is_here(self) -> bool:
        try:
            return "(" in self._journal.ledger.learner or bool(LEARNERS[self._journal.ledger.learner])
        except InputError:
            return False

    def _serve_others(self) -> None:
        if self._journal.log.shared and self._server is None and not self._closing.is_set():
            self._server = threading.Thread(target=self._serve, name="activecover-proposals", daemon=True)
            self._server.start()

    def _serve(self) -> None:
        """Keep proposals ready for other processes, for as long as this one runs the learner."""
        log, served = self._journal.shared_log, -1
        while not self._closing.is_set():
            try:
                mark = log.mark()
                asked, there = log.demand()
                ledger = self._journal.ledger
                if asked or (there and ledger.changes - served >= max(1, ledger.active() // 2)):
                    served = self._refill(asked)
                else:
                    log.wait(mark, _LOOK)
            except (StoreError, InputError):
                # The database is away, or another process has taken over: people who ask learn about it.
                self._closing.wait(_AWAY)

    def _refill(self, asked: int) -> int:
        with self._journal.turn(lasting=False):
            ledger, brain = self._journal.ledger, self.own()
            if brain is not None:
                held = self._rows.held_from_learner()
                draws = self.draws(brain.propose(asked + 2 * ledger.active(), held))
                ready = [Ready(one.id, one.source, ledger.changes, one.chance, one.nearest) for one in draws]
                self._journal.shared_log.put_ready(ready)
            return ledger.changes

    def _take_ready(self, k: int, avoid: Collection[str] = ()) -> list[Ready]:
        """Proposals laid out by the process that runs the learner; each may miss one label of each other person."""
        ledger, log = self._journal.ledger, self._journal.shared_log
        oldest = ledger.changes - (ledger.active() - 1)
        taken: list[Ready] = []
        while len(taken) < k and (more := log.take_ready(k - len(taken), oldest)):
            # People of the other process lease past what it laid out; what is to be avoided it lays out again.
            taken += [one for one in more if one.id not in avoid and not self._rows.is_taken(one.id)]
        return taken

    def _nearest_of(self, name: str) -> str | int | None:
        return self._named(self._why.get(name, Why()).nearest)

    def _named(self, key: int) -> str | int | None:
        """A positive as the log names it: an item by its id, one from outside the pool by its number from 1."""
        if key == NO_KEY:
            return None
        return self._journal.pool.id(key) if key >= 0 else -key


def _draw(one: Ready, open_rows: int | None) -> Draw:
    return Draw(one.id, one.source, one.probability, one.nearest, open_rows)
