"""Positives that may be mistakes: a single one misleads the search for long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from activecover.campaign._availability import Availability
from activecover.campaign._guarantee import Guarantee
from activecover.campaign._items import Item
from activecover.campaign._journal import Journal
from activecover.graph import nearest_among
from activecover.pool import Vectors
from activecover.store import Ask

#: This many negatives that the learner asked for, nearer to a positive than any other positive, make it suspicious.
FLOOD = 10
#: With fewer positives there is no telling what is far.
_FEWEST = 8


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A positive that should be looked at again, and why."""

    item: Item
    reason: str


class Suspects:
    """Positives that look like mistakes.

    Contract: worked out from the ledger and the pool; nothing is written. Whether the learner has reached a control
    row makes no difference to the result while the guarantee is blind.

    Parameters
    ----------
    journal : Journal
        Of the campaign.
    rows : Availability
        Which items are still in the pool.
    guarantee : Guarantee
        Whether control rows have to stay unknown.
    outside : array or None
        Known positives from outside the pool.
    """

    def __init__(self, journal: Journal, rows: Availability, guarantee: Guarantee, outside: Vectors | None) -> None:
        self._journal, self._rows, self._guarantee, self._outside = journal, rows, guarantee, outside
        #: The changed labels and rebuilds that the result rests on, whether it was blind, and the result.
        self._found: tuple[int, int, bool, dict[str, str]] = (-1, -1, False, {})

    def reasons(self) -> dict[str, str]:
        """The suspects that nobody has confirmed, and why."""
        asks = self._journal.ledger.asks
        return {name: why for name, why in self._find(0).items() if not asks[name].confirmed}

    def count(self) -> int:
        """How many there are; the count may be a fiftieth of the labels old."""
        ledger = self._journal.ledger
        found = self._find(ledger.count("positive", "negative") // 50)
        asks = (ledger.asks.get(name) for name in found)
        return sum(ask is not None and ask.state == "positive" and not ask.confirmed for ask in asks)

    def _find(self, age: int) -> dict[str, str]:
        """Suspects and why, as of at most ``age`` changed labels ago."""
        ledger, rebuilt = self._journal.ledger, self._journal.rebuilt
        # Control rows that the learner reaches are not counted: that one was reached must not show here.
        changes, blind = ledger.changes - ledger.reached, self._guarantee.blind
        known_at, known_rebuilt, was_blind, _ = self._found
        if (was_blind, known_rebuilt) != (blind, rebuilt) or not changes - age <= known_at <= changes:
            self._found = (changes, rebuilt, blind, self._find_all(blind))
        return self._found[3]

    def _find_all(self, blind: bool) -> dict[str, str]:
        positives = self._rows.not_erased(self._journal.ledger.with_state("positive"))
        known = self._rows.not_erased([Ask(-1, name, "given", 0, "", None) for name in self._journal.known])
        outside = 0 if self._outside is None else int(self._outside.shape[0])
        certain = len(known) + outside
        if not positives or len(positives) + certain < 2 or self._journal.pool.kind not in ("dense", "sparse", "bits"):
            return {}
        # Which negatives the learner asked for would tell the control rows.
        negatives = [
            ask for ask in self._journal.ledger.with_state("negative") if ask.source == "learner" and not blind
        ]
        names = [ask.id for ask in (*positives, *known, *self._rows.not_erased(negatives))]
        part = self._journal.pool.part(self._journal.pool.rows(names), also=self._outside)
        count = len(positives)
        is_positive = np.zeros(len(part), bool)
        is_positive[: count + len(known)] = True
        is_positive[len(names) :] = True
        yes = np.flatnonzero(is_positive)
        apart = nearest_among(part, yes, yes, 1)[1][:, 0]
        middle = float(np.median(apart))
        found = {
            names[place]: f"far from all other positives ({apart[place]:.3g}, they are {middle:.3g} apart)"
            for place in np.flatnonzero(_outlying(apart)[:count]).tolist()
        }
        around = nearest_among(part, np.arange(count), np.arange(len(part)), FLOOD)[0]
        flooded = (around >= 0).all(axis=1) & ~is_positive[around].any(axis=1)
        for place in np.flatnonzero(flooded).tolist():
            found.setdefault(names[place], f"the {FLOOD} items nearest to it that were asked for are all negative")
        return found


def _outlying(distances: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which distances are far beyond the others."""
    if len(distances) < _FEWEST:
        return np.zeros(len(distances), bool)
    low, middle, high = np.quantile(distances, [0.25, 0.5, 0.75])
    return np.asarray(distances > max(high + 3 * (high - low), 2 * middle))
