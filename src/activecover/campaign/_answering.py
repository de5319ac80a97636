"""Answering: what people say of items, and taking it back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from activecover.campaign._checks import check_person, sequence, yes_or_no
from activecover.campaign._forgetting import UNDO_WINDOW
from activecover.campaign._items import Item
from activecover.campaign._mixing import Mixing
from activecover.errors import InputError, check_count
from activecover.store import Ask, Event


class Answering(Mixing):
    """Labels, and all that can be said of an item instead."""

    def tell(
        self, ids: str | Sequence[str], labels: Any, by: str = "me", *, change: bool = False, note: str | None = None
    ) -> None:
        """Say of items whether they are positive; several at once are taken whole or not at all.

        An item need not have been asked for. Telling the same again changes nothing; to tell something
        else, undo first, or say that it is a ``change`` of mind: the earlier decision stays in the
        history, and the learner is as if it had never been told. A ``note`` is kept with the labels.
        """
        names = [ids] if isinstance(ids, str) else list(ids)
        values = [labels] if isinstance(ids, str) else list(sequence(labels))
        if len(names) != len(values):
            raise InputError(f"{len(values)} labels for {len(names)} ids")
        given = dict(zip(names, (yes_or_no(value) for value in values), strict=True))
        if len(given) != len(names):
            raise InputError("an id was told twice in one call")
        if note is not None and not isinstance(note, str):
            raise InputError(f"note {note!r}: give a text")
        check_person(by)
        with self._turn():
            self.pool.rows(names)
            answers = self._by_group(given)
            rows = self.pool.rows(list(answers))
            gone = self.withheld(list(answers))
            events: list[Event] = []
            new = 0
            for (name, label), row in zip(answers.items(), rows, strict=True):
                if self.pool.withdrawn[row] or name in gone:
                    raise InputError(f"id {name!r} was erased from the pool: it can no longer be told")
                ask = self._ledger.asks.get(name)
                if self._is_known_already(name, ask, label, by, change):
                    continue
                if ask is None:
                    events.append(self._asked(name, "given", None, by, self._ledger.next_number + new))
                    new += 1
                told: Event = {"event": "told", "id": name, "label": int(label), "by": by}
                events.append(told if note is None else {**told, "note": note})
            self._write(events)

    def _by_group(self, given: dict[str, bool]) -> dict[str, bool]:
        """Answers by the items that stand for their groups; two that differ within one are refused."""
        if not len(self._ledger.groups):
            return given
        answers: dict[str, bool] = {}
        for name, label in given.items():
            first = self._ledger.groups.first(name)
            if answers.setdefault(first, label) != label:
                raise InputError(f"id {name!r} is a duplicate of {first!r}: tell both the same, or ungroup it first")
        return answers

    def _firsts(self, ids: str | Sequence[str]) -> list[str]:
        """The items that stand for some, each once."""
        names = [ids] if isinstance(ids, str) else list(ids)
        self.pool.rows(names)
        return list(dict.fromkeys(map(self._ledger.groups.first, names)))

    def ungroup(self, ids: str | Sequence[str], by: str = "me") -> None:
        """Take items out of their groups of duplicates: from now on they are items of their own, without a label."""
        check_person(by)
        names = [ids] if isinstance(ids, str) else list(ids)
        with self._turn():
            self.pool.rows(names)
            for name in names:
                if self._ledger.groups.first(name) == name:
                    raise InputError(f"id {name!r} stands for itself: there is nothing to take it out of")
                if name in self._ledger.forgotten:
                    raise InputError(f"id {name!r} was forgotten: that it is negative can no longer be changed")
            self._write([{"event": "ungrouped", "id": name, "by": by} for name in names])

    def _is_known_already(self, name: str, ask: Ask | None, label: bool, by: str, change: bool) -> bool:
        """Whether an answer says nothing new; one that contradicts is refused unless it is meant to."""
        if name in self._known:
            if not label:
                raise InputError(f"id {name!r} is known to be positive: it cannot be told as negative")
            return True
        if ask is None:
            return False
        said = ask.opinions.get(by) if self._ledger.overlap > 1 else (ask.state == "positive" if ask.settled else None)
        if said == label:
            return True
        self._check_kept(name)
        if ask.judge is not None:
            raise InputError(f"id {name!r} was adjudicated: only adjudicating it again can change it")
        if said is not None and not change:
            what = "positive" if said else "negative"
            raise InputError(f"id {name!r} was told as {what} before: undo that first, or say that it is a change")
        if said is None and ask.state in ("positive", "negative", "conflict"):
            raise InputError(f"id {name!r} has its {self._ledger.overlap} opinions already")
        return False

    def skip(self, ids: str | Sequence[str], by: str = "me") -> None:
        """Put items aside; they come back when nothing else is left."""
        self._set_aside("skipped", ids, by)

    def unsure(self, ids: str | Sequence[str], by: str = "me") -> None:
        """Say that an item cannot be decided on now; it comes back when nothing else is left."""
        self._set_aside("unsure", ids, by)

    def _set_aside(self, kind: str, ids: str | Sequence[str], by: str) -> None:
        check_person(by)
        with self._turn():
            names = self._firsts(ids)
            for name in names:
                ask = self._ledger.asks.get(name)
                if ask is None or (by not in ask.also and ask.state not in ("leased", "skipped", "unsure")):
                    raise InputError(f"id {name!r} was not asked for: only an item on the table can be put aside")
            self._write([{"event": kind, "id": name, "by": by} for name in names])

    def release(self, ids: str | Sequence[str] | None = None, by: str = "me") -> None:
        """Give back items that were asked for, skipped or unsure; all that someone has where none is named."""
        check_person(by)
        with self._turn():
            names = [ask.id for ask in self._with(by)] if ids is None else self._firsts(ids)
            for name in names:
                ask = self._ledger.asks.get(name)
                if ask is None or (by not in ask.also and ask.state not in ("leased", "skipped", "unsure")):
                    raise InputError(f"id {name!r} is not leased, skipped or unsure: there is nothing to release")
            self._write([{"event": "released", "id": name, "by": by} for name in names])

    def undo(self, count: int = 1, *, by: str | None = None) -> list[str]:
        """Take back the last decisions (of one person, if given), as if they had never been told.

        The items are leased again to who decided, so that :meth:`ask` shows them next.
        """
        check_count("undo", count)
        with self._turn():
            pairs = self._ledger.last_deciders(count, by)
            judged: set[str] = set()
            for name, who in pairs:
                self._check_kept(name, "undone")
                judge = self._ledger.asks[name].judge
                if judge == who:
                    judged.add(name)
                elif judge is not None and name not in judged:
                    raise InputError(f"id {name!r} was adjudicated: only adjudicating it again can change it")
            self._write([{"event": "undone", "id": name, "by": who, "expires": self._expiry()} for name, who in pairs])
            return [name for name, _ in pairs]

    def conflicts(self) -> list[tuple[Item, dict[str, bool]]]:
        """Items on which people disagree, with who said what."""
        with self._turn():
            return [(self._item(ask), dict(ask.opinions)) for ask in self._ledger.with_state("conflict")]

    def adjudicate(self, id: str, label: Any, by: str = "me") -> None:
        """Decide on an item on which people disagree, or decide otherwise on one that was adjudicated before.

        From then on the people who disagreed can neither change nor undo what they said of it.
        """
        check_person(by)
        with self._turn():
            ask = self._ledger.asks.get(self._ledger.groups.first(id))
            if ask is None or (ask.state != "conflict" and ask.judge is None):
                raise InputError(f"id {id!r} is not in conflict: there is nothing to decide between")
            self._check_kept(ask.id)
            self._write([{"event": "adjudicated", "id": ask.id, "label": int(yes_or_no(label)), "by": by}])

    def last_decisions(self, count: int, by: str | None = None) -> list[str]:
        """The items decided on last, latest first; those of one person if given."""
        with self._turn():
            return self._ledger.last_decisions(count, by)

    def decided(self, names: Iterable[str], by: str) -> dict[str, bool | None]:
        """Of some items, those that have all the opinions they need, with what someone said of each."""
        with self._turn():
            asks = {name: self._ledger.asks.get(self._ledger.groups.first(name)) for name in names}
            full = {name: ask for name, ask in asks.items() if ask and len(ask.opinions) >= self._ledger.overlap}
            return {name: ask.opinions.get(by) for name, ask in full.items()}

    def withheld(self, names: Sequence[str]) -> set[str]:
        """Of some items, those whose contents nobody may be shown any more, as they are forgotten or soon will be.

        Control rows are forgotten later than other negatives. As long as that must not be noticed, every negative
        that was decided on before the last ten decisions counts as forgotten.
        """
        if not self._forgets():
            return set()
        with self._turn():
            firsts = {name: self._ledger.groups.first(name) for name in names}
            gone = {name for name in names if name in self._ledger.forgotten}
            if self._is_blind():
                recent = self._ledger.last_decisions(UNDO_WINDOW, None)
                # Where the last decisions were forgotten too, those between them count as forgotten as well.
                late = set(takewhile(lambda name: name not in self._ledger.forgotten, recent))
                asks = {name: self._ledger.asks.get(first) for name, first in firsts.items()}
                gone |= {name for name, ask in asks.items() if ask and ask.state == "negative" and ask.id not in late}
            return gone

    def _check_kept(self, name: str, what: str = "changed") -> None:
        if self.withheld([name]):
            raise InputError(f"id {name!r} was forgotten: that it is negative can no longer be {what}")

    def record(self, events: Sequence[Event]) -> None:
        """Write down what was done outside of labelling: ``withdrawn``, ``forgotten``, ``grown``."""
        with self._turn():
            self.pool.rows([event["id"] for event in events if "id" in event])
            self._write(events)
