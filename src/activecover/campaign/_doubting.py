"""A second look: positives that may be mistakes, as one wrong positive misleads the search for long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from activecover.campaign._asking import Asking
from activecover.campaign._checks import check_person
from activecover.campaign._items import Item
from activecover.errors import InputError
from activecover.graph import nearest_among
from activecover.store import Ask

#: So many items that the learner asked for, and all of them negative, nearer than any other positive, are a flood.
FLOOD = 10
#: With fewer positives nobody can say what is far.
_FEWEST = 8


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A positive that should be looked at again, and why."""

    item: Item
    reason: str


class Doubting(Asking):
    """Which positives look like mistakes."""

    def suspicious(self) -> list[Suspicion]:
        """Positives that deserve a second look, until someone confirms them or changes the label.

        One is suspicious if it lies far from all other positives, compared with how far these are apart
        (beyond the third quartile by three times the range between the quartiles, and twice the median), or if
        ten items that the learner asked for and that are negative lie nearer to it than any other
        positive does. Where negatives are forgotten, or control rows have to stay unknown, only the first can be told.

        Examples
        --------
        >>> from activecover import Campaign, Pool
        >>> campaign = Campaign(Pool([[x / 10] for x in range(30)] + [[99.0]]), explore=0)
        >>> campaign.tell([*map(str, range(9)), "30"], [True] * 10)
        >>> [(doubt.item.id, doubt.reason) for doubt in campaign.suspicious()]
        [('30', 'far from all other positives (98.2, they are 0.1 apart)')]
        >>> campaign.confirm("30")
        >>> campaign.suspicious()
        []
        """
        with self._turn():
            doubts = self._doubts(0)
            asks = [self._ledger.asks[name] for name in doubts if not self._ledger.asks[name].confirmed]
            return [Suspicion(self._item(ask), doubts[ask.id]) for ask in asks]

    def confirm(self, ids: str | Sequence[str], by: str = "me") -> None:
        """Say of positives, at a second look, that they are: they are not suspicious any more."""
        check_person(by)
        names = [ids] if isinstance(ids, str) else list(ids)
        with self._turn():
            self.pool.rows(names)
            names = list(dict.fromkeys(map(self._ledger.groups.first, names)))
            for name in names:
                ask = self._ledger.asks.get(name)
                if ask is None or ask.state != "positive":
                    raise InputError(f"id {name!r} is not labelled as positive: there is nothing to confirm")
            self._write([{"event": "confirmed", "id": name, "by": by} for name in names])

    def _suspects(self) -> int:
        """How many positives are suspicious; the count may be a fiftieth of the labels old."""
        doubts = self._doubts(self._ledger.count("positive", "negative") // 50)
        asks = (self._ledger.asks.get(name) for name in doubts)
        return sum(ask is not None and ask.state == "positive" and not ask.confirmed for ask in asks)

    def _doubts(self, age: int) -> dict[str, str]:
        """Suspicious positives and why, from so many changed labels ago at most."""
        # Counted without control rows that the learner reaches: that one was reached must not show here.
        changes, blind = self._ledger.changes - self._ledger.reached, self._is_blind()
        known_at, was_blind, _ = self._doubted
        if was_blind != blind or not changes - age <= known_at <= changes:
            self._doubted = (changes, blind, self._find_doubts(blind))
        return self._doubted[2]

    def _find_doubts(self, blind: bool) -> dict[str, str]:
        positives = self._not_erased(self._ledger.with_state("positive"))
        known = self._not_erased([Ask(-1, name, "given", 0, "", None) for name in self._known])
        outside = 0 if self._outside is None else int(self._outside.shape[0])
        certain = len(known) + outside
        if not positives or len(positives) + certain < 2 or self.pool.kind not in ("dense", "sparse", "bits"):
            return {}
        # Which negatives the learner asked for would tell which of them are control rows.
        negatives = [ask for ask in self._ledger.with_state("negative") if ask.source == "learner" and not blind]
        names = [ask.id for ask in (*positives, *known, *self._not_erased(negatives))]
        part = self.pool.part(self.pool.rows(names), also=self._outside)
        count = len(positives)
        is_positive = np.zeros(len(part), bool)
        is_positive[: count + len(known)] = True
        is_positive[len(names) :] = True
        yes = np.flatnonzero(is_positive)
        apart = nearest_among(part, yes, yes, 1)[1][:, 0]
        middle = float(np.median(apart))
        doubts = {
            names[place]: f"far from all other positives ({apart[place]:.3g}, they are {middle:.3g} apart)"
            for place in np.flatnonzero(_outlying(apart)[:count]).tolist()
        }
        around = nearest_among(part, np.arange(count), np.arange(len(part)), FLOOD)[0]
        flooded = (around >= 0).all(axis=1) & ~is_positive[around].any(axis=1)
        for place in np.flatnonzero(flooded).tolist():
            doubts.setdefault(names[place], f"the {FLOOD} items nearest to it that were asked for are all negative")
        return doubts


def _outlying(distances: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which distances are far beyond the others."""
    if len(distances) < _FEWEST:
        return np.zeros(len(distances), bool)
    low, middle, high = np.quantile(distances, [0.25, 0.5, 0.75])
    return np.asarray(distances > max(high + 3 * (high - low), 2 * middle))
