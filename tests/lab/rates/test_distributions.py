"""Distributions know what they say they know."""

import numpy as np
import pytest

from activecover.errors import InputError
from activecover.lab.rates import DISTRIBUTIONS

NAMES = [entry.name for entry in DISTRIBUTIONS]


@pytest.mark.parametrize("name", NAMES)
def test_positives_lie_in_the_support_in_the_right_shares(name):
    law = DISTRIBUTIONS.build(name, share=0.3)
    points, positive, inside = law.sample(40_000, np.random.default_rng(0))
    assert inside[positive].mean() > 0.995 if law.strays else inside[positive].all()
    assert positive.mean() == pytest.approx(0.3, abs=0.01)
    assert len(points) == len(positive) == len(inside) == 40_000
    assert sum(law.weights) == pytest.approx(1)
    flat = DISTRIBUTIONS.build(name, share=0.3)
    if flat.embed is None:
        assert (law.contains(points) == inside).all()
        for shape, weight in zip(law.components, law.weights, strict=True):
            others = [other for other in law.components if other is not shape]
            if not any(other.contains(points[positive]).all() for other in others):
                share = shape.contains(points[positive]).mean()
                assert share >= weight - 0.02


@pytest.mark.parametrize("name", ["cube", "ball", "components", "gaussians", "overlap"])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_densities_are_between_their_bounds(name, dimensions):
    """Counts in small cubes around points of the support, against λ0 and λ1."""
    law = DISTRIBUTIONS.build(name, dimensions=dimensions, share=0.5)
    points, positive, _ = law.sample(300_000, np.random.default_rng(1))
    side = 0.1
    centres = points[positive][:20]
    for mask, low, high in (
        (positive, law.fullness * law.lowest_density, None),
        (~positive, None, law.highest_negative_density),
    ):
        cloud = points[mask]
        for centre in centres:
            near = np.abs(cloud - centre).max(axis=1) < side / 2
            density = near.sum() / len(cloud) / side**dimensions
            error = 5 * np.sqrt(max(1, near.sum())) / len(cloud) / side**dimensions
            assert low is None or density >= low - error
            assert high is None or density <= high + error


def test_the_sheet_has_fifty_dimensions_and_keeps_two():
    points, _, _ = DISTRIBUTIONS.build("manifold").sample(500, np.random.default_rng(0))
    assert points.shape == (500, 50)
    assert np.linalg.matrix_rank(points - points.mean(axis=0), tol=1e-8) == 4  # curved: a plane would have 2


def test_what_breaks_an_assumption_says_so():
    broken = {name for name in NAMES if DISTRIBUTIONS.build(name).breaks}
    assert broken == {"spike", "outliers"}
    assert DISTRIBUTIONS.build("spike").fullness == 0


def test_impossible_ones_are_refused():
    for name, dimensions in (("shell", 1), ("spike", 3)):
        with pytest.raises(InputError):
            DISTRIBUTIONS.build(name, dimensions=dimensions)
