"""The tails behind the rules: against exact enumeration, and far beyond it."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from activecover.stopping._tails import (
    beta_binomial_log,
    hypergeometric_cdf,
    most_positives,
    quantile_threshold,
    sequence_upper,
    smallest_control,
)


def exact_cdf(k: int, population: int, positives: int, draws: int) -> Fraction:
    ways = sum(comb(positives, i) * comb(population - positives, draws - i) for i in range(max(0, k + 1)) if i <= draws)
    return Fraction(ways, comb(population, draws))


@given(st.data())
def test_hypergeometric_agrees_with_enumeration(data: st.DataObject) -> None:
    population = data.draw(st.integers(1, 200))
    positives = data.draw(st.integers(0, population))
    draws = data.draw(st.integers(0, population))
    k = data.draw(st.integers(-1, draws + 1))
    exact = float(exact_cdf(k, population, positives, draws))
    assert hypergeometric_cdf(k, population, positives, draws) == pytest.approx(exact, rel=1e-9, abs=1e-300)


@given(st.integers(1, 200), st.floats(0.1, 20), st.floats(0.1, 20))
def test_beta_binomial_is_a_distribution_with_the_right_ratios(n: int, a: float, b: float) -> None:
    mass = np.exp(beta_binomial_log(np.arange(n + 1), n, a, b))
    assert mass.sum() == pytest.approx(1, rel=1e-9)
    k = np.arange(n)
    ratios = (n - k) * (k + a) / ((k + 1) * (n - k - 1 + b))
    assert mass[1:] / mass[:-1] == pytest.approx(ratios, rel=1e-8)


def test_tails_stay_finite_in_large_pools() -> None:
    rows = 10**8
    assert hypergeometric_cdf(90, rows, 10**4, 10**6) == pytest.approx(0.1701, abs=1e-3)
    assert hypergeometric_cdf(0, rows, rows + 1, 5) == 0.0
    assert most_positives(0, rows, 10**6, 0.05) == pytest.approx(np.log(0.05) / np.log(0.99), rel=0.01)
    upper = sequence_upper([0, 3], [10**5, 10**6], rows, 0.05)
    assert 0 < upper[1] < upper[0] < rows
    assert np.isfinite(beta_binomial_log([0, 10**7], rows, 1, 1)).all()


@given(st.integers(1, 60), st.integers(0, 60), st.integers(0, 60), st.sampled_from([0.05, 0.2]))
def test_most_positives_is_the_last_count_that_fits(population: int, draws: int, k: int, alpha: float) -> None:
    draws, k = min(draws, population), min(k, draws, population)
    fits = [
        count
        for count in range(k, population - draws + k + 1)
        if exact_cdf(k, population, count, draws) >= Fraction(alpha).limit_denominator(100)
    ]
    assert most_positives(k, population, draws, alpha) == max(fits, default=k)


def test_sequence_bound_follows_from_the_prior_posterior_ratio() -> None:
    rows, alpha, a, b = 60, 0.1, 1.5, 4.0
    for drawn, seen in [(1, 0), (7, 2), (20, 0), (59, 3), (60, 5)]:
        counts = np.arange(seen, rows - drawn + seen + 1)
        prior = beta_binomial_log(counts, rows, a, b)
        posterior = beta_binomial_log(counts - seen, rows - drawn, a + seen, b + drawn - seen)
        possible = counts[prior - posterior < -np.log(alpha)]
        assert sequence_upper(seen, drawn, rows, alpha, a, b) == possible.max()


def test_quantile_thresholds_of_the_paper() -> None:
    assert quantile_threshold(50, 0.8, 0.05) == 45
    assert quantile_threshold(50, 0.9, 0.05) == 49
    assert [smallest_control(target, 0.05) for target in (0.8, 0.9, 0.95, 0.99)] == [14, 29, 59, 299]
    for target in (0.8, 0.9, 0.95, 0.99):
        least = smallest_control(target, 0.05)
        assert quantile_threshold(least, target, 0.05) == least
        assert quantile_threshold(least - 1, target, 0.05) is None
    assert quantile_threshold(0, 0.5, 0.05) is None


@pytest.mark.parametrize("target", [0.8, 0.9])
def test_control_drawn_without_replacement_errs_no_more_than_the_binomial(target: float) -> None:
    """The review is below target with less than target * T positives; j of r controls among them is rare."""
    for total in range(1, 150, 7):
        below = int(np.ceil(target * total)) - 1
        for r in range(1, total + 1, 5):
            needed = quantile_threshold(r, target, 0.05)
            if needed is not None:
                assert 1 - hypergeometric_cdf(needed - 1, total, below, r) <= 0.05 + 1e-12
