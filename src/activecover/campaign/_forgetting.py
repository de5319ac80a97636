"""Forgetting: what turned out negative is overwritten once nobody can take it back any more."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from activecover.campaign._book import Book
from activecover.errors import ActiveCoverError, InputError
from activecover.pool import StoredPool
from activecover.store import Ask

#: Decisions that can still be undone before a negative is forgotten.
UNDO_WINDOW = 10


@dataclass(frozen=True, slots=True)
class ForgettingStatus:
    """What a campaign has forgotten, what is final and could be forgotten now, and what is kept, by the reason."""

    forgets: bool
    forgotten: list[str]
    final: list[str]
    kept: dict[str, list[str]]


class Forgetting(Book):
    """What is erased for good: first it is written down, then done; a crash in between is made up for."""

    def forget(self, window: int = UNDO_WINDOW) -> list[str]:
        """Overwrite what turned out negative before the last ``window`` decisions; the ids of what is forgotten now.

        A campaign that forgets does so by itself, some decisions at a time and when it is closed.
        """
        with self._turn():
            if not self._forgets():
                raise InputError("this campaign was not made to forget its negatives; its pool may serve others")
            final = self.final_negatives(window)
            self._write([{"event": "forgotten", "id": name} for name in final])
        self._erase(self.pool.rows(final))
        return final

    def final_negatives(self, window: int = UNDO_WINDOW) -> list[str]:
        """Negatives that nobody will undo: decided before the last ``window`` decisions, and not forgotten yet."""
        return self.forgetting(window).final

    def forgetting(self, window: int = UNDO_WINDOW) -> ForgettingStatus:
        """What is forgotten, what is final and could be, and what is kept, and why.

        Examples
        --------
        >>> from activecover import Campaign, Pool
        >>> campaign = Campaign(Pool([[0.0], [1.0]]), "explore-commit", forgets=True)
        >>> campaign.tell("0", False)
        >>> campaign.forgetting()
        ForgettingStatus(forgets=True, forgotten=[], final=[], kept={'among the last 10 decisions, which can be undone': ['0']})
        >>> campaign.forget(window=0)
        ['0']
        """
        with self._turn():
            late = set(self._ledger.last_decisions(window, None))
            final: list[str] = []
            kept: dict[str, list[str]] = {}
            for ask in self._ledger.with_state("negative", "waiting", "conflict"):
                why = self._why_kept(ask, ask.id in late, window)
                if why is not None or ask.state == "negative":
                    names = self._ledger.groups.members(ask.id)
                    left = [name for name in names if name not in self._ledger.forgotten]
                    (final if why is None else kept.setdefault(why, [])).extend(left)
            kept = {why: names for why, names in kept.items() if names}
            return ForgettingStatus(self._forgets(), list(self._ledger.forgotten), final, kept)

    def _why_kept(self, ask: Ask, late: bool, window: int) -> str | None:
        if ask.state != "negative":
            return "waiting for another label" if False in ask.opinions.values() else None
        if ask.hidden:
            # When the learner comes by it, it must find it as it finds all others.
            return "a control item that the learner has not reached"
        return f"among the last {window} decisions, which can be undone" if late else None

    def forgotten(self) -> list[str]:
        """The items whose vectors and contents were given up."""
        with self._turn():
            return list(self._ledger.forgotten)

    def _forgets(self) -> bool:
        return bool((self._ledger.created or {}).get("forgets"))

    def _afterwards(self) -> None:
        """Forget what has become final, some at a time: each time the files are synced."""
        if not self._forgets():
            return
        negatives = self._ledger.count("negative") + self._ledger.duplicates("negative")
        kept = len(self._ledger.forgotten) + self._ledger.hidden
        if negatives - kept >= 2 * UNDO_WINDOW and self.final_negatives():
            self.forget()

    def _forget_at_the_end(self, window: int | None) -> None:
        """When a campaign is closed; what goes wrong then is made up for when it is opened again."""
        if window is not None and self._ledger.created is not None and self._forgets():
            with suppress(ActiveCoverError):
                self.forget(window)

    def _erase_left_over(self) -> None:
        """Erase what the log says is erased, and what is still there, as a crash came between."""
        rows = self.pool.rows([*self._ledger.withdrawn, *self._ledger.forgotten])
        self._erase(rows[~self.pool.withdrawn[rows]])

    def _erase(self, rows: npt.NDArray[np.int64]) -> None:
        if not rows.size:
            return
        if isinstance(self.pool, StoredPool):
            self.pool.folder.erase(rows)
        else:
            self.pool.withdraw(rows)
