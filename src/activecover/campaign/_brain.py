"""The learner of a campaign, kept up to date with the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.learners import Labels, Learner, Proposal, ThinkAhead
from activecover.pool import Pool
from activecover.store import Ask, Ledger

#: The number of the ask, the label, whether exploration drew it, and the items that it is the label of.
_Told = tuple[int, bool, bool, tuple[str, ...]]


class Brain:
    """A learner that follows a ledger, no matter which process wrote the events.

    Parameters
    ----------
    pool : Pool
        The items.
    learner : Learner
        One that has begun on the pool.
    known : mapping
        Items known to be positive from the start, with numbers that come before those of all asks.
    think_ahead : bool
        Whether it may use the time between questions.
    """

    def __init__(
        self, pool: Pool, learner: Learner, known: Mapping[str, int] | None = None, *, think_ahead: bool = False
    ) -> None:
        self._pool = pool
        self._known = known or {}
        self.learner: Learner | ThinkAhead = ThinkAhead(learner) if think_ahead else learner
        self._told: dict[str, _Told] = {}

    def follow(self, ledger: Ledger, changed: Iterable[str]) -> None:
        """Bring the learner up to date with some items."""
        if len(self.learner.closed_) < len(self._pool):
            self.learner.extend()
        gone, new = [], []
        for name in changed:
            before, now = self._told.get(name), self._label_of(ledger, name)
            if before == now:
                continue
            if before is not None:
                gone.append(name)
            if now is not None:
                new.append((name, now))
        if gone:
            self.learner.untell(self._pool.rows([each for name in gone for each in self._told.pop(name)[3]]))
        if new:
            self._tell(sorted(new, key=lambda pair: pair[1]))

    def follow_all(self, ledger: Ledger) -> None:
        """Bring the learner up to date with everything."""
        self.follow(ledger, dict.fromkeys([*self._known, *self._told, *ledger.asks]))

    def propose(self, k: int, held: npt.NDArray[np.int64]) -> Proposal:
        """What to ask for next."""
        return self.learner.propose(k, held)

    def think(self, ask: Ask, held: npt.NDArray[np.int64], prepare: Callable[[Proposal], Any]) -> None:
        """Find what follows either answer to an item; ``held`` are the rows that others hold."""
        if isinstance(self.learner, ThinkAhead):
            self.learner.think(ask.number, self._pool.row(ask.id), ask.source == "explore", held, prepare)

    def thought(self, name: str) -> dict[bool | None, Any]:
        """What follows either answer to an item, or none, as it was prepared; nothing if it was not thought of."""
        if not isinstance(self.learner, ThinkAhead):
            return {}
        return self.learner.thought(self._pool.row(name))

    def close(self) -> None:
        """Stop thinking."""
        if isinstance(self.learner, ThinkAhead):
            self.learner.close()

    def _tell(self, new: list[tuple[str, _Told]]) -> None:
        each = [(*told[:3], name) for _, told in new for name in told[3]]
        numbers, positive, sampled, names = zip(*each, strict=True)
        self.learner.tell(Labels.of(numbers, self._pool.rows(names), positive, sampled))
        self._told.update(new)

    def _label_of(self, ledger: Ledger, name: str) -> _Told | None:
        if name in self._known:
            return self._known[name], True, True, ledger.groups.members(name)
        ask = ledger.asks.get(name)
        # A control row is hidden until the learner itself reaches it, and is then told under that number.
        if ask is None or not ask.settled or ask.hidden:
            return None
        number = ask.number if ask.reached is None else ask.reached
        sampled = (ask.reached_by or ask.source) == "explore"
        return number, ask.state == "positive", sampled, ledger.groups.members(name)
