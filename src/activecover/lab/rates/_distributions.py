"""Distributions that satisfy the paper's assumptions, and some that violate one of them, by name.

Their supports are known, so that the cost of the optimal learner is counted, not estimated.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.planning import ball_volume
from activecover.registry import Entry, Registry

Points = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class Shape(ABC):
    """A region with a density on it."""

    dimensions: int

    @abstractmethod
    def sample(self, count: int, random: np.random.Generator) -> Points:
        """Draw points."""

    @abstractmethod
    def contains(self, points: Points) -> Mask:
        """Whether each point is in the region."""

    @property
    @abstractmethod
    def lowest_density(self) -> float:
        """The minimum density on the region."""

    @property
    @abstractmethod
    def highest_density(self) -> float:
        """The maximum density."""

    @property
    def fullness(self) -> float:
        """C+: the smallest fraction of a small ball around a point of the region that is inside the region."""
        return 0.5**self.dimensions


@dataclass(frozen=True)
class Cube(Shape):
    """Uniform on a box with equal sides."""

    low: float
    high: float
    dimensions: int
    centre: tuple[float, ...] = ()

    def _shift(self) -> Points:
        return np.array(self.centre) if self.centre else np.zeros(self.dimensions)

    def sample(self, count: int, random: np.random.Generator) -> Points:
        return random.uniform(self.low, self.high, (count, self.dimensions)) + self._shift()

    def contains(self, points: Points) -> Mask:
        inside = points - self._shift()
        return np.asarray(((inside >= self.low) & (inside <= self.high)).all(axis=1))

    @property
    def lowest_density(self) -> float:
        return float((self.high - self.low) ** -self.dimensions)

    @property
    def highest_density(self) -> float:
        return self.lowest_density


@dataclass(frozen=True)
class Shell(Shape):
    """Uniform between two spheres; a ball if the inner one is empty."""

    centre: tuple[float, ...]
    inner: float
    outer: float

    @property
    def dimensions(self) -> int:  # type: ignore[override]
        return len(self.centre)

    def sample(self, count: int, random: np.random.Generator) -> Points:
        towards = random.normal(size=(count, self.dimensions))
        towards /= np.linalg.norm(towards, axis=1, keepdims=True)
        power = self.dimensions
        radius = random.uniform(self.inner**power, self.outer**power, (count, 1)) ** (1 / power)
        return np.array(self.centre) + radius * towards

    def contains(self, points: Points) -> Mask:
        radius = np.linalg.norm(points - np.array(self.centre), axis=1)
        result: Mask = (radius >= self.inner) & (radius <= self.outer)
        return result

    @property
    def lowest_density(self) -> float:
        volume = ball_volume(self.dimensions) * (self.outer**self.dimensions - self.inner**self.dimensions)
        return 1 / volume

    @property
    def highest_density(self) -> float:
        return self.lowest_density

    @property
    def fullness(self) -> float:
        # At a smooth boundary, about half of a small ball is inside.
        return 0.4


@dataclass(frozen=True)
class TruncatedGaussian(Shape):
    """A spherical Gaussian truncated at a radius, so that its density is bounded from below."""

    centre: tuple[float, ...]
    deviation: float
    radius: float

    @property
    def dimensions(self) -> int:  # type: ignore[override]
        return len(self.centre)

    def sample(self, count: int, random: np.random.Generator) -> Points:
        kept = np.zeros((0, self.dimensions))
        while len(kept) < count:
            drawn = random.normal(size=(2 * (count - len(kept)) + 16, self.dimensions)) * self.deviation
            kept = np.concatenate([kept, drawn[np.linalg.norm(drawn, axis=1) <= self.radius]])
        return np.array(self.centre) + kept[:count]

    def contains(self, points: Points) -> Mask:
        result: Mask = np.linalg.norm(points - np.array(self.centre), axis=1) <= self.radius
        return result

    def _density(self, radius: float) -> float:
        from scipy.stats import chi2

        inside = float(chi2.cdf((self.radius / self.deviation) ** 2, self.dimensions))
        peak = (2 * math.pi * self.deviation**2) ** (-self.dimensions / 2)
        return float(peak) * math.exp(-((radius / self.deviation) ** 2) / 2) / inside

    @property
    def lowest_density(self) -> float:
        return self._density(self.radius)

    @property
    def highest_density(self) -> float:
        return self._density(0.0)

    @property
    def fullness(self) -> float:
        return 0.4


@dataclass(frozen=True)
class Spike(Shape):
    """Uniform under the curve y = x² for x from 0 to 1: arbitrarily thin at the origin."""

    dimensions: int = 2

    def sample(self, count: int, random: np.random.Generator) -> Points:
        along = random.random(count) ** (1 / 3)
        return np.stack([along, random.random(count) * along**2], axis=1)

    def contains(self, points: Points) -> Mask:
        x, y = points.T
        result: Mask = (x >= 0) & (x <= 1) & (y >= 0) & (y <= x**2)
        return result

    @property
    def lowest_density(self) -> float:
        return 3.0

    @property
    def highest_density(self) -> float:
        return 3.0

    @property
    def fullness(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Distribution:
    """A mixture of positives on some components and negatives elsewhere (possibly overlapping).

    Attributes
    ----------
    name : str
        Its name.
    share : float
        p, the probability that a point is positive.
    components : sequence of Shape
        The connected components of the positives' support.
    weights : sequence of float
        The fraction of positives in each component.
    background : sequence of Shape
        The regions of the negatives, with equal weights.
    breaks : str
        The assumption of the paper that it violates, if any.
    strays : int
        Number of components, at the end of the list, that are not part of the support as the paper defines it.
    embed : callable, optional
        Maps points of the intrinsic space to a space of more dimensions.
    """

    name: str
    share: float
    components: Sequence[Shape]
    weights: Sequence[float]
    background: Sequence[Shape]
    breaks: str = ""
    strays: int = 0
    embed: Callable[[Points], Points] | None = None

    @property
    def intrinsic_dimension(self) -> int:
        """D, the dimension in the rates."""
        return self.components[0].dimensions

    @property
    def smallest_share(self) -> float:
        """q, the fraction of positives in the smallest component."""
        return min(self.weights)

    @property
    def lowest_density(self) -> float:
        """λ0, the minimum density of the positives on their support."""
        return min(w * shape.lowest_density for w, shape in zip(self.weights, self.components, strict=True))

    @property
    def highest_negative_density(self) -> float:
        """λ1, the maximum density of the negatives."""
        return max(shape.highest_density for shape in self.background) / len(self.background)

    @property
    def fullness(self) -> float:
        """C+, the smallest fraction of a small ball around a point of the support that is inside the support."""
        return min(shape.fullness for shape in self.components)

    def sample(self, count: int, random: np.random.Generator) -> tuple[Points, Mask, Mask]:
        """Draw a pool: its points, which of them are positive, and which are in the positives' support."""
        positive = random.random(count) < self.share
        points = np.empty((count, self.intrinsic_dimension))
        for shapes, weights, rows in (
            (self.components, self.weights, np.flatnonzero(positive)),
            (self.background, [1 / len(self.background)] * len(self.background), np.flatnonzero(~positive)),
        ):
            which = random.choice(len(shapes), len(rows), p=np.asarray(weights) / np.sum(weights))
            for place, shape in enumerate(shapes):
                chosen = rows[which == place]
                points[chosen] = shape.sample(len(chosen), random)
        inside = self.contains(points)
        return (points if self.embed is None else self.embed(points)), positive, inside

    def contains(self, points: Points) -> Mask:
        """Whether each point (of the intrinsic space) is in the positives' support."""
        inside = np.zeros(len(points), bool)
        for shape in self.components[: len(self.components) - self.strays]:
            inside |= shape.contains(points)
        return inside


