"""The learner of a campaign: run by one process, for itself and for all others."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from activecover.campaign._book import Book
from activecover.campaign._brain import Brain
from activecover.campaign._items import Why
from activecover.errors import StoreError
from activecover.frontier import NO_KEY
from activecover.learners import Learner, Proposal, ThinkAhead
from activecover.store import Ask, Ready, SharedLog


class Proposing(Book):
    """What to ask for next, and why."""

    @property
    def learner(self) -> Learner | ThinkAhead:
        """What decides, up to date with the log."""
        with self._turn():
            brain = self._own_brain()
            if brain is None:
                raise StoreError(f"{self.log}: another process runs the learner of this campaign")
            return brain.learner

    def _own_brain(self) -> Brain | None:
        """The learner, up to date, if it is for this process to run it."""
        if not self.log.try_brain():
            return None
        if self._brain is None:
            learner = self._make_learner().begin(self.pool, seed=self.seed, outside=self._outside)
            self._brain = Brain(self.pool, learner, self._known, think_ahead=self._think_ahead)
            self._changed = dict.fromkeys([*self._known, *self._ledger.asks])
            if isinstance(self.log, SharedLog):
                self._server = threading.Thread(target=self._serve, args=(self.log,), daemon=True)
                self._server.start()
        self._brain.follow(self._ledger, self._changed)
        self._changed.clear()
        return self._brain

    def _serve(self, log: SharedLog) -> None:
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

    def _refill(self, log: SharedLog, asked: int) -> int:
        with self._turn(lasting=False):
            brain = self._own_brain()
            if brain is not None:
                proposal = brain.propose(asked + 2 * self._ledger.active(), self._held_from_learner())
                self._remember_why(proposal)
                log.put_ready(self._ready_of(proposal))
            return self._ledger.changes

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

    def _remember_why(self, proposal: Proposal) -> None:
        for place, row in enumerate(proposal.rows.tolist()):
            self._why[self.pool.id(row)] = Why.of(proposal, place)

    def _recorded_nearest(self, name: str) -> str | None:
        """What the log may say of why an item was asked for: nothing, where negatives are to be forgotten."""
        return None if self._forgets() else self._nearest_of(name)

    def _forgets(self) -> bool:
        return bool((self._ledger.created or {}).get("forgets"))

    def _nearest_of(self, name: str) -> str | None:
        """Which positive an item was proposed for, as far as it is known."""
        key = self._why.get(name, Why()).nearest
        if key == NO_KEY:
            return None
        return self._named(key)

    def _named(self, key: int) -> str:
        return self.pool.id(key) if key >= 0 else f"known positive {-key} from outside"

    def _held(self) -> npt.NDArray[np.int64]:
        """The rows that nobody may be asked for now."""
        return self._with_duplicates(self._on_hold())

    def _held_from_learner(self) -> npt.NDArray[np.int64]:
        """The rows that the learner may not propose: of control rows it must not know that somebody has them."""
        held = self._ledger.with_state("leased", "skipped", "unsure", "waiting", "conflict")
        return self._with_duplicates(self.pool.rows([ask.id for ask in held if not ask.hidden]))

    def _on_hold(self) -> npt.NDArray[np.int64]:
        """The rows that someone has, or has put aside."""
        held = self._ledger.with_state("leased", "skipped", "unsure", "waiting", "conflict")
        return self.pool.rows([ask.id for ask in held])

    def _with_duplicates(self, held: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.concatenate([held, self._stood_for()]) if len(self._ledger.groups) else held

    def _stood_for(self) -> npt.NDArray[np.int64]:
        """The rows that are never asked for themselves, as a duplicate of theirs is."""
        version = self._ledger.groups.version
        if self._duplicates[0] != version:
            self._duplicates = (version, self.pool.rows(list(self._ledger.groups)))
        return self._duplicates[1]

    def _unlabelled(self) -> int:
        """How many items could still be asked for."""
        if not self.pool.withdrawn.any():
            settled = self._ledger.count("positive", "negative") + len(self._known)
            return len(self.pool) - settled - len(self._ledger.groups)
        closed = self.pool.withdrawn.copy()
        names = [ask.id for ask in self._ledger.with_state("positive", "negative")]
        closed[self.pool.rows([*names, *self._known])] = True
        closed[self._stood_for()] = True
        return int((~closed).sum())

    def _unasked(self) -> int:
        """How many items nobody has and nobody has put aside."""
        held = self._on_hold()
        return self._unlabelled() - int((~self.pool.withdrawn[held]).sum())

    def _not_erased(self, asks: list[Ask]) -> list[Ask]:
        if self._erased[0] != self.pool.erasures:
            self._erased = (self.pool.erasures, bool(self.pool.withdrawn.any()))
        if not self._erased[1]:
            return asks
        return [ask for ask in asks if not self.pool.withdrawn[self.pool.rows([ask.id])[0]]]
