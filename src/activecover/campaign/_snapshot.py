"""What a page shows of a campaign: counts, curves, people, as of one position of its log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from activecover.campaign._agreement import Agreement
from activecover.campaign._items import Status
from activecover.errors import InputError
from activecover.graph import nearest_among
from activecover.pool import Pool
from activecover.stopping import Assessment
from activecover.store import Ask, Ledger, State

#: Points of a curve: more cannot be told apart on a screen.
POINTS = 500
#: Labels over which the recent yield is averaged.
_WINDOW = 100
COUNTED: tuple[State, ...] = ("positive", "negative", "leased", "skipped", "unsure", "waiting", "conflict")


@dataclass(frozen=True, slots=True)
class PersonShare:
    """What one person has contributed, and when they were last seen."""

    who: str
    yes: int
    no: int
    aside: int
    last: float


@dataclass(frozen=True, slots=True)
class Curve:
    """How many positives were found by the number of labels, and the yield of the last of them."""

    labels: list[int]
    found: list[int]
    recent: list[float]
    #: Positives per label of a search at random, if that can be told.
    random: float | None
    #: Distances of labelled items to the positive that each was proposed for, by the number of labels.
    distances: list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound on recall, and its course: pairs of labels and bound."""

    assessment: Assessment
    course: list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A campaign as people may see it.

    Contract: nothing in it allows anyone to work out a control row while the guarantee is open; then :attr:`bound` is
    None unless the owner asks.
    """

    status: Status
    counts: dict[str, int]
    #: Items that are never asked for, as a duplicate stands for them.
    grouped: int
    curve: Curve
    people: list[PersonShare]
    agreement: Agreement
    bound: Bound | None


def counts_of(ledger: Ledger, rows: int) -> dict[str, int]:
    """How many items are in which state."""
    return {"rows": rows, **{state: ledger.count(state) for state in COUNTED}}


def curve_of(ledger: Ledger, pool: Pool) -> Curve:
    """The curve of the labels so far."""
    asks = ledger.with_state("positive", "negative")
    positive = np.array([ask.state == "positive" for ask in asks], bool)
    explored = np.array([ask.source == "explore" for ask in asks], bool)
    found = np.concatenate([[0], np.cumsum(positive)])
    shown = np.unique(np.linspace(0, len(asks), min(len(asks) + 1, POINTS)).astype(int))
    since = np.maximum(shown - _WINDOW, 0)
    recent = (found[shown] - found[since]) / np.maximum(shown - since, 1)
    last = shown[shown > 0]
    distances = _distances(pool, [asks[place] for place in (last - 1).tolist()])
    return Curve(
        labels=shown.tolist(),
        found=found[shown].tolist(),
        recent=[round(float(value), 4) for value in recent],
        random=_random_rate(positive, explored, len(pool)),
        distances=[(int(label), far) for label, far in zip(last, distances, strict=True) if far is not None],
    )


def bound_of(assessment: Assessment, bounds: Sequence[float], labels: int) -> Bound:
    """A bound with its course; an ask that was put aside counts too, so the course is scaled to the labels."""
    shown = np.linspace(0, len(bounds) - 1, min(len(bounds), POINTS)).astype(int)
    times = shown * labels / max(len(bounds) - 1, 1)
    course = [(round(float(at), 1), round(float(bounds[place]), 4)) for place, at in zip(shown, times, strict=True)]
    return Bound(assessment, course)


def people_of(ledger: Ledger) -> list[PersonShare]:
    """What each person has contributed, the most labels first."""
    yes, no, aside = (dict.fromkeys(ledger.people, 0) for _ in range(3))
    for ask in ledger.asks.values():
        for who, label in ask.opinions.items():
            (yes if label else no)[who] += 1
        if ask.state in ("skipped", "unsure"):
            aside[ask.by] += 1
    found = [PersonShare(who, yes[who], no[who], aside[who], at) for who, at in ledger.people.items()]
    return sorted(found, key=lambda person: -(person.yes + person.no))


def _random_rate(positive: npt.NDArray[np.bool_], explored: npt.NDArray[np.bool_], rows: int) -> float | None:
    """Positives per label of a search at random: the yield of the random draws, or what is known to be there."""
    if not len(positive):
        return None
    drawn = float(positive[explored].mean()) if explored.any() else 0.0
    return max(drawn, float(positive.sum()) / rows)


def _distances(pool: Pool, asks: Sequence[Ask]) -> Iterator[float | None]:
    """The distance of each item to the positive that it was proposed for; None if that is not in the pool."""
    known = pool.kind in ("dense", "sparse", "bits")
    for ask in asks:
        pair = _pair(pool, ask) if known else None
        if pair is None:
            yield None
            continue
        far = float(nearest_among(pool.part(np.array(pair)), np.array([0]), np.array([1]), 1)[1][0, 0])
        yield round(far, 6) if np.isfinite(far) else None


def _pair(pool: Pool, ask: Ask) -> tuple[int, int] | None:
    if not isinstance(ask.nearest, str):
        return None
    try:
        pair = pool.row(ask.id), pool.row(ask.nearest)
    except InputError:
        return None  # from outside the pool, in a log of an earlier version
    return None if pool.withdrawn[list(pair)].any() else pair
