"""Beginning a campaign, and going on with one."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from activecover.campaign._grouping import grouping_of
from activecover.campaign._mixer import Mixer
from activecover.campaign._proposing import Proposing
from activecover.errors import InputError, StoreError, check_count
from activecover.learners import LEARNERS, Learner, check_sample, default_learner, make_learner
from activecover.pool import Duplicates, Pool, StoredPool, Vectors
from activecover.stopping import Rule, check_levels, parse_guarantee, rule_from, rule_settings, valid_rules
from activecover.store import FORMAT, Event, Ledger

#: What stands for the hash of vectors where there is none.
_NOT_KEPT = "not kept"
#: Of seeds that are drawn: whole numbers up to here survive every program that reads JSON.
_LARGEST_SEED = 2**53


class Opening(Proposing):
    """Settings: recorded when a campaign begins, and checked when it is taken up."""

    def _create(self, learner: Any, settings: dict[str, Any], known: Sequence[str]) -> None:
        defaults: dict[str, Any] = {
            "learner": LEARNERS[default_learner(self.pool, forgets=bool(settings["forgets"]))].versioned,
            "seed": 0,
            "explore": 100,
            "overlap": 1,
            "forgets": False,
            "duplicates": None,
            "certify": None,
            "insure": None,
        }
        if settings["seed"] is None and _draws_blindly(settings["certify"]):
            defaults["seed"], defaults["key"] = secrets.randbelow(_LARGEST_SEED), secrets.token_hex(16)
        chosen = defaults | {name: value for name, value in settings.items() if value is not None}
        created: Event = {
            "event": "created",
            "format": FORMAT,
            "rows": len(self.pool),
            "pool": self.pool_marks(forgets=bool(chosen["forgets"])),
            "outside": self._outside_fingerprint(),
            **chosen,
        }
        events = [created]
        if chosen["duplicates"] is not None:
            events.append(grouping_of(self.pool, Duplicates.from_dict(chosen["duplicates"]), Ledger()))
        # The learner first: what it refuses must not leave a log behind.
        self._ledger = Ledger(events)
        self._begin(created, learner, known)
        self._own_brain()
        self._ledger = Ledger()
        self._write([*events, *({"event": "known", "id": name} for name in dict.fromkeys(known))])

    def _take_up(self, learner: Any, settings: dict[str, Any], known: Sequence[str]) -> None:
        self._ledger = Ledger(self.log.read())
        created = self._ledger.created
        if created is None:
            raise StoreError("the label log has no beginning; restore it from a copy")
        self._check_same(created, settings, known)
        self._position = len(self.log)
        self.pool.rows(list(self._ledger.asks))
        self._begin(created, learner, list(self._ledger.known))
        if not self.log.shared:
            self._own_brain()

    def _check_same(self, created: Event, settings: dict[str, Any], known: Sequence[str]) -> None:
        if created["rows"] > len(self.pool):
            raise InputError(f"the label log is of a pool of {created['rows']} rows, this one has {len(self.pool)}")
        self._check_pool(created)
        if (self._ledger.outside or created.get("outside")) != self._outside_fingerprint():
            raise InputError("the label log was made with other known positives from outside: give the same ones")
        for name, value in settings.items():
            # Logs of earlier versions do not speak of what they could not do.
            was = created.get(name, {"overlap": 1, "forgets": False}.get(name))
            if value is not None and value != was:
                raise InputError(f"the label log was made with {name} {was!r}, not {value!r}: start a new log")
        if known and list(dict.fromkeys(known)) != list(self._ledger.known):
            raise InputError("the label log was made with other known positives: start a new log")

    def _check_pool(self, created: Event) -> None:
        """Refuse a pool that is not the one the log speaks of, or not as it was stored."""
        known = {part: mark for part, mark in created["pool"].items() if mark != _NOT_KEPT}
        differs = []
        if self.pool.withdrawn.any() or len(known) < len(created["pool"]):
            # Rows are erased, or will be, so hashes of all rows no longer hold. The folder's own are kept up to date.
            contents, _ = known.pop("contents", None), known.pop("vectors", None)
            if isinstance(self.pool, StoredPool):
                self.pool.folder.verify()
                differs = ["contents"] if contents and self.pool.folder.contents_hash not in (None, contents) else []
        now = self.pool.fingerprint(created["rows"], contents="contents" in known)
        differs += [part for part in ("contents", "vectors", "ids") if part in known and now.get(part) != known[part]]
        for part in reversed(differs):
            raise InputError(f"the label log belongs to another pool (its {part} differ): open it with the same file")

    def pool_marks(self, *, forgets: bool | None = None) -> dict[str, str]:
        """Hashes of the pool as the log may keep them."""
        marks = self.pool.fingerprint(contents=True)
        forgets = bool((self._ledger.created or {}).get("forgets")) if forgets is None else forgets
        # A hash of all rows would say something of those that are to be forgotten.
        return {part: _NOT_KEPT if forgets and part != "ids" else mark for part, mark in marks.items()}

    def _begin(self, created: Event, learner: Any, known: Sequence[str]) -> None:
        self.seed: int = created["seed"]
        self.rule: str = created["learner"]
        self.pool.rows(known)
        self._known = {}
        for place, name in enumerate(dict.fromkeys(known)):
            self._known.setdefault(self._ledger.groups.first(name), -1 - place)
        if isinstance(learner, Learner):
            self._make_learner: Callable[[], Learner] = lambda: learner
        elif "(" in self.rule:
            raise InputError(f"the label log was made with a learner of your own: give it again ({self.rule})")
        else:
            self._make_learner = lambda: make_learner(self.rule, explore=self._to_explore(created["explore"]))
        self._explore = created["explore"]
        if not isinstance(self._explore, int):
            check_sample(self._explore, len(self.pool))
        self._promise = None if created.get("certify") is None else rule_from(created["certify"])
        self._mixer = Mixer.of(self.pool, created, self._promise)
        # What follows an item is not for the learner alone to say.
        self._think_ahead = self._think_ahead and self._mixer is None

    def _to_explore(self, explore: int | list[int]) -> int | list[int]:
        """Rows chosen for exploration, each by the row that stands for it."""
        if isinstance(explore, int) or not len(self._ledger.groups):
            return explore
        names = dict.fromkeys(self._ledger.groups.first(self.pool.id(row)) for row in explore)
        return [int(row) for row in self.pool.rows(list(names))]

    def _outside_fingerprint(self) -> str | None:
        return None if self._outside is None else self.pool.digest(self._outside)


def settings_of(learner: Any, seed: int | None, explore: Any) -> dict[str, Any]:
    """What was asked for; None stands for 'as the log says'."""
    name: str | None = None
    if isinstance(learner, Learner):
        name = repr(learner)
    elif learner is not None:
        name = LEARNERS[learner].versioned
    explore = learner.explore if isinstance(learner, Learner) else explore
    if explore is not None:
        explore = int(explore) if isinstance(explore, int | np.integer) else [int(row) for row in explore]
        for value in [explore] if isinstance(explore, int) else explore:
            check_count("explore", value, 0)
    return {"learner": name, "seed": None if seed is None else int(seed), "explore": explore}


def _draws_blindly(certify: dict[str, Any] | None) -> bool:
    """Whether a promise needs control rows, which nobody must be able to work out."""
    return certify is not None and rule_from(certify).design == "control"


def promise_of(certify: Rule | str | None) -> dict[str, Any] | None:
    """What is to be certified, as the log keeps it."""
    if certify is None:
        return None
    rule = parse_guarantee(certify) if isinstance(certify, str) else certify
    if not rule.valid:
        raise InputError(f"{rule.name} proves nothing: choose one of {', '.join(valid_rules())}")
    check_levels(rule.target, rule.confidence)
    kept: dict[str, Any] = json.loads(json.dumps(rule_settings(rule)))
    return kept


def encode_outside(pool: Pool, vectors: Any) -> Vectors:
    try:
        return pool.encode(vectors)
    except InputError as wrong:
        raise InputError(f"known positives from outside: {wrong}") from wrong