DISTRIBUTIONS: Registry[Distribution] = Registry("distribution", group="activecover.distributions")


def _cube(dimensions: int = 2, share: float = 0.5) -> Distribution:
    return Distribution("cube", share, [Cube(0, 1, dimensions)], [1.0], [Cube(-1, 2, dimensions)])


def _ball(dimensions: int = 2, share: float = 0.5) -> Distribution:
    centre = (0.0,) * dimensions
    return Distribution("ball", share, [Shell(centre, 0, 1)], [1.0], [Cube(-2, 2, dimensions)])


def _shell(dimensions: int = 2, share: float = 0.5) -> Distribution:
    if dimensions < 2:
        raise InputError("a shell needs at least 2 dimensions: on a line it is not connected")
    centre = (0.0,) * dimensions
    return Distribution("shell", share, [Shell(centre, 0.7, 1)], [1.0], [Cube(-2, 2, dimensions)])


def _components(dimensions: int = 2, share: float = 0.5) -> Distribution:
    shift = [(4.0 * place,) + (0.0,) * (dimensions - 1) for place in range(4)]
    cubes = [Cube(0, 1, dimensions, centre) for centre in shift]
    around = [Cube(-1, 2, dimensions, centre) for centre in shift]
    return Distribution("components", share, cubes, [0.5, 0.3, 0.15, 0.05], around)


