"""Beginning a campaign, and going on with one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from activecover.campaign._proposing import Proposing
from activecover.errors import InputError, StoreError
from activecover.learners import LEARNERS, Learner, make_learner
from activecover.pool import Pool, Vectors
from activecover.store import FORMAT, Event, Ledger

DEFAULT_LEARNER = "explore-commit"


class Opening(Proposing):
    """Settings: recorded when a campaign begins, and checked when it is taken up."""

    def _create(self, learner: Any, settings: dict[str, Any], known: Sequence[str]) -> None:
        defaults = {
            "learner": LEARNERS[DEFAULT_LEARNER].versioned,
            "seed": 0,
            "explore": 100,
            "overlap": 1,
            "forgets": False,
        }
        chosen = {name: defaults[name] if value is None else value for name, value in settings.items()}
        created: Event = {
            "event": "created",
            "format": FORMAT,
            "rows": len(self.pool),
            "pool": self.pool.fingerprint(),
            "outside": self._outside_fingerprint(),
            **chosen,
        }
        self._ledger = Ledger()
        self._begin(created, learner, known)
        # The learner first: what it refuses must not leave a log behind.
        self._own_brain()
        self._write([created, *({"event": "known", "id": name} for name in self._known)])

    def _take_up(self, learner: Any, settings: dict[str, Any], known: Sequence[str]) -> None:
        self._ledger = Ledger(self.log.read())
        created = self._ledger.created
        if created is None:
            raise StoreError("the label log has no beginning; restore it from a copy")
        self._check_same(created, settings, known)
        self._position = len(self.log)
        self.pool.rows(list(self._ledger.asks))
        self._begin(created, learner, self._ledger.known)
        if not self.log.shared:
            self._own_brain()

    def _check_same(self, created: Event, settings: dict[str, Any], known: Sequence[str]) -> None:
        if created["rows"] > len(self.pool):
            raise InputError(f"the label log is of a pool of {created['rows']} rows, this one has {len(self.pool)}")
        now = self.pool.fingerprint(created["rows"])
        # An erased row changes the vectors and nothing else: then the ids have to do.
        parts = ["ids"] if self.pool.withdrawn.any() else ["ids", "vectors"]
        for part in parts:
            if now[part] != created["pool"][part]:
                raise InputError(
                    f"the label log belongs to another pool (its {part} differ): open it with the same file"
                )
        if created.get("outside") != self._outside_fingerprint():
            raise InputError("the label log was made with other known positives from outside: give the same ones")
        for name, value in settings.items():
            if value is not None and value != created.get(name, 1):
                raise InputError(
                    f"the label log was made with {name} {created.get(name, 1)!r}, not {value!r}: start a new log"
                )
        if known and list(dict.fromkeys(known)) != self._ledger.known:
            raise InputError("the label log was made with other known positives: start a new log")

    def _begin(self, created: Event, learner: Any, known: Sequence[str]) -> None:
        self.seed: int = created["seed"]
        self.rule: str = created["learner"]
        self._known = dict.fromkeys(known)
        self.pool.rows(list(self._known))
        if isinstance(learner, Learner):
            self._make_learner: Callable[[], Learner] = lambda: learner
        elif "(" in self.rule:
            raise InputError(f"the label log was made with a learner of your own: give it again ({self.rule})")
        else:
            self._make_learner = lambda: make_learner(self.rule, explore=created["explore"])
        self._explore = created["explore"]

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
    return {"learner": name, "seed": None if seed is None else int(seed), "explore": explore}


def encode_outside(pool: Pool, vectors: Any) -> Vectors:
    try:
        return pool.encode(vectors)
    except InputError as wrong:
        raise InputError(f"known positives from outside: {wrong}") from wrong
