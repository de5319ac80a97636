"""The paper's bounds as functions, and sharper bounds where they are known.

Notation of the paper: ``p`` is the share of positives in the pool, ``c`` the number of connected components of
their support, ``q`` the smallest component's share of the positives, ``delta`` the probability of failure. All
logarithms are natural. Constants that the paper proves to exist without giving their value are parameters named
``constant``, 1 by default: the results then show how a bound scales, not how large it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import digamma

from activecover.errors import LARGEST_COUNT, InputError, check_count

_Floats = npt.NDArray[np.float64]

#: If the probabilities of missing single components add up to less, their overlaps vanish in double precision.
_OVERLAPS_VANISH = 1e-7
#: Number of frequencies at which the characteristic function is evaluated; well before the last it is zero.
_FREQUENCIES = 1024


def ball_volume(dimension: int) -> float:
    """Volume of the unit ball, v_D in the paper.

    Examples
    --------
    >>> round(ball_volume(2), 6), round(ball_volume(3), 6)
    (3.141593, 4.18879)
    """
    check_count("dimension", dimension)
    return math.exp(_log_ball_volume(dimension))


def epsilon_connected(
    n: int, dimension: int, delta: float, *, p: float, density: float, thickness: float, constant: float = 1.0
) -> float:
    """Radius at which each component's positives are connected in the neighbourhood graph (Lemma 2).

    They are so with a probability of at least ``1 - delta``, provided that the radius does not exceed r0, up to which
    the support is known to be nowhere thin.

    Parameters
    ----------
    n : int
        Rows of the pool.
    dimension : int
        D.
    delta : float
        Probability of failure.
    p : float
        Share of positives.
    density : float
        λ0: lower bound on the positives' density on their support.
    thickness : float
        C+: lower bound on the share of a small ball around a point of the support that lies in the support.
    constant : float
        C0, universal but not given in the paper.

    Examples
    --------
    >>> radius = [epsilon_connected(n, 2, 0.05, p=0.1, density=1, thickness=0.25) for n in (10**4, 10**6)]
    >>> round(radius[0] / radius[1], 2)  # √(100 · log 10⁴ / log 10⁶)
    8.16
    """
    check_count("n", n, least=2)
    _check_geometry(dimension, delta, p, density, thickness, constant)
    top = math.log(constant * dimension) + math.log(math.log(2 / delta)) + math.log(math.log(n))
    bottom = math.log(p) + math.log(thickness) + math.log(density) + _log_ball_volume(dimension) + math.log(n)
    return 3 * math.exp((top - bottom) / dimension)


def epsilon_active(
    n: int, dimension: int, delta: float, *, p: float, density: float, thickness: float, constant: float = 1.0
) -> float:
    """Largest distance from the support at which Explore-then-Commit asks (proof of Theorem 4).

    This is the radius of Lemma 2 at half the probability of failure; the other half goes to Lemma 1. For the
    parameters see :func:`epsilon_connected`.

    Examples
    --------
    >>> given = dict(p=0.1, density=1.0, thickness=0.25)
    >>> epsilon_active(10**6, 3, 0.1, **given) == epsilon_connected(10**6, 3, 0.05, **given)
    True
    """
    _check_delta(delta)
    return epsilon_connected(n, dimension, delta / 2, p=p, density=density, thickness=thickness, constant=constant)


def epsilon_offline(
    m: int, dimension: int, delta: float, *, p: float, density: float, thickness: float, constant: float = 1.0
) -> float:
    """Radius within which every positive has a sampled positive (proof of Theorem 2).

    Parameters
    ----------
    m : int
        Rows of the sample; ``p * m`` must exceed 2, since the bound contains log(p·m/2).
    dimension, delta, p, density, thickness, constant
        As in :func:`epsilon_connected`.

    Examples
    --------
    >>> round(epsilon_offline(10**6, 2, 0.05, p=0.1, density=1, thickness=0.25), 3)
    0.155
    """
    _check_geometry(dimension, delta, p, density, thickness, constant)
    positives = _log_of_half_the_positives(p, m)
    top = math.log(2 * constant * dimension) + math.log(math.log(4 / delta)) + math.log(positives)
    bottom = 2 * math.log(p) + math.log(thickness) + math.log(density) + _log_ball_volume(dimension) + math.log(m)
    return math.exp((top - bottom) / dimension)


def offline_excess_bound(n: int, m: int, dimension: int, delta: float, *, p: float, constant: float = 1.0) -> float:
    """Bound on the offline learner's expected excess query cost (Theorem 2).

    Parameters
    ----------
    n, m : int
        Rows of the pool and of the sample.
    dimension, delta, p
        As in :func:`epsilon_connected`.
    constant : float
        C, which depends on the distribution and is not given in the paper.

    Examples
    --------
    >>> round(offline_excess_bound(10**6, 10**4, 2, 0.05, p=0.1))
    61185
    """
    check_count("n", n)
    check_count("dimension", dimension)
    _check_delta(delta)
    _check_share("p", p)
    _check_above_zero("constant", constant)
    inside = math.log(4 / delta) * _log_of_half_the_positives(p, m) / m
    return float((1 - p) * m + constant * inside ** (1 / dimension) * n)


def active_excess_bound(n: int, m: int, dimension: int, delta: float, *, constant: float = 1.0) -> float:
    """Bound on Explore-then-Commit's expected excess query cost (Theorem 4).

    It holds for samples of at least :func:`explore_theorem4` rows and pools of at least :func:`n_large_enough` rows.

    Parameters
    ----------
    n, m : int
        Rows of the pool and of the sample.
    dimension, delta
        As in :func:`epsilon_connected`.
    constant : float
        C, which depends on the distribution and is not given in the paper.

    Examples
    --------
    >>> round(active_excess_bound(10**6, 10**4, 2, 0.05))
    17781
    """
    check_count("n", n, least=2)
    check_count("m", m)
    check_count("dimension", dimension)
    _check_delta(delta)
    _check_above_zero("constant", constant)
    spread = (math.log(4 / delta) * math.log(n)) ** (1 / dimension)
    return float(m + constant * spread * n ** ((dimension - 1) / dimension))


def n_large_enough(
    dimension: int,
    delta: float,
    *,
    p: float,
    radius: float,
    density: float,
    thickness: float,
    constant: float = 1.0,
) -> int:
    """Smallest pool to which Theorem 4 applies: n / log n is at least N0 · log(4 / delta).

    Parameters
    ----------
    radius : float
        The smaller of r0, up to which the support is nowhere thin, and r1, up to which the volume of its
        neighbourhood is linear.
    dimension, delta, p, density, thickness, constant
        As in :func:`epsilon_connected`.

    Examples
    --------
    >>> n = n_large_enough(2, 0.05, p=0.1, radius=0.5, density=1, thickness=0.25)
    >>> n
    42845
    >>> given = dict(p=0.1, density=1.0, thickness=0.25)
    >>> epsilon_active(n, 2, 0.05, **given) <= 0.5 < epsilon_active(n - 1, 2, 0.05, **given)
    True
    """
    _check_geometry(dimension, delta, p, density, thickness, constant)
    _check_above_zero("radius", radius)
    log_n0 = dimension * math.log(3 / radius) + math.log(constant * dimension)
    log_n0 -= math.log(p) + math.log(thickness) + math.log(density) + _log_ball_volume(dimension)
    wanted = log_n0 + math.log(math.log(4 / delta))
    # n / log n increases from n = 3 on, so the smallest sufficient n is found by bisection.
    low, high = 2, 3
    while math.log(high) - math.log(math.log(high)) < wanted:
        low, high = high, 2 * high
        if high > LARGEST_COUNT:
            raise InputError("no pool is large enough: the bound asks for more rows than can be counted")
    while high - low > 1:
        middle = (low + high) // 2
        enough = math.log(middle) - math.log(math.log(middle)) >= wanted
        low, high = (low, middle) if enough else (middle, high)
    return high


def explore_lemma1(p: float, q: float, c: int, delta: float) -> int:
    """Sample size of the paper's Lemma 1: with probability 1 - delta, a positive from each component.

    ``max{2·log(2c/δ) / (p·log(1/(1-q))), 2·log(2/δ) / p²}``. The second term grows as 1/p², and for rare positives
    it exceeds most pools; :func:`explore_union` never requires more rows, and usually far fewer.

    Parameters
    ----------
    p : float
        Share of positives in the pool, above 0.
    q : float
        Share of the smallest component among the positives; at most 1/c, and 1 if c = 1.
    c : int
        Number of components.
    delta : float
        Probability of failure.

    Examples
    --------
    >>> explore_lemma1(0.01, 0.2, 5, 0.05), explore_lemma1(0.02, 0.05, 5, 0.05)
    (73778, 18445)
    """
    _check_components(p, q, c, delta)
    return _paper_size(p, q, c, delta)


def explore_theorem4(p: float, q: float, c: int, delta: float) -> int:
    """Sample size that Theorem 4 requires: Lemma 1 at half the probability of failure.

    For the parameters see :func:`explore_lemma1`.

    Examples
    --------
    >>> explore_theorem4(0.02, 0.05, 5, 0.05)
    21911
    """
    _check_components(p, q, c, delta)
    return _paper_size(p, q, c, delta / 2)


def explore_union(p: float, q: float, c: int, delta: float) -> int:
    """Sample size by the direct union bound: ``log(c/δ) / (-log(1 - p·q))``. Not in the paper.

    A random row falls into the smallest component with probability p·q, so m rows miss it with probability
    (1 - p·q)^m, and miss any component with at most c times that probability. The guarantee is that of Lemma 1, and
    the size is never larger. For the parameters see :func:`explore_lemma1`.

    Examples
    --------
    >>> explore_union(0.01, 0.2, 5, 0.05), explore_union(0.02, 0.05, 5, 0.05)
    (2301, 4603)
    """
    _check_components(p, q, c, delta)
    hit = p * q
    if hit == 1:
        return 1
    return _whole(math.log(c / delta), -math.log1p(-hit))


def coupon_collector_expected(c: int) -> float:
    """Expected number of positives until each of ``c`` equal components has been hit: c·(1 + 1/2 + … + 1/c).

    This is the paper's remark on equal components. The expected number of random rows is 1/p times as large.

    Examples
    --------
    >>> round(coupon_collector_expected(5), 4)
    11.4167
    """
    check_count("components", c)
    return float(c * (digamma(c + 1) + np.euler_gamma))


def coupon_collector_probability(c: int, m: int) -> float:
    """Exact probability that ``m`` positives hit every one of ``c`` equal components.

    Examples
    --------
    >>> round(coupon_collector_probability(2, 3), 12)
    0.75
    >>> round(coupon_collector_probability(365, 2287), 4)
    0.5004
    """
    check_count("components", c)
    check_count("m", m, least=0)
    return _all_hit(np.array([1 / c]), np.array([c]), m)


def probability_all_hit(p: float, shares: Sequence[float] | _Floats, m: int) -> float:
    """Exact probability that ``m`` random rows contain a positive of every component.

    Inclusion-exclusion would sum huge terms of both signs. Instead, the m rows are treated as independent Poisson
    counts, conditioned on their total: given that all components are hit, the total is a sum of independent counts,
    and the probability that it is m follows from its characteristic function. All factors are positive, so nothing
    cancels, however many components there are.

    Parameters
    ----------
    p : float
        Share of positives in the pool.
    shares : sequence of float
        The components' shares of the positives; they add up to 1.
    m : int
        Rows of the sample.

    Examples
    --------
    >>> round(probability_all_hit(0.5, [0.5, 0.5], 2), 12)  # one row in each: 2 · 1/4 · 1/4
    0.125
    >>> probability_all_hit(0.02, [0.05, 0.05, 0.05, 0.05, 0.8], 4603) > 0.95
    True
    """
    _check_share("p", p)
    check_count("m", m, least=0)
    given = np.asarray(shares, np.float64)
    if given.ndim != 1 or not len(given) or not (given > 0).all() or not abs(given.sum() - 1) < 1e-9:
        raise InputError("shares: give one above 0 for each component, with a sum of 1")
    values, copies = np.unique(given, return_counts=True)
    return _all_hit(p * values, copies, m)


def best_offline_sample(n: int, dimension: int, constant: float = 1.0) -> int:
    """Sample size that balances the offline learner's two costs: n^(D/(D+1)) (corollary of Theorem 2).

    Parameters
    ----------
    n : int
        Rows of the pool; the sample is never larger.
    dimension : int
        D.
    constant : float
        Factor; the paper gives only the order.

    Examples
    --------
    >>> best_offline_sample(10**6, 2)
    10000
    """
    check_count("n", n)
    check_count("dimension", dimension)
    _check_above_zero("constant", constant)
    # Rounding guards against 10000.000000000002.
    return min(n, math.ceil(round(float(constant * n ** (dimension / (dimension + 1))), 6)))


def _paper_size(p: float, q: float, c: int, delta: float) -> int:
    for_components = 0 if q == 1 else _whole(2 * math.log(2 * c / delta), -p * math.log1p(-q))
    return max(for_components, _whole(2 * math.log(2 / delta), p * p))


def _whole(top: float, bottom: float) -> int:
    size = top / bottom if bottom > 0 else math.inf
    if size > LARGEST_COUNT:
        raise InputError("positives this rare need a sample of more rows than can be counted")
    return max(1, math.ceil(size))


def _all_hit(hits: _Floats, copies: npt.NDArray[np.int64], m: int) -> float:
    """Probability that m draws hit all cells; ``copies`` says how many cells have each probability of ``hits``."""
    cells = int(copies.sum())
    if m < cells:
        return 0.0
    with np.errstate(divide="ignore"):
        missed = float(copies @ np.exp(m * np.log1p(-np.minimum(hits, 1))))
    if missed < _OVERLAPS_VANISH:
        return 1.0 - missed
    if m == cells:
        return math.exp(math.lgamma(m + 1) + float(copies @ np.log(hits)))
    rest = max(0.0, 1.0 - float(copies @ hits))
    rate = _balanced_rate(hits, copies, rest, m)
    means = rate * hits
    total = _probability_of_total(means, copies, rate * rest, m)
    log_hit = float(copies @ np.log(-np.expm1(-means)))
    return min(1.0, math.exp(log_hit + math.log(total) - _log_poisson(m, rate)))


def _balanced_rate(hits: _Floats, copies: npt.NDArray[np.int64], rest: float, m: int) -> float:
    """Poisson rate at which the expected total of the counts is m, given that every cell is hit."""

    def surplus(rate: float) -> float:
        means = rate * hits
        return rate * rest + float(copies @ (means / -np.expm1(-means))) - m

    low, high = float(m - copies.sum()), float(m)
    # If the cells fill up almost never, or almost surely, the surplus is zero at one end, apart from rounding.
    if surplus(low) >= 0:
        return low
    if surplus(high) <= 0:
        return high
    from scipy.optimize import brentq

    return float(brentq(surplus, low, high, xtol=1e-12, rtol=1e-14))


def _probability_of_total(means: _Floats, copies: npt.NDArray[np.int64], rest: float, m: int) -> float:
    """Probability that a Poisson count and zero-truncated Poisson counts, one per cell, add up to m."""
    truncated = means / -np.expm1(-means)
    variance = rest + float(copies @ (truncated * (1 + means - truncated)))
    # Totals that differ by a multiple of the period cannot be told apart; it spans 16 standard deviations.
    period = math.ceil(16 * math.sqrt(max(variance, 0.0))) + 64
    angles = 2 * np.pi / period * np.arange(min(period // 2, _FREQUENCIES) + 1, dtype=np.float64)
    value = np.exp(rest * _step(angles) - 1j * m * angles)
    for mean, count in zip(means.tolist(), copies.tolist(), strict=True):
        # (exp(λe^{iθ}) - 1) / (exp(λ) - 1), with numerator and denominator divided by exp(λ).
        value *= ((np.exp(mean * _step(angles)) - math.exp(-mean)) / -math.expm1(-mean)) ** count
    weights = np.full(len(angles), 2.0)
    weights[0] = 1.0
    if period % 2 == 0 and len(angles) == period // 2 + 1:
        weights[-1] = 1.0
    return float(weights @ value.real) / period


def _step(angles: _Floats) -> npt.NDArray[np.complex128]:
    """``exp(iθ) - 1``, without loss of precision for small θ."""
    return np.asarray(-2 * np.sin(angles / 2) ** 2 + 1j * np.sin(angles))


def _log_poisson(count: int, rate: float) -> float:
    """Logarithm of the Poisson probability; exact to rounding where count and rate are huge and close."""
    if count < 20:
        return count * math.log(rate) - rate - math.lgamma(count + 1)
    off = (rate - count) / count
    stirling = 1 / (12 * count) - 1 / (360 * count**3) + 1 / (1260 * count**5)
    return count * (math.log1p(off) - off) - stirling - 0.5 * math.log(2 * math.pi * count)


def _log_ball_volume(dimension: int) -> float:
    return dimension / 2 * math.log(math.pi) - math.lgamma(dimension / 2 + 1)


def _log_of_half_the_positives(p: float, m: int) -> float:
    check_count("m", m)
    if p * m <= 2:
        raise InputError(f"a sample of {m:,} rows with {p:g} positives is too small: p·m must exceed 2")
    return math.log(p * m / 2)


def _check_geometry(dimension: int, delta: float, p: float, density: float, thickness: float, constant: float) -> None:
    check_count("dimension", dimension)
    _check_delta(delta)
    _check_share("p", p)
    _check_above_zero("density", density)
    _check_share("thickness", thickness)
    _check_above_zero("constant", constant)


def _check_components(p: float, q: float, c: int, delta: float) -> None:
    _check_share("p", p)
    _check_share("q", q)
    check_count("c", c)
    _check_delta(delta)
    check_smallest("q", q, c)


def check_smallest(name: str, share: float, components: int) -> None:
    """Refuse a smallest share that is impossible for this number of components."""
    if components == 1 and share != 1:
        raise InputError(f"{name} {share:g}: a single component holds all positives, so its share is 1")
    # 1/3 typed as 0.3333334 is meant as a third.
    if share > 1 / components * (1 + 1e-6):
        raise InputError(
            f"{name} {share:g}: the smallest of {components:,} components has at most {1 / components:.4g} of the positives"
        )


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InputError(f"delta {delta:g}: a probability of failure lies between 0 and 1")


def _check_share(name: str, value: float) -> None:
    if not 0 < value <= 1:
        raise InputError(f"{name} {value:g}: give a share above 0 and up to 1")


def _check_above_zero(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError(f"{name} {value:g}: give a number above 0")
