"""Forgetting and withdrawing: what is erased for good."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from activecover.campaign._grouping import erased_duplicates, grouping_of
from activecover.campaign._guarantee import Guarantee
from activecover.campaign._journal import Journal
from activecover.errors import ActiveCoverError, InputError
from activecover.pool import Duplicates, StoredPool
from activecover.store import Ask, events

#: Decisions that can still be undone before a negative is forgotten.
UNDO_WINDOW = 10


@dataclass(frozen=True, slots=True)
class ForgettingStatus:
    """What a campaign has forgotten, what is final and could be forgotten now, and what is kept, by the reason."""

    forgets: bool
    forgotten: list[str]
    final: list[str]
    kept: dict[str, list[str]]


class Eraser:
    """What is erased for good.

    Contract: an erasure is written to the log first and done afterwards; if a crash comes between, :meth:`finish`
    completes it when the campaign is opened again. Only final negatives are forgotten: nobody can undo them.

    Parameters
    ----------
    journal : Journal
        Of the campaign.
    guarantee : Guarantee
        While it is open, negatives must not differ by when they are forgotten.
    """

    def __init__(self, journal: Journal, guarantee: Guarantee) -> None:
        self._journal, self._guarantee = journal, guarantee
        self._seen_erasures = 0
        journal.before.append(self._regroup)
        journal.after.append(self._forget_some)

    def forget(self, window: int = UNDO_WINDOW) -> list[str]:
        """Overwrite the negatives decided before the last ``window`` decisions; the ids of those forgotten now."""
        with self._journal.turn():
            if not self._journal.ledger.forgets:
                raise InputError("this campaign was not made to forget its negatives; its pool may serve others")
            final = self.status(window).final
            self._journal.write([events.Forgotten(id=name) for name in final])
        self._erase(self._journal.pool.rows(final))
        return final

    def status(self, window: int = UNDO_WINDOW) -> ForgettingStatus:
        """What is forgotten, what is final and could be, and what is kept, and why.

        Examples
        --------
        >>> from activecover import Campaign
        >>> from activecover.pool import Pool
        >>> campaign = Campaign(Pool([[0.0], [1.0]]), "explore-commit", forget_negatives=True)
        >>> campaign.tell("0", False)
        >>> campaign.eraser.status()
        ForgettingStatus(forgets=True, forgotten=[], final=[], kept={'among the last 10 decisions, which can be undone': ['0']})
        >>> campaign.forget(window=0)
        ['0']
        """
        with self._journal.view() as ledger:
            late = set(ledger.last_decisions(window, None))
            final: list[str] = []
            kept: dict[str, list[str]] = {}
            for ask in ledger.with_state("negative", "waiting", "conflict"):
                why = _why_kept(ask, ask.id in late, window)
                if why is not None or ask.state == "negative":
                    left = [name for name in ledger.groups.members(ask.id) if name not in ledger.forgotten]
                    (final if why is None else kept.setdefault(why, [])).extend(left)
            kept = {why: names for why, names in kept.items() if names}
            return ForgettingStatus(ledger.forgets, list(ledger.forgotten), final, kept)

    def withheld(self, names: Sequence[str]) -> set[str]:
        """Of some items, those whose contents may no longer be shown, as they are or soon will be forgotten.

        Control rows are forgotten later than other negatives. As long as that must not be noticed, every negative
        decided before the last ten decisions counts as forgotten.
        """
        if not self._journal.ledger.forgets:
            return set()
        with self._journal.view() as ledger:
            gone = {name for name in names if name in ledger.forgotten}
            if self._guarantee.blind:
                recent = ledger.last_decisions(UNDO_WINDOW, None)
                # If some of the last decisions were forgotten too, those between them count as forgotten as well.
                late = set(takewhile(lambda name: name not in ledger.forgotten, recent))
                asks = {name: ledger.asks.get(ledger.groups.first(name)) for name in names}
                gone |= {name for name, ask in asks.items() if ask and ask.state == "negative" and ask.id not in late}
            return gone

    def check_kept(self, name: str, what: str = "changed") -> None:
        """Refuse to change an item that was forgotten."""
        if self.withheld([name]):
            raise InputError(f"id {name!r} was forgotten: that it is negative can no longer be {what}")

    def record_withdrawal(self, ids: Sequence[str], by: str) -> None:
        """Write that items are erased, before the caller erases them."""
        with self._journal.turn():
            self._journal.pool.rows(ids)
            self._journal.write([events.Withdrawn(id=name, by=by) for name in ids])

    def finish(self) -> None:
        """Erase what the log says is erased but a crash left in the pool."""
        ledger = self._journal.ledger
        rows = self._journal.pool.rows([*ledger.withdrawn, *ledger.forgotten])
        self._erase(rows[~self._journal.pool.withdrawn[rows]])

    def close(self, window: int | None) -> None:
        """Forget what is final; an error is made up for when the campaign is opened again."""
        if window is not None and self._journal.ledger.forgets:
            with suppress(ActiveCoverError):
                if self.status(window).final:
                    self.forget(window)

    def _regroup(self) -> None:
        """Look for duplicates among the rows by which the pool has grown, and take erased ones out of their groups."""
        ledger, pool = self._journal.ledger, self._journal.pool
        if ledger.created is None or ledger.created.duplicates is None:
            return
        if ledger.grouped_rows < len(pool):
            self._journal.write([grouping_of(pool, Duplicates.from_dict(ledger.created.duplicates), ledger)])
        if self._seen_erasures != pool.erasures:
            self._seen_erasures = pool.erasures
            self._journal.write([events.Withdrawn(id=name) for name in erased_duplicates(pool, ledger)])

    def _forget_some(self) -> None:
        """Forget what has become final, several at a time: each time the files are synced."""
        ledger = self._journal.ledger
        if not ledger.forgets:
            return
        negatives = ledger.count("negative") + ledger.duplicates("negative")
        kept = len(ledger.forgotten) + ledger.hidden
        if negatives - kept >= 2 * UNDO_WINDOW and self.status().final:
            self.forget()

    def _erase(self, rows: npt.NDArray[np.int64]) -> None:
        pool = self._journal.pool
        if not rows.size:
            return
        if isinstance(pool, StoredPool):
            pool.folder.erase(rows)
        else:
            pool.withdraw(rows)


def _why_kept(ask: Ask, late: bool, window: int) -> str | None:
    if ask.state != "negative":
        return "waiting for another label" if False in ask.opinions.values() else None
    if ask.hidden:
        # When the learner reaches it, it must find it like any other row.
        return "a control item that the learner has not reached"
    return f"among the last {window} decisions, which can be undone" if late else None
