"""Prevalence, intrinsic dimension and components, estimated from a labelled random sample."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform
from scipy.special import betaincinv

from activecover.errors import InputError
from activecover.planning._phrases import dimension_text, percent

_Floats = npt.NDArray[np.float64]
#: Fewer distinct positives say nothing about dimension or components.
LEAST_POSITIVES = 10
#: If there are more positives, a random sample of them is used, since every pair is compared.
MOST_POSITIVES = 3000
#: Smaller groups count as stragglers, not as components.
LEAST_GROUP = 3
_NEIGHBOURS = 10


@dataclass(frozen=True, slots=True)
class SampleEstimate:
    """What a labelled random sample says about the pool.

    Attributes
    ----------
    rows, positives, distinct : int
        Rows of the sample, positives among them, and distinct vectors among those.
    prevalence, prevalence_low, prevalence_high : float
        Share of positives and its exact (Clopper–Pearson) interval at ``level``.
    two_nn, mle : float or None
        Intrinsic dimension of the positives by two estimators; None if the distances do not determine it.
    components, stragglers : int
        Groups of positives, and positives that belong to none.
    smallest, smallest_low, smallest_high : float
        The smallest group's share of the grouped positives and its exact interval.
    level : float
        Confidence level of each interval.
    """

    rows: int
    positives: int
    distinct: int
    prevalence: float
    prevalence_low: float
    prevalence_high: float
    two_nn: float | None
    mle: float | None
    components: int
    stragglers: int
    smallest: float
    smallest_low: float
    smallest_high: float
    level: float = 0.95

    def sentences(self) -> list[str]:
        """The estimate in words."""
        level = percent(self.level)
        sentences = [
            f"{self.positives:,} of {self.rows:,} rows are positive: {percent(self.prevalence)} "
            f"({level} interval {percent(self.prevalence_low)} to {percent(self.prevalence_high)}).",
            f"Their intrinsic dimension is about {dimension_text(self.two_nn)} (two nearest neighbours) or "
            f"{dimension_text(self.mle)} (maximum likelihood).",
        ]
        if self.components == 1:
            sentences.append("They form one component.")
        else:
            sentences.append(
                f"They form {self.components:,} components, the smallest with {percent(self.smallest)} of them "
                f"({level} interval {percent(self.smallest_low)} to {percent(self.smallest_high)})."
            )
        if self.stragglers:
            sentences.append(
                f"{self.stragglers:,} of them stand apart and were left out: outliers, or components that the sample "
                "hardly hit."
            )
        return [*sentences, "Components that the sample missed altogether are not reflected in these figures."]


def estimate_from_sample(vectors: npt.ArrayLike, positive: npt.ArrayLike, level: float = 0.95) -> SampleEstimate:
    """Estimate prevalence, intrinsic dimension and components from a labelled random sample.

    Dimension and components are those of the distinct positive vectors; copies count only towards the shares.

    *Two nearest neighbours* (Facco et al., 2017): the ratios of the distances to the second and to the first
    neighbour follow a Pareto law whose exponent is the dimension; a line through the origin is fitted to its
    empirical distribution without the largest tenth of the ratios.

    *Maximum likelihood* (Levina and Bickel, 2004): from the distances to 10 neighbours; the points' inverse
    estimates are averaged, as MacKay and Ghahramani proposed.

    *Components*: single linkage. A merge counts only if both groups have at least three points, so that a distant
    point neither forms a component nor hides the others, and only at a height above the usual distance to the
    nearest neighbour (nine in ten are closer). Sorted by height, the merges are cut at the largest relative gap, if
    that is at least ``1 + 1/d`` and 1.3, where ``d`` is the dimension: in few dimensions the gaps within a single
    group vary more. A component with fewer than three positives in the sample goes unseen.

    Parameters
    ----------
    vectors : array of shape (rows, columns)
        The sample's vectors.
    positive : array of bool
        Which rows are positive.
    level : float
        Confidence level of the intervals.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> blobs = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], [60, 30, 10], axis=0) + random.normal(size=(100, 2)) / 2
    >>> estimate = estimate_from_sample(np.vstack([blobs, random.random((900, 2))]), np.arange(1000) < 100)
    >>> estimate.components, estimate.smallest, estimate.prevalence
    (3, 0.1, 0.1)
    """
    matrix, is_positive = np.asarray(vectors, np.float64), np.asarray(positive, bool)
    if matrix.ndim != 2 or is_positive.shape != matrix.shape[:1]:
        raise InputError("give a table of vectors, and one true or false per row")
    if not np.isfinite(matrix).all():
        raise InputError("the sample's vectors hold values that are not finite numbers; fill them in or drop the rows")
    check_inner("level", level)
    found, copies = _distinct(matrix[is_positive])
    positives = int(is_positive.sum())
    points, weights = _thinned(found, copies)
    apart = pdist(points)
    nearest = _nearest(apart)
    two_nn, mle = _two_nn(nearest), _levina_bickel(nearest)
    groups = _groups(apart, float(np.quantile(nearest[:, 0], 0.9)), two_nn or mle)
    members = np.array([int(weights[group].sum()) for group in groups])
    grouped, least = int(members.sum()), int(members.min())
    low, high = clopper_pearson(positives, len(is_positive), level)
    small_low, small_high = (1.0, 1.0) if len(groups) == 1 else clopper_pearson(least, grouped, level)
    return SampleEstimate(
        rows=len(is_positive),
        positives=positives,
        distinct=len(found),
        prevalence=positives / len(is_positive),
        prevalence_low=low,
        prevalence_high=high,
        two_nn=two_nn,
        mle=mle,
        components=len(groups),
        stragglers=int(weights.sum()) - grouped,
        smallest=least / grouped,
        smallest_low=small_low,
        smallest_high=small_high,
        level=level,
    )


def clopper_pearson(hits: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Exact confidence interval of a share: it covers the truth with a probability of at least ``level``.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 100)
    >>> low, round(high, 4)
    (0.0, 0.0362)
    """
    tail = (1 - level) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return low, high


