"""The short way from one item to the next: what follows either answer is known before it is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from activecover.campaign._answering import Answering
from activecover.campaign._checks import yes_or_no
from activecover.campaign._items import Item
from activecover.frontier import NO_KEY
from activecover.learners import Proposal


class Foreseeing(Answering):
    """Answer and ask in one go."""

    def answer(self, id: str, label: Any, by: str = "me", k: int = 1) -> list[Item]:
        """Tell what an item is and ask for the next, in one go: one write instead of two."""
        with self._turn():
            items = self._answer_foreseen(id, label, by) if k == 1 else None
            if items is None:
                self.tell(id, label, by)
                items = self._ask_once(k, by)
        return self._waited(k, by) if items is None else items

    def _answer_foreseen(self, id: str, label: Any, by: str) -> list[Item] | None:
        """The short way where nothing has happened since an item was asked for: what follows is known already."""
        moment = self._moment(id, by)
        if self._brain is None or moment is None or self._awaited != moment or self._is_late():
            return None
        answer, ask = yes_or_no(label), self._ledger.asks[id]
        confirmed = self._brain.confirm(ask, answer)
        if confirmed is None:
            return None
        proposal, held = confirmed
        self._note = proposal.unavailable
        left = self._brain.learner.unlabelled - len(held)
        row, random = int(proposal.rows[0]), bool(proposal.explored)
        name = self.pool.id(row)
        self._why[name] = (float(proposal.distances[0]), int(proposal.nearest[0]))
        # A row that comes back after it was released is not a new draw.
        fresh = isinstance(self._explore, int) and name not in self._ledger.asks
        chance = (1 / left if fresh else None) if random else 1.0
        asked = self._asked(name, "explore" if random else "learner", chance, by, self._ledger.next_number)
        asked["open"], asked["position"] = left, asked["position"] + 1
        if (nearest := self._recorded_nearest(name)) is not None:
            asked["nearest"] = nearest
        self._write([{"event": "told", "id": id, "label": int(answer), "by": by}, asked])
        self._changed.clear()
        following = self._ledger.asks[name]
        self._think(following, by, held)
        return [self._item(following)]

    def _is_late(self) -> bool:
        """Whether a lease has run out, so that an item is free which was not when the next one was thought of."""
        if self._lease is None:
            return False
        now = self._clock()
        return any(ask.expires is not None and ask.expires <= now for ask in self._ledger.with_state("leased"))

    def ahead(self, id: str) -> dict[bool, Item]:
        """What :meth:`answer` will return for either answer to an item, if nobody else asks before.

        Nothing is leased by it. It needs ``think_ahead``, and waits until the thought is there; where an
        answer was not thought of, or several people are at work, it is missing.
        """
        with self._lock:
            brain, alone = self._brain, self._ledger.active() == 1 and self._ledger.overlap == 1
        thoughts = brain.thought(id) if brain is not None and alone else {}
        return {answer: self._foreseen(proposal) for answer, proposal in thoughts.items() if len(proposal)}

    def _foreseen(self, proposal: Proposal) -> Item:
        row, distance, key = (int(proposal.rows[0]), float(proposal.distances[0]), int(proposal.nearest[0]))
        nearest = None if key == NO_KEY else self._named(key)
        source = "explore" if proposal.explored else "learner"
        name = self.pool.id(row)
        far = None if np.isnan(distance) else distance
        return Item(name, self.pool.content(row), source, far, nearest, tuple(self._ledger.groups.others(name)))
