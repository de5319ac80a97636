"""The agreement of people who labelled the same items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement beyond chance: 1 is full, 0 no more than chance; None if it cannot be computed.

    ``cohen`` is for the same two people throughout, ``fleiss`` for any number with as many opinions on
    every item.
    """

    items: int
    people: int
    same: int
    cohen: float | None
    fleiss: float | None


def agreement_of(opinions: Sequence[Mapping[str, bool]]) -> Agreement:
    """Agreement from the opinions on each item.

    Examples
    --------
    >>> said = [{"ann": True, "bob": True}, {"ann": True, "bob": False}, {"ann": False, "bob": False}]
    >>> found = agreement_of(said)
    >>> found.same, round(found.cohen, 2), round(found.fleiss, 2)
    (2, 0.4, 0.33)
    """
    people = sorted({who for said in opinions for who in said})
    same = sum(len(set(said.values())) == 1 for said in opinions)
    return Agreement(len(opinions), len(people), same, _cohen(opinions, people), _fleiss(opinions))


def _cohen(opinions: Sequence[Mapping[str, bool]], people: Sequence[str]) -> float | None:
    if len(people) != 2 or not opinions:
        return None
    first, second = (np.array([said[who] for said in opinions], bool) for who in people)
    expected = first.mean() * second.mean() + (1 - first.mean()) * (1 - second.mean())
    return _beyond_chance(float((first == second).mean()), float(expected))


def _fleiss(opinions: Sequence[Mapping[str, bool]]) -> float | None:
    counts = {len(said) for said in opinions}
    if len(counts) != 1 or (raters := counts.pop()) < 2:
        return None
    yes = np.array([sum(said.values()) for said in opinions], float)
    observed = (yes * (yes - 1) + (raters - yes) * (raters - yes - 1)) / (raters * (raters - 1))
    share = yes.sum() / (raters * len(yes))
    return _beyond_chance(float(observed.mean()), float(share**2 + (1 - share) ** 2))


def _beyond_chance(observed: float, expected: float) -> float | None:
    """The part of the agreement that chance does not explain; None if everybody always agrees."""
    return None if expected >= 1 else (observed - expected) / (1 - expected)