def check_inner(name: str, value: float) -> None:
    """Refuse a share that is not above 0 and below 1."""
    if not 0 < value < 1:
        hint = f"; {value:g} percent is {value / 100:g}" if 1 < value < 100 else ""
        raise InputError(f"{name} {value:g}: give a number above 0 and below 1{hint}")


def _distinct(points: _Floats) -> tuple[_Floats, npt.NDArray[np.int64]]:
    found, copies = np.unique(points, axis=0, return_counts=True)
    if len(found) < LEAST_POSITIVES:
        copied = "" if len(found) == len(points) else f" ({len(points):,} with copies)"
        raise InputError(
            f"too few positives to estimate from, {len(found)} distinct ones{copied}: label at random until "
            f"there are {LEAST_POSITIVES}"
        )
    return found, copies


def _thinned(points: _Floats, copies: npt.NDArray[np.int64]) -> tuple[_Floats, npt.NDArray[np.int64]]:
    if len(points) <= MOST_POSITIVES:
        return points, copies
    chosen = np.random.default_rng(0).choice(len(points), MOST_POSITIVES, replace=False)
    return points[chosen], copies[chosen]


def _nearest(apart: _Floats) -> _Floats:
    """Each point's distances to its nearest neighbours, ascending and above zero, even if they underflow."""
    square = squareform(apart)
    np.fill_diagonal(square, np.inf)
    count = min(_NEIGHBOURS, len(square) - 1)
    nearest = np.sort(np.partition(square, count - 1, axis=1)[:, :count], axis=1)
    return np.maximum(nearest, np.finfo(np.float64).tiny)


def _two_nn(nearest: _Floats) -> float | None:
    ratios = np.sort(np.log(nearest[:, 1] / nearest[:, 0]))
    kept = ratios[: int(0.9 * len(ratios))]
    tail = -np.log1p(-np.arange(1, len(kept) + 1) / len(ratios))
    squares = float(kept @ kept)
    return float(kept @ tail) / squares if squares > 0 else None


def _levina_bickel(nearest: _Floats) -> float | None:
    inverse = np.log(nearest[:, -1:] / nearest[:, :-1]).mean()
    return 1 / float(inverse) if inverse > 0 else None


def _groups(apart: _Floats, usual: float, dimension: float | None) -> list[npt.NDArray[np.int64]]:
    """Indices of the points of each component; stragglers are in none."""
    tree = linkage(apart, "single")
    all_points = np.arange(len(tree) + 1)
    proper = np.sort(_proper_heights(tree))
    ladder = np.concatenate([[usual], proper[proper > usual]])
    gaps = ladder[1:] / ladder[:-1]
    least_gap = max(1.3, 1 + 1 / max(dimension or 1.0, 1.0))
    if not len(gaps) or gaps.max() < least_gap:
        return [all_points]
    at = int(gaps.argmax())
    labels = fcluster(tree, math.sqrt(ladder[at] * ladder[at + 1]), "distance")
    names, sizes = np.unique(labels, return_counts=True)
    groups = [np.flatnonzero(labels == name) for name in names[sizes >= LEAST_GROUP]]
    return groups if len(groups) > 1 else [all_points]


def _proper_heights(tree: _Floats) -> _Floats:
    """Heights of the merges of two groups that are both large enough to be components."""
    points = len(tree) + 1
    sizes = np.concatenate([np.ones(points), tree[:, 3]])
    both = np.minimum(sizes[tree[:, 0].astype(int)], sizes[tree[:, 1].astype(int)])
    return np.asarray(tree[both >= LEAST_GROUP, 2])
