"""The settings of a campaign: checked once, stored in its ``created`` event, and compared when its log is reopened."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from activecover.campaign._mixer import check_share
from activecover.errors import InputError, check_count
from activecover.learners import LEARNERS, Learner, default_learner
from activecover.pool import Duplicates, Pool
from activecover.stopping import Rule, check_levels, parse_guarantee, rule_from, rule_settings, valid_rules
from activecover.store import events

#: Seeds that are drawn stay below this: such whole numbers survive every program that reads JSON.
_LARGEST_SEED = 2**53
#: What the log calls some settings.
_IN_THE_LOG = {"forget_negatives": "forgets", "random_share": "insure"}
#: Limits may be given again when a log is reopened, and then hold for as long as it is open.
_LIMITS = ("budget", "target", "lease")


@dataclass(frozen=True)
class Settings:
    """What a campaign is told when it begins; None for what was not given.

    Contract: never changes, holds only what JSON can hold, and ``Settings.of(settings.created(…))`` gives the same
    settings again.

    Examples
    --------
    >>> given = Settings.given(seed=3, certify="0.9@0.9", budget=50)
    >>> created = given.filled(Pool([[0.0]])).created(rows=1, marks={"ids": "", "vectors": ""}, outside=None)
    >>> Settings.of(created).budget, Settings.of(created).seed
    (50, 3)
    """

    learner: str | None = None
    seed: int | None = None
    explore: int | list[int] | None = None
    overlap: int | None = None
    forget_negatives: bool | None = None
    duplicates: events.Parameters | None = None
    certify: events.Parameters | None = None
    random_share: float | None = None
    key: str | None = None
    budget: int | None = None
    target: int | None = None
    lease: float | None = None

    @classmethod
    def given(
        cls,
        learner: str | Learner | None = None,
        *,
        explore: int | Sequence[int] | None = None,
        duplicates: Duplicates | None = None,
        certify: Rule | str | None = None,
        forget_negatives: bool = False,
        lease: float | None = None,
        **numbers: Any,
    ) -> Settings:
        """Settings as somebody gives them; what cannot be is refused in one line."""
        for name, least in (("budget", 1), ("target", 1), ("seed", 0), ("overlap", 1)):
            check_count(name, numbers.get(name), least)
        if lease is not None and not lease >= 1:
            raise InputError(f"lease {lease!r}: give a number of seconds from 1")
        chosen = learner.explore if isinstance(learner, Learner) else explore
        if chosen is not None:
            chosen = int(chosen) if isinstance(chosen, int | np.integer) else [int(row) for row in chosen]
            for value in [chosen] if isinstance(chosen, int) else chosen:
                check_count("explore", value, 0)
        seed, share = numbers.pop("seed", None), check_share(numbers.pop("random_share", None))
        return cls(
            learner=_name_of(learner),
            seed=None if seed is None else int(seed),
            explore=chosen,
            duplicates=None if duplicates is None else duplicates.as_dict(),
            certify=_promised(certify),
            forget_negatives=forget_negatives or None,
            random_share=share,
            lease=lease,
            **numbers,
        )

    @classmethod
    def of(cls, created: events.Created) -> Settings:
        """The settings that a log records."""
        found = {each.name: getattr(created, _IN_THE_LOG.get(each.name, each.name)) for each in fields(cls)}
        return cls(**{**found, "forget_negatives": bool(created.forgets)})

    def filled(self, pool: Pool) -> Settings:
        """The same settings, with defaults for what was not given."""
        forgets = bool(self.forget_negatives)
        # A seed can be guessed, and the control rows with it; a key cannot.
        hidden = self.seed is None and self.rule is not None and self.rule.design == "control"
        return replace(
            self,
            learner=self.learner or LEARNERS[default_learner(pool, forgets=forgets)].versioned,
            seed=(secrets.randbelow(_LARGEST_SEED) if hidden else 0) if self.seed is None else self.seed,
            key=secrets.token_hex(16) if hidden else None,
            explore=100 if self.explore is None else self.explore,
            overlap=self.overlap or 1,
            forget_negatives=forgets,
        )

    def created(self, *, rows: int, marks: dict[str, str], outside: str | None) -> events.Created:
        """The event that stores these settings, once filled."""
        values = {_IN_THE_LOG.get(each.name, each.name): getattr(self, each.name) for each in fields(self)}
        return events.Created(format=events.FORMAT, rows=rows, pool=marks, outside=outside, **values)

    def reopened(self, recorded: Settings, learner: str) -> Settings:
        """The settings of a log that is opened with these given: limits may differ, anything else is refused.

        ``learner`` is the one that proposes now, which may have been changed since the log began.
        """
        for each in fields(self):
            given, was = getattr(self, each.name), getattr(recorded, each.name)
            was = learner if each.name == "learner" else was
            if each.name not in _LIMITS and given is not None and given != was:
                name = each.name.replace("_", " ") if each.name != "random_share" else "random_share"
                remedy = "change it with change_learner" if each.name == "learner" else "start a new log"
                raise InputError(f"the label log was made with {name} {was!r}, not {given!r}: {remedy}")
        limits = {name: getattr(self, name) for name in _LIMITS if getattr(self, name) is not None}
        return replace(recorded, **limits)

    @property
    def rule(self) -> Rule | None:
        """What the campaign is to certify."""
        return None if self.certify is None else rule_from(self.certify)

    @property
    def explored(self) -> int:
        """How many rows the random sample has."""
        explore = 0 if self.explore is None else self.explore
        return explore if isinstance(explore, int) else len(explore)


def _name_of(learner: str | Learner | None) -> str | None:
    if isinstance(learner, Learner):
        return repr(learner)
    return None if learner is None else LEARNERS[learner].versioned


def _promised(certify: Rule | str | None) -> events.Parameters | None:
    """What is to be certified, as the log stores it."""
    if certify is None:
        return None
    rule = parse_guarantee(certify) if isinstance(certify, str) else certify
    if not rule.valid:
        raise InputError(f"{rule.name} proves nothing: choose one of {', '.join(valid_rules())}")
    check_levels(rule.target, rule.confidence)
    kept: events.Parameters = json.loads(json.dumps(rule_settings(rule)))
    return kept
