"""What the log of a campaign says, for showing it: read along with the campaign, without taking turns."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.campaign import Campaign, Sight
from activecover.errors import ActiveCoverError
from activecover.intake import is_picture
from activecover.pool import Pool
from activecover.store import Ask, Event, Ledger
from activecover.store._ledger import State

#: Points of a curve: more cannot be told apart on a screen.
_POINTS = 500
_WINDOW = 100
#: The bound is worked out for so many labels at most: beyond, the command line does it.
_MOST_ASSESSED = 100_000
#: What is said in place of what would tell how the control sample stands.
WITHHELD = "hidden while the guarantee is open"
_ASIDE: tuple[State, ...] = ("skipped", "unsure")
_COUNTED: tuple[State, ...] = ("positive", "negative", "leased", "skipped", "unsure", "waiting", "conflict")


class Reader:
    """A ledger that follows a campaign's log as far as people may see it, and figures drawn from it.

    Every figure is worked out once per position of the log.
    """

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        #: What may be shown: all figures here are worked out from what it gives.
        self.sight = Sight(campaign)
        self._lock = threading.RLock()
        self._kept: dict[str, tuple[Any, ...]] = {}

    def follow(self) -> tuple[Ledger, int]:
        """The ledger up to date, as people may see it, and how many events it has seen."""
        return self.sight.follow()

    @property
    def mark(self) -> str:
        """What tells this campaign from another of its name, in every process."""
        ledger, _ = self.follow()
        return format(int(1e6 * (ledger.created or {}).get("at", 0)), "x")

    def served(self, name: str, who: str) -> bool:
        """Whether someone has or had an item on the table."""
        with self._lock:
            ledger, _ = self.follow()
            ask = ledger.asks.get(name)
            if ask is None:
                return False
            return who in ask.also or who in ask.opinions or (ask.by == who and ask.state != "open")

    def is_known(self, name: str | None) -> bool:
        """Whether an item was known to be positive from the start."""
        with self._lock:
            return name in self.follow()[0].known

    def holder(self, name: str) -> str | None:
        """Who has an item on the table."""
        with self._lock:
            ledger, _ = self.follow()
            ask = ledger.asks.get(name)
            return ask.by if ask is not None and ask.state == "leased" else None

    def taken(self, names: Iterable[str]) -> bool:
        """Whether someone has or had one of some items."""
        with self._lock:
            ledger, _ = self.follow()
            return any(name in ledger.asks and ledger.asks[name].state != "open" for name in names)

    def on_table(self, who: str) -> int:
        """How many items someone has."""
        with self._lock:
            ledger, _ = self.follow()
            shared = ledger.with_state("waiting", "conflict")
            return sum(ask.by == who for ask in ledger.with_state("leased")) + sum(who in ask.also for ask in shared)

    def counts(self) -> dict[str, int]:
        """How many items are in which state."""
        with self._lock:
            ledger, _ = self.follow()
            return {"rows": len(self.campaign.pool), **{state: ledger.count(state) for state in _COUNTED}}

    def counts_of(self, who: str) -> dict[str, int]:
        """How many items someone has, and what they themselves said of how many: nothing of what others said."""
        with self._lock:
            ledger, _ = self.follow()
            said = [ask.opinions[who] for ask in ledger.asks.values() if who in ask.opinions]
            skipped, unsure = (sum(ask.by == who for ask in ledger.with_state(state)) for state in _ASIDE)
            declined = sum(who in ask.declined and who not in ask.opinions for ask in ledger.asks.values())
            return {
                "rows": len(self.campaign.pool), "positive": sum(said), "negative": len(said) - sum(said),
                "leased": self.on_table(who), "skipped": skipped + declined, "unsure": unsure,
            }  # fmt: skip

    def progress(self, *, bound: bool) -> dict[str, Any]:
        """The curves and counts of the page; with the ``bound`` on recall, or saying that it is withheld."""
        found: dict[str, Any] = dict(self._once("progress", self._progress))
        if bound:
            return {**found, **self._once("bound", self._certified), "withheld": None}
        return found | {"bound": None, "bounds": [], "withheld": WITHHELD}

    def map_states(self) -> list[tuple[int, str]]:
        """The rows that were asked for, and what came of each."""
        with self._lock:
            ledger, _ = self.follow()
            asks = [ask for ask in ledger.asks.values() if ask.state != "open"]
            names = [ask.id for ask in asks] + list(ledger.known)
            states = [str(ask.state) for ask in asks] + ["positive"] * len(ledger.known)
        return list(zip(self.campaign.pool.rows(names).tolist(), states, strict=True))

    def held(self) -> npt.NDArray[np.int64]:
        """The rows that nobody else may be asked for now."""
        with self._lock:
            ledger, _ = self.follow()
            asks = ledger.with_state("leased", "skipped", "unsure", "waiting", "conflict")
            stood_for = list(ledger.groups)
        return self.campaign.pool.rows([*(ask.id for ask in asks), *stood_for])

    def decisions(self, search: str = "", state: str | None = None) -> list[Ask]:
        """What was asked for, latest first; of those, what a search finds in ids, people, notes and contents."""
        with self._lock:
            ledger, _ = self.follow()
            asks = sorted(ledger.asks.values(), key=lambda ask: -ask.number)
        wanted = search.casefold().strip()
        found = [ask for ask in asks if (state is None or ask.state == state) and ask.state != "open"]
        if not wanted:
            return found
        gone = self.campaign.withheld([ask.id for ask in found])
        return [ask for ask in found if self._holds(ask, wanted, ask.id not in gone)]

    def events(self, search: str = "", id: str | None = None) -> list[Event]:
        """What happened, in order; of that, what a search finds in kinds, ids, people and notes."""
        wanted = search.casefold().strip()
        return [event for event in self.sight.events(id) if not wanted or wanted in _words(event)]

    def _holds(self, ask: Ask, wanted: str, there: bool) -> bool:
        if any(wanted in text.casefold() for text in (ask.id, ask.by, ask.note or "")):
            return True
        if not there:
            return False
        row = int(self.campaign.pool.rows([ask.id])[0])
        values = map(str, self.campaign.pool.content(row).values())
        return any(wanted in value.casefold() for value in values if not is_picture(value))

    def _once(self, what: str, make: Any) -> Any:
        with self._lock:
            ledger, position = self.follow()
            # The ledger may be another one as soon as everything may be seen.
            if self._kept.get(what, (-1, None))[:2] != (position, id(ledger)):
                self._kept[what] = (position, id(ledger), make())
            return self._kept[what][-1]

    def _progress(self) -> dict[str, Any]:
        ledger, _ = self.follow()
        asks = ledger.with_state("positive", "negative")
        positive = np.array([ask.state == "positive" for ask in asks], bool)
        explored = np.array([ask.source == "explore" for ask in asks], bool)
        found = np.concatenate([[0], np.cumsum(positive)])
        shown = np.unique(np.linspace(0, len(asks), min(len(asks) + 1, _POINTS)).astype(int))
        since = np.maximum(shown - _WINDOW, 0)
        recent = (found[shown] - found[since]) / np.maximum(shown - since, 1)
        far = [asks[place] for place in (shown[shown > 0] - 1).tolist()]
        return {
            "rows": len(self.campaign.pool),
            "labels": shown.tolist(),
            "found": found[shown].tolist(),
            "recent": [round(float(value), 4) for value in recent],
            "random": _random_rate(positive, explored, len(self.campaign.pool)),
            "distance": [
                {"label": int(label), "distance": value}
                for label, value in zip(shown[shown > 0], _distances(self.campaign.pool, far), strict=False)
                if value is not None
            ],
            "people": _people(ledger),
        }

    def _certified(self) -> dict[str, Any]:
        """The bound on recall, how it came about, and what the target would cost; nothing where there is none."""
        labels = self.follow()[0].count("positive", "negative")
        if not 0 < labels <= _MOST_ASSESSED:
            return {"bound": None, "bounds": []}
        try:
            bound, course = finite(self.campaign.assess().as_dict()), np.array(self.campaign.bounds())
        except (ActiveCoverError, ArithmeticError):
            return {"bound": None, "bounds": []}
        if self.sight.blind:
            # Owners may see the bound, but they may label too: how far the control sample is they find in `assess`.
            bound |= {"reasoning": self.campaign.status().certificate, "price": None, "recall_estimate": None}
        # An ask that was put aside counts as a time too: the course is brought to the scale of labels.
        shown = np.linspace(0, len(course) - 1, min(len(course), _POINTS)).astype(int)
        times = shown * labels / max(len(course) - 1, 1)
        points = [[round(float(x), 1), round(float(course[at]), 4)] for x, at in zip(times, shown, strict=True)]
        return {"bound": bound, "bounds": points}


def finite(said: dict[str, Any]) -> dict[str, Any]:
    """An assessment as JSON can hold it."""
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in said.items()}
    return {key: None if isinstance(value, float) and not np.isfinite(value) else value for key, value in plain.items()}


def _random_rate(positive: npt.NDArray[np.bool_], explored: npt.NDArray[np.bool_], rows: int) -> float | None:
    """Positives per label of a search at random: as the random draws say, at least as many as are known."""
    if not len(positive):
        return None
    drawn = float(positive[explored].mean()) if explored.any() else 0.0
    return max(drawn, float(positive.sum()) / rows)


def _people(ledger: Ledger) -> list[dict[str, Any]]:
    people: dict[str, dict[str, Any]] = {
        who: {"who": who, "yes": 0, "no": 0, "aside": 0, "last": at} for who, at in ledger.people.items()
    }
    for ask in ledger.asks.values():
        for who, label in ask.opinions.items():
            people[who]["yes" if label else "no"] += 1
        if ask.state in ("skipped", "unsure"):
            people[ask.by]["aside"] += 1
    return sorted(people.values(), key=lambda person: -(person["yes"] + person["no"]))


def _distances(pool: Pool, asks: list[Ask]) -> Iterator[float | None]:
    """How far each item lay from the positive that it was proposed for."""
    for ask in asks:
        if ask.nearest is None or ask.nearest.startswith("known positive "):
            yield None
            continue
        rows = pool.rows([ask.id, ask.nearest])
        far = None if pool.withdrawn[rows].any() else distance_between(pool, int(rows[0]), int(rows[1]))
        yield None if far is None or not np.isfinite(far) else round(far, 6)


def distance_between(pool: Pool, first: int, second: int) -> float:
    """The distance of two rows by the pool's metric, good enough for a picture."""
    pair: Any = pool.take([first, second])
    if pool.kind == "bits":
        one, other = (np.unpackbits(np.ascontiguousarray(row).view(np.uint8)) for row in pair)
        union = int((one | other).sum())
        return 1 - int((one & other).sum()) / union if union else 0.0
    if pool.kind == "sparse":
        pair = pair.toarray()
    return float(np.linalg.norm(np.asarray(pair[0], np.float64) - np.asarray(pair[1], np.float64)))


def _words(event: Event) -> str:
    return " ".join(str(event.get(key, "")) for key in ("event", "id", "by", "note", "source")).casefold()
