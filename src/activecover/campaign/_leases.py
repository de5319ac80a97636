"""Leases: the items that each person has and until when, items shown ahead of time, and second opinions."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from activecover.campaign._availability import Availability
from activecover.campaign._journal import Journal
from activecover.campaign._promises import Promises
from activecover.campaign._proposals import Draw, Proposals
from activecover.campaign._sources import Sources
from activecover.errors import StoreError
from activecover.learners import Proposal
from activecover.store import Ask, Event, events

#: Seconds after which a waiting process says again what it wants, and looks whether the other one is still alive.
_AGAIN = 0.25


class Leases:
    """Leases of items to people.

    Contract: an item is leased to one person at a time, and to nobody while it is settled; the same person gets the
    same items again until these are told, put aside, released, or the lease expires. Every ``asked`` event is built
    by :meth:`asked`.

    Parameters
    ----------
    journal : Journal
        Of the campaign.
    rows : Availability
        Which rows can be asked for.
    sources : Sources
        Where new rows come from.
    proposals : Proposals
        The learner's, for items that were shown ahead of time.
    seconds : float or None
        How long a lease lasts; None for ever.
    patience : float
        Seconds to wait for the process that runs the learner.
    """

    def __init__(
        self,
        journal: Journal,
        rows: Availability,
        sources: Sources,
        proposals: Proposals,
        *,
        seconds: float | None,
        patience: float,
    ) -> None:
        self._journal, self._rows, self._sources, self._proposals = journal, rows, sources, proposals
        self._seconds, self._patience = seconds, patience
        self.promises = Promises()
        #: What was shown ahead of time, by its name.
        self._shown: dict[str, Proposal] = {}

    def of(self, by: str) -> list[Ask]:
        """The items that someone has."""
        ledger = self._journal.ledger
        mine = [ask for ask in ledger.with_state("leased") if ask.by == by]
        if ledger.overlap > 1:
            mine += [ask for ask in ledger.with_state("waiting", "conflict") if by in ask.also]
        return self._rows.not_erased(mine)

    def fill(self, k: int, allowed: int, by: str, shown: str | None, avoid: Collection[str]) -> list[Ask] | None:
        """What someone has, filled up to ``k`` with at most ``allowed`` new items; None if these must be waited for."""
        mine = self.of(by)[:k]
        missing = min(k - len(mine), allowed)
        if missing <= 0:
            return mine
        new = self._lease(missing, by, shown, {*avoid, *self.promises.to_others(by)})
        return None if new is None else [*mine, *new]

    def expire(self) -> None:
        """Take back the items whose leases have run out."""
        now, ledger = self._journal.clock(), self._journal.ledger
        late = [
            (ask.id, ask.by) for ask in ledger.with_state("leased") if ask.expires is not None and ask.expires <= now
        ]
        for ask in ledger.with_state("waiting", "conflict"):
            late += [(ask.id, who) for who, end in ask.also.items() if end is not None and end <= now]
        self._journal.write([events.Released(id=name, by=who, why="expired") for name, who in late])

    def expiry(self) -> float | None:
        """When a lease that begins now ends."""
        return None if self._seconds is None else self._journal.clock() + self._seconds

    def asked(self, draw: Draw, by: str, place: int = 0) -> events.Asked:
        """The event by which someone is asked for an item, after ``place`` other asks in the same write."""
        ledger = self._journal.ledger
        return events.Asked(
            id=draw.id,
            by=by,
            number=ledger.next_number + place,
            source=draw.source,
            rule=draw.rule or ledger.learner,
            probability=draw.chance,
            open=draw.open,
            position=len(self._journal.log),
            batch=ledger.next_batch,
            expires=self.expiry(),
            nearest=draw.nearest,
        )

    def show(self, who: str, thoughts: dict[str, Proposal]) -> bool:
        """Promise someone the items that their page shows; whether all of them are still free."""
        self._shown = dict(thoughts)
        self.promises.make(who, thoughts)
        return not any(self._rows.is_taken(name) for name in thoughts)

    def wait(self, k: int, by: str) -> None:
        """Wait until the process that runs the learner has laid something out, or is gone."""
        log, patience = self._journal.shared_log, Patience(self._patience)
        log.want(by, k)
        while True:
            mark = log.mark()
            if not log.is_wanted(by):
                return
            if patience.is_over():
                raise StoreError(
                    f"{log}: no proposals after {self._patience:g} s: the process that makes them is stuck; stop it"
                )
            if not log.wait(mark, _AGAIN):
                if log.try_brain():
                    return
                log.want(by, k)

    def _lease(self, k: int, by: str, shown: str | None, avoid: Collection[str]) -> list[Ask] | None:
        """Lease up to ``k`` items that nobody has; None if they have to be waited for."""
        asks = self._second_opinions(k, by)
        if shown is not None and len(asks) < k and self.promises.are_kept(by, shown):
            asks += self._lease_shown(shown, by)
        if len(asks) < k:
            proposed = self._lease_next(k - len(asks), by, avoid)
            if proposed is None and not asks:
                return None
            asks += proposed or []
        return asks

    def _lease_next(self, k: int, by: str, avoid: Collection[str]) -> list[Ask] | None:
        draws = self._sources.next(k, avoid)
        if draws is None:
            return None
        new: list[Event] = [self.asked(one, by, place) for place, one in enumerate(draws)]
        if len(new) < k and self._rows.unasked() - len(new) <= 0:
            new += self._second_round(k - len(new), by, len(new))
        asks = self._write(new)
        if self._sources.mixed and 0 < len(asks) < k:
            # Another source fills up what one had no rows left for: a short answer would reveal which one it was.
            asks += self._lease_next(k - len(asks), by, avoid) or []
        return asks

    def _lease_shown(self, name: str, by: str) -> list[Ask]:
        """Lease an item that its person has seen already; its choice may miss one label of somebody else."""
        proposal = self._shown.pop(name, None)
        if proposal is None or self._rows.is_taken(name) or self._proposals.own() is None:
            return []
        return self._write([self.asked(one, by, place) for place, one in enumerate(self._proposals.draws(proposal))])

    def _second_opinions(self, k: int, by: str) -> list[Ask]:
        """Lease items that others have labelled and that need this person's opinion too."""
        if self._journal.ledger.overlap == 1:
            return []
        return self._write(self._shared([ask for ask in self._wanting(by) if by not in ask.declined][:k], by))

    def _wanting(self, by: str) -> list[Ask]:
        """Items that still need an opinion which this person may give."""
        overlap = self._journal.ledger.overlap
        return [
            ask for ask in self._rows.not_erased(self._journal.ledger.with_state("waiting"))
            if by not in ask.opinions and by not in ask.also and len(ask.opinions) + len(ask.also) < overlap
        ]  # fmt: skip

    def _shared(self, asks: Sequence[Ask], by: str) -> list[events.Shared]:
        return [events.Shared(id=ask.id, by=by, expires=self.expiry()) for ask in asks]

    def _second_round(self, k: int, by: str, asked: int) -> list[Event]:
        """Items put aside come back when nothing else is left, skipped ones first."""
        ledger = self._journal.ledger
        aside = self._rows.not_erased([*ledger.with_state("skipped"), *ledger.with_state("unsure")])[:k]
        again = [self.asked(Draw(ask.id, ask.source), by, asked + place) for place, ask in enumerate(aside)]
        declined = [ask for ask in self._wanting(by) if by in ask.declined] if ledger.overlap > 1 else []
        return [*again, *self._shared(declined[: k - len(again)], by)]

    def _write(self, new: Sequence[Event]) -> list[Ask]:
        self._journal.write(new)
        return [self._journal.ledger.asks[str(event.id)] for event in new]


class Patience:
    """Time in which this process was awake: a machine that slept, or was stopped, does not use it up.

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
