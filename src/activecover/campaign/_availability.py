"""Which rows of a pool can be asked for now."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from activecover.campaign._journal import Journal
from activecover.store import Ask, State

Rows = npt.NDArray[np.int64]
#: States in which a person has an item, has put it aside, or has still to say something about it.
_HELD: tuple[State, ...] = ("leased", "skipped", "unsure", "waiting", "conflict")


class Availability:
    """Rows that are held, open, or gone, worked out from the ledger and the pool; it changes nothing.

    Parameters
    ----------
    journal : Journal
        Of the campaign.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._erased = (-1, False)
        #: The version of the groups, and the rows that others stand for.
        self._duplicates = (-1, np.zeros(0, np.int64))

    def held(self) -> Rows:
        """The rows that nobody may be asked for now."""
        return self._with_duplicates(self._on_hold())

    def held_from_learner(self) -> Rows:
        """The rows that the learner may not propose; it must not know that somebody has a control row."""
        asks = self._journal.ledger.with_state(*_HELD)
        return self._with_duplicates(self._journal.pool.rows([ask.id for ask in asks if not ask.hidden]))

    def stood_for(self) -> Rows:
        """The rows that are never asked for, as a duplicate stands for them."""
        groups = self._journal.ledger.groups
        # Rebuilt groups count their versions from the start again.
        version = hash((self._journal.rebuilt, groups.version))
        if self._duplicates[0] != version:
            self._duplicates = (version, self._journal.pool.rows(list(groups)))
        return self._duplicates[1]

    def unlabelled(self) -> int:
        """How many items could still be labelled."""
        ledger, pool, known = self._journal.ledger, self._journal.pool, self._journal.known
        if not self._any_erased():
            return len(pool) - ledger.count("positive", "negative") - len(known) - len(ledger.groups)
        closed = pool.withdrawn.copy()
        closed[pool.rows([*(ask.id for ask in ledger.with_state("positive", "negative")), *known])] = True
        closed[self.stood_for()] = True
        return int((~closed).sum())

    def unasked(self) -> int:
        """How many items nobody has and nobody has put aside."""
        held = self._on_hold()
        erased = int(self._journal.pool.withdrawn[held].sum()) if self._any_erased() else 0
        return self.unlabelled() - (len(held) - erased)

    def not_erased(self, asks: Sequence[Ask]) -> list[Ask]:
        """The asks whose items are still in the pool."""
        pool = self._journal.pool
        return [ask for ask in asks if not self._any_erased() or not pool.withdrawn[pool.row(ask.id)]]

    def is_taken(self, name: str) -> bool:
        """Whether an item cannot be leased: someone has it, a duplicate stands for it, or it is gone."""
        ask = self._journal.ledger.asks.get(name)
        if self._journal.ledger.groups.first(name) != name:
            return True
        # A control row is taken, but the process that runs the learner has to notice that the learner reached it.
        taken = ask is not None and ask.state != "open" and not ask.hidden
        return taken or bool(self._journal.pool.withdrawn[self._journal.pool.row(name)])

    def _any_erased(self) -> bool:
        pool = self._journal.pool
        if self._erased[0] != pool.erasures:
            self._erased = (pool.erasures, bool(pool.withdrawn.any()))
        return self._erased[1]

    def _on_hold(self) -> Rows:
        return self._journal.pool.rows([ask.id for ask in self._journal.ledger.with_state(*_HELD)])

    def _with_duplicates(self, held: Rows) -> Rows:
        return np.concatenate([held, self.stood_for()]) if len(self._journal.ledger.groups) else held
