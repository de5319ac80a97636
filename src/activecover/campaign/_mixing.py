"""Asks of several sources: what the learner proposes, and beside it draws that certify or insure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from activecover.campaign._asking import Asking
from activecover.campaign._mixer import Mixer, Source, was_drawn
from activecover.store import Ask, Event, Ready, SharedLog

#: Stands for the chance of a row drawn uniformly, until its place among the others is known.
_BY_CHANCE = 0.0


class Mixing(Asking):
    """Leases where not all asks are the learner's.

    Control rows are hidden from the learner: it takes them for open rows. Where it proposes one, that is
    written down (``reached``), the label that is there already is told to it, and it proposes again.
    """

    def _lease_proposed(self, k: int, by: str, avoid: Collection[str]) -> list[Ask] | None:
        if self._mixer is None:
            return super()._lease_proposed(k, by, avoid)
        # Nothing is shown ahead here, so that there is nothing to avoid, and chance alone decides on draws.
        explore = self._explore if isinstance(self._explore, int) else len(self._explore)
        sources = self._mixer.sources(k, self._ledger, explore)
        review = self._review(sources.count("learner"))
        events = self._mixed(self._mixer, sources, review or [], by)
        if not events and review is None and self._unasked() > 0:
            return None
        if len(events) < k and self._unasked() - len(events) <= 0:
            events += self._second_round(k - len(events), by, len(events))
        self._write(events)
        asks = [self._ledger.asks[event["id"]] for event in events]
        if 0 < len(asks) < k:
            # Another source fills up what one had no rows left for: a short answer would tell which one it was.
            asks += self._lease_proposed(k - len(asks), by, avoid) or []
        return asks

    def _review(self, k: int) -> list[Ready] | None:
        """The learner's next ``k`` rows that nobody was asked for; None where they have to be waited for."""
        found: list[Ready] = []
        while len(found) < k:
            proposed = self._of_learner(k - len(found), [one.id for one in found])
            if proposed is None:
                return found or None
            passed = [one for one in proposed if self._is_control(one.id)]
            self._reach(passed)
            found += [one for one in proposed if one not in passed]
            if not passed:
                break
        return found

    def _of_learner(self, k: int, taken: Sequence[str]) -> list[Ready] | None:
        brain = self._own_brain()
        if brain is None:
            assert isinstance(self.log, SharedLog)
            return self._take_ready(self.log, k) or None
        proposal = brain.propose(k, np.concatenate([self._held_from_learner(), self.pool.rows(taken)]))
        self._note = proposal.unavailable
        self._remember_why(proposal)
        return self._ready_of(proposal)

    def _is_control(self, name: str) -> bool:
        ask = self._ledger.asks.get(name)
        return ask is not None and ask.hidden and ask.state != "open"

    def _reach(self, passed: Sequence[Ready]) -> None:
        number = self._ledger.next_number
        self._write(
            [
                {"event": "reached", "number": number + place, "id": one.id, "source": one.source}
                for place, one in enumerate(passed)
            ]
        )

    def _mixed(self, mixer: Mixer, sources: Sequence[Source], review: Sequence[Ready], by: str) -> list[Event]:
        """The asks of all sources, in their order."""
        waiting = {one.id: one for one in review}
        open_rows = self._drawable()
        events: dict[str, Event] = {}
        for source in sources:
            number, left = self._ledger.next_number + len(events), open_rows - len(events)
            if source == "learner":
                one = next(iter(waiting.values()), None)
            elif source == "control":
                one = self._drawn_for_control(mixer, [*events, *waiting])
            else:
                one = self._drawn(mixer, source, number, left, events)
            if one is None:
                continue
            waiting.pop(one.id, None)
            # Whatever was drawn by chance was drawn among all rows that were open to it at this place.
            chance = one.probability if one.probability in (None, 1.0) else 1 / left
            event = {**self._asked(one.id, one.source, chance, by, number), "open": left}
            if source != "learner" and mixer.rule is not None:
                event["rule"] = f"{mixer.rule.name}@{mixer.rule.version}"
            events[one.id] = event if one.nearest is None else {**event, "nearest": one.nearest}
        return list(events.values())

    def _drawn_for_control(self, mixer: Mixer, taken: Sequence[str]) -> Ready | None:
        """The next row of the control sample; none where all rows are taken."""
        assert mixer.control is not None
        for name in mixer.control.missing(self._ledger, 1, taken):
            # In a pool that has grown the order of the hashes favours the rows that were added, and what the learner
            # takes at the same time was not open to the draw.
            fair = self._ledger.grown is None and name not in self._ledger.asks and not taken
            return Ready(name, "control", self._ledger.changes, _BY_CHANCE if fair else None, None)
        return None

    def _drawn(self, mixer: Mixer, source: Source, number: int, left: int, taken: Collection[str]) -> Ready | None:
        """A row drawn uniformly; first those that were drawn before and came back unanswered."""
        for ask in self._ledger.with_state("open"):
            if was_drawn(ask) and ask.source != "control" and ask.id not in taken:
                return Ready(ask.id, ask.source, self._ledger.changes, None, None)
        if left <= 0:
            return None
        return Ready(mixer.draw(number, self._ledger, taken), source, self._ledger.changes, _BY_CHANCE, None)

    def _drawable(self) -> int:
        """How many rows can be drawn: nobody has them, and chance has not drawn them before."""
        return self._unasked() - sum(was_drawn(ask) for ask in self._ledger.with_state("open"))
