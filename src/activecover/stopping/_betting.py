"""Certify while querying: bet against every total of positives that would be too many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from activecover.stopping._record import AUDIT, EXPLORE, INSURANCE, LEARNER, NO, Floats, Ints, Record
from activecover.stopping._rule import FIXED_POOL, Course, Rule, last_known

#: Each bettor assumes that the positives left are this share of the number that the total under test implies. The
#: logarithm of their pooled wealth trails that of the best bettor by at most ``log(len(SHARES))``.
SHARES = np.array([0.02, 0.15, 0.35, 0.55, 0.75])
#: Totals under test: every one up to ``_DENSE``, then steps of 1 %.
_DENSE, _RATIO = 200, 1.01
_CHUNK = 64
_GRID = 200


@dataclass(frozen=True, slots=True)
class _Draws:
    """The draws that count as evidence: those with known probabilities."""

    places: Ints
    #: The outcome divided by its probability; its expectation is the number of positives left.
    weighted: Floats
    #: The largest value that the outcome could have had.
    largest: Floats
    #: Positives known before the draw, unsettled rows included.
    before: Ints

    def log_gains(self, totals: Floats, chosen: slice) -> Floats:
        """Logarithmic growth of wealth by bettor, draw and total under test."""
        top = self.largest[chosen, None]
        claimed = np.clip(totals[None, :] - self.before[chosen, None], 0.0, None)
        drawn = self.weighted[chosen, None]
        # A total that implies more positives than can be left is impossible.
        room = np.maximum(top - claimed, 1e-9 * top)
        return np.log1p((1 - SHARES)[:, None, None] * ((np.minimum(claimed, top) - drawn) / room)[None])


class WeightedBetting(Rule):
    """Certify while querying: every draw with a known probability is a bet against too many positives.

    Suppose that the pool has T positives. If a row with label y (0 or 1) is drawn with probability q, the
    expectation of y/q is the number of positives left, which is T minus those known before. To test a total T,
    a bettor stakes money on the draws being smaller than T implies: each draw multiplies the wealth by
    ``1 + (1 - s) (left - y/q) / (largest - left)``. If T is the true total, the bets are fair, and the wealth
    ever reaches ``1 / alpha`` with a probability of at most alpha. A total against which it does is excluded,
    and all larger totals with it. Five bettors with different s share the stake.

    Uniform draws (exploration, insurance, audit) count with q = 1 / open rows; for these a bet is the
    likelihood ratio. Draws of a randomised learner count if it mixes a share e of the uniform distribution into
    its own; no row may have a probability below e / open rows. Deterministic choices (q = 1) move rows
    from open to known and prove nothing by themselves. All kinds of draws may alternate freely, and the error
    probability is not divided among them: querying and certifying are one process.

    Parameters
    ----------
    target, confidence : float
        Recall to certify, and with what confidence.
    floor : float
        e: the uniform share in the draws of a randomised learner.

    References
    ----------
    S. Shekhar, Z. Xu, Z. C. Lipton, P. J. Liang, A. Ramdas: Risk-limiting financial audits via weighted
    sampling without replacement. UAI 2023.
    """

    name = "weighted-betting"
    valid = True
    anytime = True
    design = "insurance"
    course_per_target = False
    assumptions = (
        "the recorded probabilities are those with which rows were drawn, chosen before each draw",
        "no open row had less than the floor's share of a uniform chance in a draw of the learner",
        FIXED_POOL,
    )

    def __init__(self, target: float = 0.95, confidence: float = 0.95, floor: float = 0.1) -> None:
        self.target = target
        self.confidence = confidence
        self.floor = floor

    def follow(self, record: Record) -> Course:
        """One less than the lowest total excluded so far."""
        course = Course.nothing(record)
        draws = self._draws(record)
        if not len(draws.places):
            return course
        totals = _totals(record.rows)
        lowest = self._first_excluded(draws, totals)
        upper = np.concatenate([[0], totals[1:] - 1, [np.inf]])
        course.total_upper[draws.places + 1] = upper[lowest]
        course.total_estimate[draws.places + 1] = _estimate(draws)
        return Course(np.minimum.accumulate(course.total_upper), last_known(course.total_estimate))

    def _draws(self, record: Record) -> _Draws:
        chance = record.probability * record.open_rows
        uniform = np.isin(record.source, (EXPLORE, INSURANCE, AUDIT)) & (np.abs(chance - 1) < 1e-6)
        weighted = (record.source == LEARNER) & (record.probability < 1) & (chance >= self.floor * (1 - 1e-9))
        # A single draw below the floor shows that the learner does not draw as assumed: none of its draws count.
        weighted &= not np.any((record.source == LEARNER) & (chance < self.floor * (1 - 1e-9)))
        places = np.flatnonzero((uniform | weighted) & record.current)
        largest: Floats = np.where(uniform, 1.0, 1 / self.floor)[places] * record.open_rows[places].astype(np.float64)
        positive = record.outcome[places] != NO
        # An unsettled draw counts as the worst case.
        hit = np.where(record.outcome[places] == 1, 1 / np.maximum(record.probability[places], 1e-300), largest)
        return _Draws(places, np.where(positive, np.minimum(hit, largest), 0.0), largest, record.possible[places])

    def _first_excluded(self, draws: _Draws, totals: Floats) -> Ints:
        """After each draw, the index of the lowest total excluded so far; all higher totals are excluded too."""
        found = np.empty(len(draws.places), np.int64)
        # Wealth increases with the total under test, so the excluded totals are an upper range, which is cut off.
        wealth = np.full((len(SHARES), len(totals)), -np.log(len(SHARES)))
        end, limit = len(totals), -np.log(self.alpha)
        for start in range(0, len(draws.places), _CHUNK):
            chosen = slice(start, start + _CHUNK)
            low = min(int(np.searchsorted(totals, draws.before[start])), end - 1)
            path = np.cumsum(draws.log_gains(totals[low:end], chosen), axis=1) + wealth[:, None, low:end]
            excluded = _sum_of_wealth(path) >= limit
            first = np.where(excluded.any(axis=1), low + excluded.argmax(axis=1), end)
            found[chosen] = np.minimum.accumulate(first)
            wealth[:, low:end] = path[:, -1]
            end = int(found[chosen][-1])
        return found

    def _why_stopped(self, record: Record) -> str:
        draws = self._draws(record)
        hits = int((draws.weighted > 0).sum())
        return f"{len(draws.places):,} draws with known chances, {hits:,} of them positive, leave room for no more"

    def _price(self, record: Record, course: Course) -> tuple[int | None, str]:
        left, found = int(record.open_after[-1]), int(record.found[-1])
        draws = self._draws(record)
        missing = found * (1 / self.target - 1) / 2
        if len(draws.places):
            # Half a positive more than was drawn: having drawn none does not mean that none is left.
            likely = float(course.total_estimate[-1]) + 0.5 / float((1 / draws.largest).sum())
            missing = min(float(left), max(0.5, likely - int(record.possible[-1])))
        more = self.further(draws, left, found, int(record.possible[-1]), missing)
        return more, (
            f"about {more:,} uniform draws more, if some {missing:,.0f} positives are left among the {left:,} open rows; "
            "what the learner finds meanwhile makes it fewer"
        )

    def further(self, draws: _Draws | None, left: int, found: int, possible: int, missing: float) -> int:
        """Uniform draws still needed to certify the target, if positives turn up as often as expected."""
        more = np.unique(np.geomspace(1, max(1, left), _GRID).astype(np.int64))
        low, high = 0, len(more) - 1
        while low < high:
            middle = (low + high) // 2
            if self._certified_after(int(more[middle]), draws, left, found, possible, missing):
                high = middle
            else:
                low = middle + 1
        return int(more[low])

    def _certified_after(
        self, count: int, draws: _Draws | None, left: int, found: int, possible: int, missing: float
    ) -> bool:
        if count >= left:
            return True
        total = np.array([np.floor((found + missing * count / left) / self.target) + 1])
        wealth = np.full(len(SHARES), -np.log(len(SHARES)))
        if draws is not None and len(draws.places):
            wealth = wealth + draws.log_gains(total, slice(None)).sum(axis=(1, 2))
        # Future draws, in steps: the negatives as an integral, the positives at their expected number.
        steps = (np.arange(_GRID) + 0.5) * count / _GRID
        open_rows = left - steps
        share = np.clip((total[0] - possible - missing * steps / left) / open_rows, 0, 1 - 1e-12)[None, :]
        hits = missing * count / left
        ahead = np.log1p((1 - SHARES)[:, None] * share / (1 - share)).mean(axis=1) * (count - hits)
        return bool(special.logsumexp(wealth + ahead + hits * np.log(SHARES)) >= -np.log(self.alpha))


def _sum_of_wealth(logs: Floats) -> Floats:
    """Logarithm of the bettors' summed wealth; faster than ``scipy.special.logsumexp``."""
    top = logs.max(axis=0)
    total: Floats = top + np.log(np.exp(logs - top).sum(axis=0))
    return total


def _totals(rows: int) -> Floats:
    """Totals from 0 to the size of the pool, spaced more widely as they grow."""
    dense = np.arange(min(rows, _DENSE) + 1)
    if rows <= _DENSE:
        return dense.astype(np.float64)
    steps = int(np.ceil(np.log(rows / _DENSE) / np.log(_RATIO))) + 1
    sparse = np.ceil(np.geomspace(_DENSE, rows, steps))
    return np.unique(np.concatenate([dense, sparse])).astype(np.float64)


def _estimate(draws: _Draws) -> Floats:
    """Estimate of the total after each draw, weighting draws by the inverse of their largest value."""
    weights = 1 / draws.largest
    estimate: Floats = np.cumsum((draws.before + draws.weighted) * weights) / np.cumsum(weights)
    return estimate
