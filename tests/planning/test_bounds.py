"""The bounds: the paper's figures, what is true of them everywhere, and what simulated samples say."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from activecover.errors import InputError
from activecover.planning import (
    active_excess_bound,
    ball_volume,
    best_offline_sample,
    coupon_collector_expected,
    coupon_collector_probability,
    epsilon_active,
    epsilon_connected,
    epsilon_offline,
    explore_lemma1,
    explore_theorem4,
    explore_union,
    n_large_enough,
    offline_excess_bound,
    probability_all_hit,
)

SIZES = [explore_lemma1, explore_theorem4, explore_union]
SAMPLES = 1000
GEOMETRY = {"p": 0.1, "density": 1.0, "thickness": 0.25}

prevalences = st.floats(1e-4, 1)
failures = st.floats(1e-6, 0.999)


@st.composite
def settings(draw: st.DrawFn) -> tuple[float, float, int, float]:
    c = draw(st.integers(1, 1000))
    q = 1.0 if c == 1 else draw(st.floats(1e-4, 1)) / c
    return draw(prevalences), q, c, draw(failures)


def test_figures_of_rare_positives() -> None:
    assert explore_lemma1(0.01, 0.2, 5, 0.05) == 73_778
    assert explore_union(0.01, 0.2, 5, 0.05) == 2_301
    assert explore_union(0.02, 0.05, 5, 0.05) == 4_603
    assert explore_lemma1(0.02, 0.05, 5, 0.05) == 18_445


@given(settings())
def test_union_bound_never_asks_for_more_than_lemma_1(setting: tuple[float, float, int, float]) -> None:
    """True everywhere: for c > 1, q ≤ 1/2 makes log(1/(1-q)) ≤ 1.39·q; for c = 1 the second term is larger."""
    assert explore_union(*setting) <= explore_lemma1(*setting) <= explore_theorem4(*setting)


@given(settings())
def test_theorem_4_is_lemma_1_at_half_the_failure(setting: tuple[float, float, int, float]) -> None:
    p, q, c, delta = setting
    assert explore_theorem4(p, q, c, delta) == explore_lemma1(p, q, c, delta / 2)


@pytest.mark.parametrize("size", SIZES)
@given(setting=settings(), less=st.floats(0.1, 1))
def test_sizes_shrink_with_prevalence_share_and_tolerance(size, setting, less: float) -> None:
    p, q, c, delta = setting
    at = size(p, q, c, delta)
    assert size(p * less, q, c, delta) >= at
    assert size(p, q, c, delta * less) >= at
    if c > 1:
        assert size(p, q * less, c, delta) >= at
        assert size(p, q / 2, c + 1, delta) >= at


@given(settings())
def test_union_size_keeps_its_promise_exactly(setting: tuple[float, float, int, float]) -> None:
    p, q, c, delta = setting
    worst = [q] * (c - 1) + [1 - (c - 1) * q]
    assert probability_all_hit(p, worst, explore_union(*setting)) >= 1 - delta - 1e-9


def simulated_settings() -> list[tuple[float, list[float], float]]:
    """20 settings at random in which Lemma 1 asks for at most a million rows."""
    random = np.random.default_rng(2021)
    chosen: list[tuple[float, list[float], float]] = []
    while len(chosen) < 20:
        p, c = float(10 ** random.uniform(-2.3, -0.1)), int(random.integers(1, 13))
        shares, delta = random.dirichlet(np.full(c, 2.0)), float(random.choice([0.3, 0.1, 0.05, 0.01]))
        if explore_lemma1(p, float(shares.min()) if c > 1 else 1.0, c, delta) <= 1_000_000:
            chosen.append((p, shares.tolist(), delta))
    return chosen


def count_all_hit(p: float, shares: list[float], m: int, seed: int) -> int:
    cells = np.append(p * np.array(shares), 1 - p)
    counts = np.random.default_rng(seed).multinomial(m, cells / cells.sum(), size=SAMPLES)
    return int((counts[:, :-1] > 0).all(axis=1).sum())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("number", range(20))
def test_samples_of_that_size_hit_every_component(size, number: int) -> None:
    p, shares, delta = simulated_settings()[number]
    c = len(shares)
    m = size(p, min(shares) if c > 1 else 1.0, c, delta)
    hit = count_all_hit(p, shares, m, seed=number)
    # Would so few be credible if the probability were 1 - delta?
    assert binom.cdf(hit, SAMPLES, 1 - delta) > 1e-6
    if size is not explore_union:
        assert hit >= SAMPLES * (1 - delta)


@pytest.mark.parametrize("number", range(20))
def test_exact_probability_agrees_with_samples(number: int) -> None:
    p, shares, _ = simulated_settings()[number]
    # A size at which some samples miss a component.
    m = max(len(shares), round(1.5 / (p * min(shares))))
    expected = probability_all_hit(p, shares, m)
    hit = count_all_hit(p, shares, m, seed=100 + number)
    assert binom.cdf(hit, SAMPLES, expected) > 1e-6
    assert binom.sf(hit - 1, SAMPLES, expected) > 1e-6


def exact_coupons(c: int, m: int) -> float:
    onto = sum((-1) ** k * math.comb(c, k) * (c - k) ** m for k in range(c + 1))
    return float(Fraction(onto, c**m))


@pytest.mark.parametrize("c", [1, 2, 3, 7, 20, 100, 150])
@pytest.mark.parametrize("times", [1.0, 1.01, 1.2, 2.0, 4.0, 7.0])
def test_coupon_collector_in_whole_numbers(c: int, times: float) -> None:
    """Inclusion and exclusion in floats would lose all digits here: 2^150 against 1e-60."""
    m = math.ceil(c * times)
    assert coupon_collector_probability(c, m) == pytest.approx(exact_coupons(c, m), rel=1e-10)
    assert coupon_collector_probability(c, m) == pytest.approx(probability_all_hit(1, [1 / c] * c, m), rel=1e-9)


@given(st.integers(1, 6), st.integers(0, 300), st.sampled_from([1, 0.5, 0.03]), st.integers(0, 10**6))
def test_unequal_shares_in_fractions(c: int, m: int, p: float, seed: int) -> None:
    shares = np.random.default_rng(seed).dirichlet(np.ones(c))
    exact = [Fraction(p) * Fraction(float(share)) for share in shares]
    # What rounding leaves of 1 belongs to no component.
    total = sum((-1) ** k * sum((1 - sum(some)) ** m for some in combinations(exact, k)) for k in range(c + 1))
    assert probability_all_hit(p, shares, m) == pytest.approx(float(total), rel=1e-8, abs=1e-13)


def test_coupon_collector_expectation() -> None:
    for c in (1, 2, 5, 40):
        assert coupon_collector_expected(c) == pytest.approx(c * sum(1 / k for k in range(1, c + 1)))
    c = 6
    later = sum(1 - coupon_collector_probability(c, m) for m in range(400))
    assert later == pytest.approx(coupon_collector_expected(c))


def test_coupon_collector_against_samples() -> None:
    c, m = 10, 30
    hit = count_all_hit(1.0, [0.1] * c, m, seed=5)
    expected = coupon_collector_probability(c, m)
    assert binom.cdf(hit, SAMPLES, expected) > 1e-6
    assert binom.sf(hit - 1, SAMPLES, expected) > 1e-6


def test_probability_of_large_problems() -> None:
    """Where m is large the number of missed coupons is nearly Poisson."""
    assert coupon_collector_probability(10**6, 14 * 10**6) == pytest.approx(
        math.exp(-(10**6) * math.exp(-14)), rel=1e-5
    )
    assert probability_all_hit(1e-6, [0.01] * 100, 5 * 10**8) == pytest.approx((1 - math.exp(-5)) ** 100, rel=1e-5)
    assert probability_all_hit(1e-6, [0.01] * 100, 10**15) == 1
    assert coupon_collector_probability(5, 4) == 0


@given(st.integers(1, 30), st.integers(0, 200))
def test_probability_rises_with_the_sample(c: int, m: int) -> None:
    assert coupon_collector_probability(c, m) <= coupon_collector_probability(c, m + 1) * (1 + 1e-10) <= 1 + 1e-9


def test_ball_volume() -> None:
    assert ball_volume(1) == pytest.approx(2)
    assert ball_volume(4) == pytest.approx(math.pi**2 / 2)


@pytest.mark.parametrize("dimension", [1, 2, 5, 300])
def test_radii_scale_as_the_lemmas_say(dimension: int) -> None:
    small, large = (epsilon_connected(n, dimension, 0.05, **GEOMETRY) for n in (10**4, 10**8))
    assert small / large == pytest.approx((10**4 / 2) ** (1 / dimension))
    small, large = (epsilon_offline(m, dimension, 0.05, **GEOMETRY) for m in (10**4, 10**8))
    logs = math.log(0.1 * 10**4 / 2) / math.log(0.1 * 10**8 / 2)
    assert small / large == pytest.approx((10**4 * logs) ** (1 / dimension))


def test_radius_by_hand() -> None:
    inside = 2 * 2 * math.log(2 / 0.05) * math.log(1000) / (0.1 * 0.25 * 1.5 * math.pi * 1000)
    value = epsilon_connected(1000, 2, 0.05, p=0.1, density=1.5, thickness=0.25, constant=2)
    assert value == pytest.approx(3 * math.sqrt(inside))
    assert epsilon_active(1000, 2, 0.1, p=0.1, density=1.5, thickness=0.25, constant=2) == pytest.approx(value)


@given(st.integers(1, 6), st.floats(0.1, 2), failures)
def test_pool_is_large_enough_exactly_from_there_on(dimension: int, radius: float, delta: float) -> None:
    n = n_large_enough(dimension, delta, radius=radius, **GEOMETRY)
    assert epsilon_active(n, dimension, delta, **GEOMETRY) <= radius * (1 + 1e-9)
    if n > 3:
        assert epsilon_active(n - 1, dimension, delta, **GEOMETRY) > radius * (1 - 1e-9)


def test_active_rate_beats_the_offline_rate() -> None:
    n, dimension = 10**9, 2
    m = best_offline_sample(n, dimension)
    assert m == 10**6
    assert active_excess_bound(n, 10**4, dimension, 0.05) < offline_excess_bound(n, m, dimension, 0.05, p=0.1)
    assert best_offline_sample(100, 50, constant=5) == 100


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: explore_union(0, 0.2, 5, 0.05), "p 0"),
        (lambda: explore_union(math.nan, 0.2, 5, 0.05), "p nan"),
        (lambda: explore_union(0.1, 0.3, 5, 0.05), "at most 0.2"),
        (lambda: explore_union(0.1, 0.3, 1, 0.05), "its share is 1"),
        (lambda: explore_lemma1(0.1, 0.2, 0, 0.05), "c 0"),
        (lambda: explore_lemma1(0.1, 0.2, 5, 1), "delta 1"),
        (lambda: explore_lemma1(1e-200, 0.2, 5, 0.1), "can be counted"),
        (lambda: explore_union(1e-200, 1e-200, 5, 0.1), "can be counted"),
        (lambda: probability_all_hit(0.5, [0.5, 0.6], 3), "shares"),
        (lambda: probability_all_hit(0.5, [], 3), "shares"),
        (lambda: probability_all_hit(0.5, [math.nan, 0.5], 3), "shares"),
        (lambda: coupon_collector_probability(0, 3), "components 0"),
        (lambda: epsilon_offline(10, 2, 0.05, **GEOMETRY), "must exceed 2"),
        (lambda: epsilon_connected(100, 0, 0.05, **GEOMETRY), "dimension 0"),
        (lambda: n_large_enough(200, 0.05, radius=1e-3, **GEOMETRY), "no pool"),
        (lambda: ball_volume(0), "dimension 0"),
        (lambda: best_offline_sample(10, 2, constant=math.inf), "constant inf"),
    ],
)
def test_impossible_input_is_refused_in_one_line(call, says: str) -> None:
    with pytest.raises(InputError) as wrong:
        call()
    assert says in str(wrong.value)
    assert "\n" not in str(wrong.value)
