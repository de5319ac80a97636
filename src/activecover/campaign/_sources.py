"""What is asked for next, from whichever source: the learner's proposals, and draws that certify or insure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from activecover.campaign._availability import Availability
from activecover.campaign._journal import Journal
from activecover.campaign._mixer import Mixer, Source, was_drawn
from activecover.campaign._proposals import Draw, Proposals
from activecover.store import Ask, events

#: Stands for the chance of a row drawn uniformly, until its place among the others is known.
_BY_CHANCE = 0.0


class Sources:
    """The next rows to ask for.

    Contract: control rows are hidden from the learner, which treats them as open. If it proposes one, the log records
    that it was ``reached``, the learner is told the label, and it proposes again. Everything else that is returned
    has still to be written by the caller.

    Parameters
    ----------
    journal : Journal
        Of the campaign.
    rows : Availability
        Which rows can be asked for.
    proposals : Proposals
        The learner's.
    mixer : Mixer or None
        Decides on the source of each ask; None if all are the learner's.
    explore : int
        Size of the learner's random sample.
    """

    def __init__(
        self, journal: Journal, rows: Availability, proposals: Proposals, mixer: Mixer | None, explore: int
    ) -> None:
        self._journal, self._rows, self._proposals, self._mixer = journal, rows, proposals, mixer
        self._explore = explore

    @property
    def mixed(self) -> bool:
        """Whether some asks are not the learner's."""
        return self._mixer is not None

    def next(self, k: int, avoid: Collection[str] = ()) -> list[Draw] | None:
        """Up to ``k`` rows in their order; None if they have to be waited for."""
        if self._mixer is None:
            return self._proposals.next(k, avoid)
        # Nothing is shown ahead of time here, so there is nothing to avoid, and chance alone decides on draws.
        sources = self._mixer.sources(k, self._journal.ledger, self._explore)
        review = self._review(sources.count("learner"))
        found = self._mix(self._mixer, sources, review or [])
        return None if not found and review is None and self._rows.unasked() > 0 else found

    def _review(self, k: int) -> list[Draw] | None:
        """The learner's next ``k`` rows that nobody was asked for; None if they have to be waited for."""
        found: list[Draw] = []
        while len(found) < k:
            proposed = self._proposals.for_review(k - len(found), [one.id for one in found])
            if proposed is None:
                return found or None
            passed = [one for one in proposed if self._is_control(one.id)]
            first = self._journal.ledger.next_number
            self._journal.write(
                [events.Reached(number=first + place, id=one.id, source=one.source) for place, one in enumerate(passed)]
            )
            found += [one for one in proposed if one not in passed]
            if not passed:
                break
        return found

    def _is_control(self, name: str) -> bool:
        ask = self._journal.ledger.asks.get(name)
        return ask is not None and ask.hidden and ask.state != "open"

    def _mix(self, mixer: Mixer, sources: Sequence[Source], review: Sequence[Draw]) -> list[Draw]:
        """The rows of all sources, in their order."""
        waiting = {one.id: one for one in review}
        open_rows = self._drawable()
        rule = None if mixer.rule is None else f"{mixer.rule.name}@{mixer.rule.version}"
        found: dict[str, Draw] = {}
        for source in sources:
            left = open_rows - len(found)
            if source == "learner":
                one = next(iter(waiting.values()), None)
            elif source == "control":
                one = self._control(mixer, [*found, *waiting])
            else:
                one = self._drawn(mixer, source, self._journal.ledger.next_number + len(found), left, found)
            if one is None:
                continue
            waiting.pop(one.id, None)
            # Rows drawn by chance were drawn among all rows that were open to the draw at this place.
            chance = one.chance if one.chance in (None, 1.0) else 1 / left
            found[one.id] = replace(one, chance=chance, open=left, rule=None if source == "learner" else rule)
        return list(found.values())

    def _control(self, mixer: Mixer, taken: Sequence[str]) -> Draw | None:
        """The next row of the control sample; None if all its rows are taken."""
        assert mixer.control is not None
        ledger = self._journal.ledger
        for name in mixer.control.missing(ledger, 1, taken):
            # In a pool that has grown the order of the hashes favours the rows that were added, and what the learner
            # takes at the same time was not open to the draw.
            fair = ledger.grown is None and name not in ledger.asks and not taken
            return Draw(name, "control", _BY_CHANCE if fair else None)
        return None

    def _drawn(self, mixer: Mixer, source: Source, number: int, left: int, taken: Collection[str]) -> Draw | None:
        """A row drawn uniformly; first those that were drawn before and came back unanswered."""
        for ask in self._returned():
            if ask.source != "control" and ask.id not in taken:
                return Draw(ask.id, ask.source)
        return Draw(mixer.draw(number, self._journal.ledger, taken), source, _BY_CHANCE) if left > 0 else None

    def _drawable(self) -> int:
        """How many rows can be drawn: nobody has them, and chance has not drawn them before."""
        return self._rows.unasked() - len(self._returned())

    def _returned(self) -> list[Ask]:
        return [ask for ask in self._journal.ledger.with_state("open") if was_drawn(ask)]
