"""The short way from one item to the next: what follows either answer is known before it is given."""

from __future__ import annotations

from typing import Any

from activecover.campaign._answering import Answering
from activecover.campaign._checks import yes_or_no
from activecover.campaign._items import Item, Why


class Foreseeing(Answering):
    """Answer and ask in one go."""

    def answer(self, id: str, label: Any, by: str = "me", k: int = 1, *, shown: str | None = None) -> list[Item]:
        """Tell what an item is and ask for the next, in one go: one write instead of two.

        The next is the item that :meth:`ahead` has ``shown`` already, where that is said and nobody has it.
        """
        with self._turn():
            items = self._answer_foreseen(id, label, by) if k == 1 else None
            if items is None:
                self.tell(id, label, by)
                items = self._ask_once(k, by, shown)
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
        foreseen, held = confirmed
        item, proposal = foreseen.item, foreseen.proposal
        self._note = proposal.unavailable
        left = self._brain.learner.unlabelled - len(held)
        self._why[item.id] = Why.of(proposal, 0)
        # A row that comes back after it was released is not a new draw.
        fresh = isinstance(self._explore, int) and item.id not in self._ledger.asks
        chance = (1 / left if fresh else None) if proposal.explored else 1.0
        asked = self._asked(item.id, item.source, chance, by, self._ledger.next_number)
        asked["open"], asked["position"] = left, asked["position"] + 1
        if item.nearest is not None and not self._forgets():
            asked["nearest"] = item.nearest
        self._write([{"event": "told", "id": id, "label": int(answer), "by": by}, asked])
        self._changed.clear()
        self._think(self._ledger.asks[item.id], by, held)
        return [item]

    def _is_late(self) -> bool:
        """Whether a lease has run out, so that an item is free which was not when the next one was thought of."""
        if self._lease is None:
            return False
        now = self._clock()
        return any(ask.expires is not None and ask.expires <= now for ask in self._ledger.with_state("leased"))

    def ahead(self, id: str) -> dict[bool | None, Item]:
        """What :meth:`answer` will return for either answer to an item, and what comes if it is put aside (None).

        That is if nobody else asks before; nothing is leased by it. It needs ``think_ahead``, and waits until the
        thought is there; where an answer was not thought of, or several people are at work, it is missing.
        """
        with self._lock:
            brain, alone = self._brain, self._ledger.active() == 1 and self._ledger.overlap == 1
        thoughts = brain.thought(id) if brain is not None and alone else {}
        if thoughts:
            with self._lock:
                self._shown = {thought.item.id: thought.proposal for thought in thoughts.values()}
        return {answer: thought.item for answer, thought in thoughts.items()}
