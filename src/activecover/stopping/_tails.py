"""Tails of the distributions behind the rules, exact where possible and finite for pools of any size."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from activecover.compiling import compiled

Floats = npt.NDArray[np.float64]

#: Terms more than ``_REACH`` standard deviations plus ``_MORE`` from the mean are too small to show in a float64.
_REACH, _MORE = 10.0, 40.0
#: Logarithms of factorials are tabulated up to this number.
_TABLE = 10**6


def log_choose(n: npt.ArrayLike, k: npt.ArrayLike) -> Floats:
    """Logarithm of the number of ways to choose ``k`` of ``n``; minus infinity if there are none.

    Examples
    --------
    >>> np.exp(log_choose([5, 3], [2, 4])).round(6).tolist()
    [10.0, 0.0]
    """
    wide_n, wide_k = np.broadcast_arrays(np.asarray(n, np.float64), np.asarray(k, np.float64))
    possible = (wide_k >= 0) & (wide_k <= wide_n)
    top, part = np.where(possible, wide_n, 0.0), np.where(possible, wide_k, 0.0)
    ways: Floats = special.gammaln(top + 1) - special.gammaln(part + 1) - special.gammaln(top - part + 1)
    return np.where(possible, ways, -np.inf)


def hypergeometric_cdf(k: int, population: int, positives: int, draws: int) -> float:
    """Probability of at most ``k`` positives among ``draws`` rows drawn without replacement.

    If there are more positives than rows, the probability is 0.

    Examples
    --------
    >>> round(hypergeometric_cdf(0, 10, 5, 2), 6)
    0.222222
    >>> hypergeometric_cdf(0, 10, 11, 2)
    0.0
    """
    if positives > population:
        return 0.0
    low, high = max(0, draws + positives - population), min(draws, positives)
    if k < low:
        return 0.0
    if k >= high:
        return 1.0
    mean = draws * positives / population
    spread = math.sqrt(mean * (1 - positives / population) * (population - draws) / max(1, population - 1))
    reach = int(_REACH * spread + _MORE)
    # Summed outwards from the largest term, or from term k if that comes first, by ratios of neighbours.
    anchor = max(low, min(k, int(mean)))
    down = np.arange(anchor, max(low, anchor - reach), -1.0)
    up = np.arange(anchor, min(k, anchor + reach), 1.0)
    rest = population - positives - draws
    below = np.cumprod(down * (rest + down) / ((positives - down + 1) * (draws - down + 1)))
    above = np.cumprod((positives - up) * (draws - up) / ((up + 1) * (rest + up + 1)))
    largest = _hypergeometric(anchor, population, positives, draws)
    return min(1.0, largest * float(1 + below.sum() + above.sum()))


def _hypergeometric(k: int, population: int, positives: int, draws: int) -> float:
    ways = _log_ways(positives, k) + _log_ways(population - positives, draws - k) - _log_ways(population, draws)
    return math.exp(ways)


def _log_ways(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def most_positives(k: int, population: int, draws: int, alpha: float) -> int:
    """Upper bound on the positives after ``k`` among ``draws`` rows, with confidence ``1 - alpha``.

    Examples
    --------
    >>> most_positives(0, 1000, 100, 0.05)
    28
    >>> most_positives(0, 1000, 1000, 0.05)
    0
    """
    low, high = k, population - draws + k
    while low < high:
        middle = (low + high + 1) // 2
        if hypergeometric_cdf(k, population, middle, draws) >= alpha:
            low = middle
        else:
            high = middle - 1
    return low


def beta_binomial_log(k: npt.ArrayLike, n: npt.ArrayLike, a: float, b: float) -> Floats:
    """Logarithm of the beta-binomial probability of ``k`` out of ``n``."""
    k, n = np.asarray(k, np.float64), np.asarray(n, np.float64)
    # For large arguments, a difference of beta functions is lost to rounding; paired gammas keep it.
    prior = special.gammaln(a + b) - special.gammaln(a) - special.gammaln(b)
    mass = special.gammaln(k + a) + special.gammaln(n - k + b) - special.gammaln(n + a + b)
    result: Floats = log_choose(n, k) + prior + mass
    return result


def sequence_upper(
    x: npt.ArrayLike, m: npt.ArrayLike, rows: int, alpha: float, a: float = 1.0, b: float = 1.0
) -> npt.NDArray[np.int64]:
    """Upper bound on the positives among ``rows`` after ``x`` in ``m`` draws, valid at every look.

    A count R remains possible while its hypergeometric likelihood is above ``alpha`` times the
    beta-binomial probability of the draws: the prior-posterior ratio of R is below ``1/alpha``. The
    likelihood has one peak, so the possible counts form an interval, and its end is found by bisection.

    Examples
    --------
    >>> sequence_upper([0, 0, 0], [10, 50, 100], 100, 0.05).tolist()
    [39, 9, 0]
    """
    seen, drawn = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(m, np.float64))
    threshold = math.log(alpha) + beta_binomial_log(seen, drawn, a, b) + log_choose(rows, drawn)
    # Rounded to whole numbers, since plans pass expected, fractional draws.
    high = np.floor(rows - drawn + seen)
    peak = np.floor(seen * (rows + 1) / np.maximum(drawn, 1))
    low = np.minimum(np.maximum(peak, np.ceil(seen)), high)
    if rows <= _TABLE and np.all(seen == np.floor(seen)) and np.all(drawn == np.floor(drawn)):
        whole = np.stack([np.ravel(values) for values in (seen, drawn, low, high)]).astype(np.int64)
        ends = _likely_ends(_log_factorials(rows), rows, whole, np.ravel(threshold))
        return ends.reshape(seen.shape)
    while np.any(low < high):
        middle = np.floor((low + high + 1) / 2)
        likely = log_choose(middle, seen) + log_choose(rows - middle, drawn - seen) > threshold
        low, high = np.where(likely, middle, low), np.where(likely, high, np.maximum(middle - 1, low))
    upper: npt.NDArray[np.int64] = low.astype(np.int64)
    return upper


@compiled()
def _likely_ends(table: Floats, rows: int, looks: npt.NDArray[np.int64], threshold: Floats) -> npt.NDArray[np.int64]:
    """For each look (seen, drawn, lowest, highest), find the largest likely count by bisection."""
    ends = np.empty(len(threshold), np.int64)
    for place in range(len(threshold)):
        x, drawn, first, last = looks[:, place]
        rest = drawn - x
        least = threshold[place] + table[x] + table[rest]
        while first < last:
            middle = (first + last + 1) // 2
            other = rows - middle
            if table[middle] - table[middle - x] + table[other] - table[other - rest] > least:
                first = middle
            else:
                last = max(middle - 1, first)
        ends[place] = first
    return ends


@lru_cache(maxsize=4)
def _log_factorials(largest: int) -> Floats:
    table: Floats = special.gammaln(np.arange(largest + 1) + 1.0)
    table.flags.writeable = False
    return table


@lru_cache(maxsize=10_000)
def quantile_threshold(r: int, target: float, alpha: float) -> int | None:
    """How many of ``r`` control positives must be found; None if even all are not enough.

    Examples
    --------
    >>> quantile_threshold(50, 0.8, 0.05), quantile_threshold(50, 0.9, 0.05), quantile_threshold(28, 0.9, 0.05)
    (45, 49, None)
    """
    if r < 1:
        return None
    wanted = np.arange(1, r + 1)
    enough = special.bdtr(wanted - 1.0, r, target) >= 1 - alpha
    return int(wanted[enough][0]) if enough.any() else None


def smallest_control(target: float, alpha: float) -> int:
    """The fewest control positives with which a target can be certified at all.

    Examples
    --------
    >>> [smallest_control(target, 0.05) for target in (0.8, 0.9, 0.95, 0.99)]
    [14, 29, 59, 299]
    """
    return max(1, math.ceil(math.log(alpha) / math.log(target) - 1e-9))


def first_true(values: npt.ArrayLike) -> int | None:
    """The index of the first true value, or None."""
    given = np.asarray(values)
    place = int(given.argmax()) if given.size else 0
    return place if given.size and given[place] else None
