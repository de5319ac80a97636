"""What can be read of a campaign: its status, its labels, its history, and items as people see them."""

from __future__ import annotations

from typing import Any

import numpy as np

from activecover.campaign._agreement import Agreement, agreement_of
from activecover.campaign._availability import Availability
from activecover.campaign._guarantee import Guarantee
from activecover.campaign._items import BLIND, Item, Status
from activecover.campaign._journal import Journal
from activecover.campaign._proposals import Proposals
from activecover.campaign._records import records_of
from activecover.campaign._settings import Settings
from activecover.campaign._suspects import Suspects, Suspicion
from activecover.learners import Proposal
from activecover.store import Ask, Line
from activecover.trace import Trace


class Reports:
    """What can be read of a campaign.

    Contract: reading takes no turn, writes nothing, builds no learner and starts no thread; everything is folded from
    the log.

    Parameters
    ----------
    journal, rows, proposals, guarantee, suspects
        Of the campaign.
    settings : Settings
        Of the campaign, with the limits that hold now.
    """

    def __init__(
        self,
        journal: Journal,
        rows: Availability,
        proposals: Proposals,
        guarantee: Guarantee,
        suspects: Suspects,
        settings: Settings,
    ) -> None:
        self._journal, self._rows, self._proposals = journal, rows, proposals
        self._guarantee, self._suspects, self._settings = guarantee, suspects, settings

    def item(self, ask: Ask) -> Item:
        """An item as people see it."""
        content = self._journal.pool.content(self._journal.pool.row(ask.id))
        if self._guarantee.blind:
            return Item(ask.id, content, BLIND)
        why, nearest = self._proposals.why(ask)
        others = tuple(self._journal.ledger.groups.others(ask.id))
        return Item(ask.id, content, ask.source, why.far, nearest, others, why.because)

    def foreseen(self, proposal: Proposal) -> tuple[Item, Proposal]:
        """The item that a proposal begins with, made while someone looks at another one."""
        pool = self._journal.pool
        row, (why, nearest) = int(proposal.rows[0]), self._proposals.why_of(proposal)
        name, source = pool.id(row), "explore" if proposal.explored else "learner"
        others = tuple(self._journal.ledger.groups.others(name))
        return Item(name, pool.content(row), source, why.far, nearest, others, why.because), proposal

    def status(self) -> Status:
        """Counts, limits, and what stopped the campaign."""
        with self._journal.view() as ledger:
            doubles = ledger.duplicates("positive"), ledger.duplicates("negative")
            positives, negatives = ledger.count("positive") + doubles[0], ledger.count("negative") + doubles[1]
            secret = self._guarantee.mixer is None or self._guarantee.blind
            return Status(
                rows=len(self._journal.pool),
                labelled=positives + negatives,
                positives=positives,
                negatives=negatives,
                known=len(self._journal.known),
                leased=ledger.count("leased"),
                skipped=ledger.count("skipped"),
                unsure=ledger.count("unsure"),
                unlabelled=self._rows.unlabelled(),
                phase="explore" if self._proposals.exploring() else "commit",
                learner=ledger.learner,
                budget=self._settings.budget,
                target=self._settings.target,
                stopped=self._stopped(),
                note=self._proposals.note,
                waiting=ledger.count("waiting"),
                conflicts=ledger.count("conflict"),
                duplicates=sum(doubles),
                suspicious=self._suspects.count(),
                certificate=self._guarantee.in_words(),
                # The number of draws would reveal what the last item was.
                insurance=None if secret else self._guarantee.missed_component().sentence(),
            )

    def allowance(self) -> int:
        """How many more items the limits let us ask for."""
        ledger, budget, target = self._journal.ledger, self._settings.budget, self._settings.target
        if self._guarantee.certified() is not None or (target is not None and self._found() >= target):
            return 0
        if budget is None:
            return len(self._journal.pool)
        return max(0, budget - ledger.count("positive", "negative", "leased"))

    def labels(self) -> dict[str, bool]:
        """The labels so far, by id, in the order asked."""
        with self._journal.view() as ledger:
            settled, groups = ledger.with_state("positive", "negative"), ledger.groups
            return {name: ask.state == "positive" for ask in settled for name in groups.members(ask.id)}

    def history(self, id: str | None = None) -> list[Line]:
        """All events, or those of one item, in order."""
        with self._journal.view() as ledger:
            names = (id, id if id is None else ledger.groups.first(id))
            return [line for line in self._journal.log.read() if id is None or line.get("id") in names]

    def records(self) -> list[dict[str, Any]]:
        """One record per item that was asked for: its label, who gave it, when, and why it was asked."""
        with self._journal.view() as ledger:
            return records_of(self._journal.log.read(), ledger)

    def trace(self, learner: str, seed: int) -> Trace:
        """What was asked and found so far."""
        with self._journal.view() as ledger:
            asks = ledger.with_state("positive", "negative")
            explored = np.array([ask.source == "explore" for ask in asks], bool)
            batch = np.array([ask.batch for ask in asks], np.int64)
            # Batch 0 is the random sample; the others count up from 1, however they were asked for.
            later = np.unique(batch[~explored], return_inverse=True)[1]
            batch[explored], batch[~explored] = 0, 1 + later
            return Trace(
                rows=self._journal.pool.rows([ask.id for ask in asks]),
                positive=np.array([ask.state == "positive" for ask in asks], bool),
                batch=batch,
                explored=explored,
                pool_rows=len(self._journal.pool),
                learner=learner,
                seed=seed,
            )

    def conflicts(self) -> list[tuple[Item, dict[str, bool]]]:
        """Items on which people disagree, with each person's opinion."""
        with self._journal.view() as ledger:
            return [(self.item(ask), dict(ask.opinions)) for ask in ledger.with_state("conflict")]

    def agreement(self) -> Agreement:
        """The agreement of people who labelled the same items."""
        with self._journal.view() as ledger:
            return agreement_of([ask.opinions for ask in ledger.asks.values() if len(ask.opinions) > 1])

    def suspects(self) -> list[Suspicion]:
        """Positives that deserve a second look."""
        with self._journal.view() as ledger:
            reasons = self._suspects.reasons()
            return [Suspicion(self.item(ledger.asks[name]), why) for name, why in reasons.items()]

    def _found(self) -> int:
        """How many items of the pool were found positive, duplicates included."""
        return self._journal.ledger.count("positive") + self._journal.ledger.duplicates("positive")

    def _stopped(self) -> str | None:
        ledger, budget, target = self._journal.ledger, self._settings.budget, self._settings.target
        labelled, leased = ledger.count("positive", "negative"), ledger.count("leased")
        rule, left = self._guarantee.rule, self._rows.unlabelled()
        if rule is not None and (bound := self._guarantee.certified()) is not None:
            return f"certified: recall at least {bound:.4g} with confidence {rule.confidence:g}"
        if target is not None and self._found() >= target:
            return f"target reached: {self._found()} positives found"
        if budget is not None and labelled >= budget:
            return f"budget spent: {labelled} labels"
        if not left:
            return "every item is labelled"
        if leased and (leased == left or (budget and labelled + leased >= budget)):
            return f"waiting: all that may still be asked for is leased ({leased})"
        return None