def _gaussians(dimensions: int = 2, share: float = 0.5) -> Distribution:
    centres = [(6.0 * place,) + (0.0,) * (dimensions - 1) for place in range(2)]
    bells = [TruncatedGaussian(centre, 0.7, 1.4) for centre in centres]
    around = [Cube(-3, 3, dimensions, centre) for centre in centres]
    return Distribution("gaussians", share, bells, [0.6, 0.4], around)


def _overlap(dimensions: int = 2, share: float = 0.5) -> Distribution:
    return Distribution("overlap", share, [Cube(0, 1, dimensions)], [1.0], [Cube(0.25, 1.25, dimensions)])


def _spike(dimensions: int = 2, share: float = 0.5) -> Distribution:
    if dimensions != 2:
        raise InputError("the spike needs 2 dimensions")
    return Distribution("spike", share, [Spike()], [1.0], [Cube(-1, 2, 2)], breaks="the support is thin at a point")


def _outliers(dimensions: int = 2, share: float = 0.5) -> Distribution:
    far = Cube(-8, 8, dimensions)
    breaks = "a few positives lie outside the support"
    shapes = [Cube(0, 1, dimensions), far]
    return Distribution("outliers", share, shapes, [0.999, 0.001], [far], breaks, strays=1)


def _manifold(dimensions: int = 2, share: float = 0.5, ambient: int = 50) -> Distribution:
    """The cube, embedded as a curved sheet in many dimensions."""
    if ambient < 2 * dimensions:
        raise InputError(f"a sheet of {dimensions} dimensions needs a space of at least {2 * dimensions}")
    random = np.random.default_rng(0)
    turn = np.linalg.qr(random.normal(size=(ambient, ambient)))[0]

    def embed(points: Points) -> Points:
        curved = np.concatenate([points, 0.3 * np.sin(2 * points)], axis=1)
        result: Points = curved @ turn[: curved.shape[1]]
        return result

    flat = _cube(dimensions, share)
    return Distribution("manifold", share, flat.components, flat.weights, flat.background, embed=embed)


for _name, _build, _summary in (
    ("cube", _cube, "positives on [0, 1]^D, negatives on [-1, 2]^D: the paper's lower-bound example"),
    ("ball", _ball, "positives in a ball, negatives around it"),
    ("shell", _shell, "positives between two spheres"),
    ("components", _components, "four cubes of unequal weight"),
    ("gaussians", _gaussians, "two truncated Gaussians"),
    ("manifold", _manifold, "the cube as a curved sheet in 50 dimensions"),
    ("overlap", _overlap, "negatives cover most of the positives' support"),
    ("spike", _spike, "violates an assumption: arbitrarily thin at a point"),
    ("outliers", _outliers, "violates an assumption: stray positives far away"),
):
    DISTRIBUTIONS.add(Entry(_name, _build, _summary))
