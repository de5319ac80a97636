"""How a campaign stands, and what has happened in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from activecover.campaign._agreement import Agreement, agreement_of
from activecover.campaign._doubting import Doubting
from activecover.campaign._items import Status
from activecover.campaign._records import records_of
from activecover.store import Event
from activecover.trace import Trace


class Reading(Doubting):
    """What can be read of a campaign."""

    def status(self) -> Status:
        """How the campaign stands."""
        with self._turn():
            ledger = self._ledger
            doubles = ledger.duplicates("positive"), ledger.duplicates("negative")
            positives, negatives = ledger.count("positive") + doubles[0], ledger.count("negative") + doubles[1]
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
                duplicates=sum(doubles),
                suspicious=self._suspects(),
                certificate=self._promise_in_words(),
                # How many draws there were would tell what the last item was.
                insurance=None if self._mixer is None or self._is_blind() else self.missed_component().sentence(),
            )

    def _phase(self) -> str:
        brain = self._own_brain()
        if brain is not None:
            return "explore" if brain.learner.exploring(self._held_from_learner()) else "commit"
        found = self._ledger.count("positive") + len(self._known) + (self._outside is not None)
        wanted = self._explore if isinstance(self._explore, int) else len(self._explore)
        drawn = sum(ask.source == "explore" for ask in self._ledger.asks.values())
        return "explore" if not found or drawn < wanted else "commit"

    def _stopped(self) -> str | None:
        found = self._ledger.count("positive") + self._ledger.duplicates("positive")
        labelled = self._ledger.count("positive", "negative")
        if self._promise is not None and (bound := self._certified()) is not None:
            return f"certified: recall at least {bound:.4g} with confidence {self._promise.confidence:g}"
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

    @property
    def overlap(self) -> int:
        """How many people have to say the same of an item."""
        return self._ledger.overlap

    def labels(self) -> dict[str, bool]:
        """The labels so far, by id, in the order asked."""
        with self._turn():
            settled, groups = self._ledger.with_state("positive", "negative"), self._ledger.groups
            return {name: ask.state == "positive" for ask in settled for name in groups.members(ask.id)}

    def duplicates(self) -> int:
        """How many items are not asked for themselves, as a duplicate of theirs is."""
        with self._turn():
            return len(self._ledger.groups)

    def records(self) -> list[dict[str, Any]]:
        """One record per item that was asked for: its label, who gave it, when, and why it was asked."""
        with self._turn():
            return records_of(self.log.read(), self._ledger)

    def history(self, id: str | None = None) -> list[Event]:
        """All events, or those of one item, in order."""
        with self._turn():
            first = id if id is None else self._ledger.groups.first(id)
            return [event for event in self.log.read() if id is None or event.get("id") in (id, first)]

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

    def agreement(self) -> Agreement:
        """How far people agree who labelled the same items."""
        with self._turn():
            return agreement_of([ask.opinions for ask in self._ledger.asks.values() if len(ask.opinions) > 1])
