"""Decisions: what people say about items, and taking it back."""

from __future__ import annotations

from collections.abc import Sequence

from activecover.campaign._checks import check_person, sequence, yes_or_no
from activecover.campaign._eraser import Eraser
from activecover.campaign._journal import Journal
from activecover.campaign._leases import Leases
from activecover.campaign._proposals import Draw
from activecover.errors import InputError, check_count
from activecover.store import Ask, Event, events

Ids = str | Sequence[str]


class Decisions:
    """Labels, and everything else that people say about items.

    Contract: each call is one turn, taken whole or not at all; what contradicts an earlier decision is refused, in a
    line that says what to do, unless it is meant to change it.

    Parameters
    ----------
    journal : Journal
        Of the campaign.
    leases : Leases
        The items that each person has.
    eraser : Eraser
        Knows what was forgotten and can no longer be changed.
    """

    def __init__(self, journal: Journal, leases: Leases, eraser: Eraser) -> None:
        self._journal, self._leases, self._eraser = journal, leases, eraser

    def tell(self, ids: Ids, labels: object, by: str, *, change: bool = False, note: str | None = None) -> None:
        """Label items."""
        given = _pairs(ids, labels)
        if note is not None and not isinstance(note, str):
            raise InputError(f"note {note!r}: give a text")
        check_person(by)
        with self._journal.turn():
            pool, ledger = self._journal.pool, self._journal.ledger
            pool.rows(list(given))
            answers = self._by_group(given)
            gone = self._eraser.withheld(list(answers))
            new: list[Event] = []
            for name, label in answers.items():
                if pool.withdrawn[pool.row(name)] or name in gone:
                    raise InputError(f"id {name!r} was erased from the pool: it can no longer be told")
                ask = ledger.asks.get(name)
                if self._is_known_already(name, ask, label, by, change):
                    continue
                if ask is None:
                    unasked = sum(isinstance(event, events.Asked) for event in new)
                    new.append(self._leases.asked(Draw(name, "given"), by, unasked))
                new.append(events.Told(id=name, by=by, label=1 if label else 0, note=note))
            self._journal.write(new)

    def put_aside(self, kind: type[events.Skipped] | type[events.Unsure], ids: Ids, by: str) -> None:
        """Skip items, or say that they cannot be decided on now."""
        check_person(by)
        with self._journal.turn():
            names = self._firsts(ids)
            for name in names:
                if not self._on_table(name, by):
                    raise InputError(f"id {name!r} was not asked for: only an item on the table can be put aside")
            self._journal.write([kind(id=name, by=by) for name in names])

    def release(self, ids: Ids | None, by: str) -> None:
        """Give items back; without ids, all that someone has."""
        check_person(by)
        with self._journal.turn():
            names = [ask.id for ask in self._leases.of(by)] if ids is None else self._firsts(ids)
            for name in names:
                if not self._on_table(name, by):
                    raise InputError(f"id {name!r} is not leased, skipped or unsure: there is nothing to release")
            self._journal.write([events.Released(id=name, by=by) for name in names])

    def undo(self, count: int, by: str | None) -> list[str]:
        """Take back the last decisions."""
        check_count("undo", count)
        with self._journal.turn():
            ledger = self._journal.ledger
            pairs = ledger.last_deciders(count, by)
            judged: set[str] = set()
            for name, who in pairs:
                self._eraser.check_kept(name, "undone")
                judge = ledger.asks[name].judge
                if judge == who:
                    judged.add(name)
                elif judge is not None and name not in judged:
                    raise InputError(f"id {name!r} was adjudicated: only adjudicating it again can change it")
            expires = self._leases.expiry()
            self._journal.write([events.Undone(id=name, by=who, expires=expires) for name, who in pairs])
            return [name for name, _ in pairs]

    def adjudicate(self, id: str, label: object, by: str) -> None:
        """Decide between opinions that differ."""
        check_person(by)
        with self._journal.turn():
            ledger = self._journal.ledger
            ask = ledger.asks.get(ledger.groups.first(id))
            if ask is None or (ask.state != "conflict" and ask.judge is None):
                raise InputError(f"id {id!r} is not in conflict: there is nothing to decide between")
            self._eraser.check_kept(ask.id)
            self._journal.write([events.Adjudicated(id=ask.id, by=by, label=1 if yes_or_no(label) else 0)])

    def confirm(self, ids: Ids, by: str) -> None:
        """Confirm that positives are positive."""
        check_person(by)
        with self._journal.turn():
            names = self._firsts(ids)
            for name in names:
                ask = self._journal.ledger.asks.get(name)
                if ask is None or ask.state != "positive":
                    raise InputError(f"id {name!r} is not labelled as positive: there is nothing to confirm")
            self._journal.write([events.Confirmed(id=name, by=by) for name in names])

    def ungroup(self, ids: Ids, by: str) -> None:
        """Take items out of their groups of duplicates."""
        check_person(by)
        names = [ids] if isinstance(ids, str) else list(ids)
        with self._journal.turn():
            ledger = self._journal.ledger
            self._journal.pool.rows(names)
            for name in names:
                if ledger.groups.first(name) == name:
                    raise InputError(f"id {name!r} stands for itself: there is nothing to take it out of")
                if name in ledger.forgotten:
                    raise InputError(f"id {name!r} was forgotten: that it is negative can no longer be changed")
            self._journal.write([events.Ungrouped(id=name, by=by) for name in names])

    def _firsts(self, ids: Ids) -> list[str]:
        """The items that stand for some, each once."""
        names = [ids] if isinstance(ids, str) else list(ids)
        self._journal.pool.rows(names)
        return list(dict.fromkeys(map(self._journal.ledger.groups.first, names)))

    def _on_table(self, name: str, by: str) -> bool:
        ask = self._journal.ledger.asks.get(name)
        return ask is not None and (by in ask.also or ask.state in ("leased", "skipped", "unsure"))

    def _by_group(self, given: dict[str, bool]) -> dict[str, bool]:
        """Answers by the items that stand for their groups; two that differ within one are refused."""
        groups = self._journal.ledger.groups
        if not len(groups):
            return given
        answers: dict[str, bool] = {}
        for name, label in given.items():
            first = groups.first(name)
            if answers.setdefault(first, label) != label:
                raise InputError(f"id {name!r} is a duplicate of {first!r}: tell both the same, or ungroup it first")
        return answers

    def _is_known_already(self, name: str, ask: Ask | None, label: bool, by: str, change: bool) -> bool:
        """Whether an answer is nothing new; one that contradicts is refused unless it is meant to."""
        if name in self._journal.known:
            if not label:
                raise InputError(f"id {name!r} is known to be positive: it cannot be told as negative")
            return True
        if ask is None:
            return False
        overlap = self._journal.ledger.overlap
        said = ask.opinions.get(by) if overlap > 1 else (ask.state == "positive" if ask.settled else None)
        if said == label:
            return True
        self._eraser.check_kept(name)
        if ask.judge is not None:
            raise InputError(f"id {name!r} was adjudicated: only adjudicating it again can change it")
        if said is not None and not change:
            what = "positive" if said else "negative"
            raise InputError(f"id {name!r} was told as {what} before: undo that first, or mark this as a change")
        if said is None and ask.state in ("positive", "negative", "conflict"):
            raise InputError(f"id {name!r} has its {overlap} opinions already")
        return False


def _pairs(ids: Ids, labels: object) -> dict[str, bool]:
    names = [ids] if isinstance(ids, str) else list(ids)
    values = [labels] if isinstance(ids, str) else list(sequence(labels))
    if len(names) != len(values):
        raise InputError(f"{len(values)} labels for {len(names)} ids")
    given = dict(zip(names, (yes_or_no(value) for value in values), strict=True))
    if len(given) != len(names):
        raise InputError("an id was told twice in one call")
    return given
