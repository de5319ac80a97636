"""Forgetting: what turned out negative is overwritten once nobody can take it back any more."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import numpy.typing as npt

from activecover.campaign._book import Book
from activecover.errors import ActiveCoverError, InputError
from activecover.pool import StoredPool

#: Decisions that can still be undone before a negative is forgotten.
UNDO_WINDOW = 10


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
        with self._turn():
            late = set(self._ledger.last_decisions(window, None))
            # A learner that has not come by a control row yet must find it as it finds all others.
            final = [ask for ask in self._ledger.with_state("negative") if not ask.hidden]
            asks = [ask for ask in final if ask.id not in late]
            names = [name for ask in asks for name in self._ledger.groups.members(ask.id)]
            return [name for name in names if name not in self._ledger.forgotten]

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

    def _forget_at_the_end(self) -> None:
        """When a campaign is closed; what goes wrong then is made up for when it is opened again."""
        if self._ledger.created is not None and self._forgets():
            with suppress(ActiveCoverError):
                self.forget()

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
