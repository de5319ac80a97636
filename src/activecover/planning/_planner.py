"""How many rows to explore, planned from prior knowledge or from a labelled random sample."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform
from scipy.special import betaincinv

from activecover.errors import InputError, check_count
from activecover.planning._bounds import (
    check_smallest,
    explore_lemma1,
    explore_theorem4,
    explore_union,
    probability_all_hit,
)

_Floats = npt.NDArray[np.float64]

#: Fewer distinct positives say nothing about dimension or components.
LEAST_POSITIVES = 10
#: If there are more positives, a random sample of them is used, since every pair is compared.
MOST_POSITIVES = 3000
#: Smaller groups count as stragglers, not as components.
LEAST_GROUP = 3
#: With more components, a plan is of no use, and its probabilities take too long to compute.
MOST_COMPONENTS = 1_000_000
_NEIGHBOURS = 10


@dataclass(frozen=True, slots=True)
class HalfPrevalence:
    """The consequences if positives are half as common as stated."""

    prevalence: float
    reached: float
    needed: int


@dataclass(frozen=True, slots=True)
class PoolFit:
    """How a plan fits a pool of a given size.

    Attributes
    ----------
    rows : int
        Rows of the pool.
    expected_positives, expected_smallest : float
        Positives in the whole pool, and those of the smallest component, on average.
    exceeds : bool
        Whether the plan asks for more rows than there are.
    tenth, tenth_reached : int, float
        A tenth of the pool, and the confidence reached by exploring it.
    """

    rows: int
    expected_positives: float
    expected_smallest: float
    exceeds: bool
    tenth: int
    tenth_reached: float


@dataclass(frozen=True, slots=True)
class ExplorePlan:
    """How many random rows to label so that every component is hit.

    Attributes
    ----------
    prevalence, components, smallest, confidence
        The inputs of the plan.
    size : int
        Rows to label: the union bound, the smallest of the three.
    lemma1, theorem4 : int
        The sizes that the paper's Lemma 1 and Theorem 4 require.
    reached : float
        Probability that ``size`` rows hit every component, computed exactly for the worst shares that agree
        with ``smallest``: all components but one are that small.
    expected_positives : float
        Expected number of positives among the rows.
    any_positive : float
        Probability of at least one positive.
    half : HalfPrevalence
        The consequences if the prevalence was overestimated by a factor of two.
    pool : PoolFit or None
        How the plan fits the pool, if its size is known.
    """

    prevalence: float
    components: int
    smallest: float
    confidence: float
    size: int
    lemma1: int
    theorem4: int
    reached: float
    expected_positives: float
    any_positive: float
    half: HalfPrevalence
    pool: PoolFit | None = None

    def sentences(self) -> list[str]:
        """The plan in words, a sentence or two per point."""
        begin = "It would take" if self.pool is not None and self.pool.exceeds else "Label"
        sentences = [
            f"{begin} {_rows(self.size, 'random ')}: they hit every component with a probability of at least "
            f"{_chance(self.reached)} (requested: {_percent(self.confidence)}).",
            f"About {_count(self.expected_positives)} of them will be positive; the probability of at least one is "
            f"{_chance(self.any_positive)}.",
            f"If only {_percent(self.half.prevalence)} of the pool are positive, half of what you stated, the "
            f"confidence is {_chance(self.half.reached)}; {_percent(self.confidence)} would then take "
            f"{_rows(self.half.needed)}.",
        ]
        return sentences if self.pool is None else [*sentences, _pool_sentence(self.pool, self.size)]

    def as_dict(self) -> dict[str, Any]:
        """The plan, including its sentences, as plain data."""
        return {**asdict(self), "sentences": self.sentences()}


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
        level = _percent(self.level)
        sentences = [
            f"{self.positives:,} of {self.rows:,} rows are positive: {_percent(self.prevalence)} "
            f"({level} interval {_percent(self.prevalence_low)} to {_percent(self.prevalence_high)}).",
            f"Their intrinsic dimension is about {_dimension(self.two_nn)} (two nearest neighbours) or "
            f"{_dimension(self.mle)} (maximum likelihood).",
        ]
        if self.components == 1:
            sentences.append("They form one component.")
        else:
            sentences.append(
                f"They form {self.components:,} components, the smallest with {_percent(self.smallest)} of them "
                f"({level} interval {_percent(self.smallest_low)} to {_percent(self.smallest_high)})."
            )
        if self.stragglers:
            sentences.append(
                f"{self.stragglers:,} of them stand apart and were left out: outliers, or components that the sample "
                "hardly hit."
            )
        return [*sentences, "Components that the sample missed altogether are not reflected in these figures."]


def plan_explore(
    prevalence: float, components: int, smallest: float, confidence: float, rows: int | None = None
) -> ExplorePlan:
    """Plan the exploration: how many random rows contain a positive of every component.

    Parameters
    ----------
    prevalence : float
        Share of positives in the pool, between 0 and 1.
    components : int
        Groups of positives that are far from each other.
    smallest : float
        The smallest group's share of the positives; 1 if there is only one group.
    confidence : float
        Required probability that no group is missed.
    rows : int, optional
        Rows of the pool.

    Examples
    --------
    >>> plan = plan_explore(0.02, 5, 0.05, 0.95, rows=1_000_000)
    >>> plan.size, plan.lemma1, plan.theorem4
    (4603, 18445, 21911)
    >>> print(plan.sentences()[1])
    About 92 of them will be positive; the probability of at least one is over 99.99 %.
    """
    _check_plan(prevalence, components, smallest, confidence, rows)
    smallest = min(smallest, 1 / components)
    delta = 1 - confidence
    size = explore_union(prevalence, smallest, components, delta)
    half = HalfPrevalence(
        prevalence / 2,
        _worst_reached(prevalence / 2, components, smallest, size),
        explore_union(prevalence / 2, smallest, components, delta),
    )
    return ExplorePlan(
        prevalence=prevalence,
        components=components,
        smallest=smallest,
        confidence=confidence,
        size=size,
        lemma1=explore_lemma1(prevalence, smallest, components, delta),
        theorem4=explore_theorem4(prevalence, smallest, components, delta),
        reached=_worst_reached(prevalence, components, smallest, size),
        expected_positives=prevalence * size,
        any_positive=-math.expm1(size * math.log1p(-prevalence)),
        half=half,
        pool=None if rows is None else _pool_fit(prevalence, components, smallest, size, rows),
    )


def plan_from_sample(
    estimate: SampleEstimate,
    confidence: float,
    rows: int | None = None,
    *,
    prevalence: float | None = None,
    components: int | None = None,
    smallest: float | None = None,
) -> tuple[ExplorePlan, ExplorePlan]:
    """Plan for the estimate, and for the low ends of its intervals; given values replace estimated ones.

    Examples
    --------
    >>> import numpy as np
    >>> positive = np.arange(200) < 40
    >>> vectors = np.random.default_rng(0).random((200, 2)) + 10 * (np.arange(200) % 2)[:, None]
    >>> likely, careful = plan_from_sample(estimate_from_sample(vectors, positive), 0.95)
    >>> likely.components, likely.size, careful.size
    (2, 36, 73)
    """
    groups = estimate.components if components is None else components
    check_count("components", groups)

    def plan(common: float, small: float) -> ExplorePlan:
        share = min(small, 1 / groups) if groups > 1 else 1.0
        return plan_explore(
            common if prevalence is None else prevalence,
            groups,
            share if smallest is None else smallest,
            confidence,
            rows,
        )

    likely = plan(estimate.prevalence, estimate.smallest)
    return likely, plan(estimate.prevalence_low, estimate.smallest_low)


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
    matrix, marks = np.asarray(vectors, np.float64), np.asarray(positive, bool)
    if matrix.ndim != 2 or marks.shape != matrix.shape[:1]:
        raise InputError("give a table of vectors, and one true or false per row")
    if not np.isfinite(matrix).all():
        raise InputError("the sample's vectors hold values that are not finite numbers; fill them in or drop the rows")
    _check_inner("level", level)
    found, copies = _distinct(matrix[marks])
    positives = int(marks.sum())
    points, weights = _thinned(found, copies)
    apart = pdist(points)
    nearest = _nearest(apart)
    two_nn, mle = _two_nn(nearest), _levina_bickel(nearest)
    groups = _groups(apart, float(np.quantile(nearest[:, 0], 0.9)), two_nn or mle)
    members = np.array([int(weights[group].sum()) for group in groups])
    grouped, least = int(members.sum()), int(members.min())
    low, high = clopper_pearson(positives, len(marks), level)
    small_low, small_high = (1.0, 1.0) if len(groups) == 1 else clopper_pearson(least, grouped, level)
    return SampleEstimate(
        rows=len(marks),
        positives=positives,
        distinct=len(found),
        prevalence=positives / len(marks),
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


def _worst_reached(prevalence: float, components: int, smallest: float, size: int) -> float:
    """Probability that all components are hit if all but one are as small as possible.

    Moving mass from a smaller to a larger component never helps: given that t rows fall into the two, the
    probability of hitting both is 1 - x^t - (1-x)^t, which is largest at x = 1/2. So no other shares do worse.
    """
    shares = [smallest] * (components - 1) + [1 - (components - 1) * smallest]
    return probability_all_hit(prevalence, shares, size)


def _pool_fit(prevalence: float, components: int, smallest: float, size: int, rows: int) -> PoolFit:
    tenth = max(1, rows // 10)
    return PoolFit(
        rows=rows,
        expected_positives=prevalence * rows,
        expected_smallest=prevalence * smallest * rows,
        exceeds=size > rows,
        tenth=tenth,
        tenth_reached=_worst_reached(prevalence, components, smallest, tenth),
    )


def _pool_sentence(pool: PoolFit, size: int) -> str:
    if not pool.exceeds:
        return (
            f"That is {_percent(size / pool.rows)} of the pool of {pool.rows:,} rows, which should contain about "
            f"{_count(pool.expected_positives)} positives, {_count(pool.expected_smallest)} of them in the smallest "
            "component."
        )
    return (
        f"The pool has only {_rows(pool.rows)}, with about {_count(pool.expected_smallest)} positives in the smallest "
        f"component. Label them all, or settle for less: a tenth ({_rows(pool.tenth)}) gives a confidence of "
        f"{_chance(pool.tenth_reached)}."
    )


def _check_plan(prevalence: float, components: int, smallest: float, confidence: float, rows: int | None) -> None:
    _check_inner("prevalence", prevalence)
    check_count("components", components)
    if components > MOST_COMPONENTS:
        raise InputError(f"components {components:,}: give at most {MOST_COMPONENTS:,}")
    if not 0 < smallest <= 1:
        raise InputError(f"smallest {smallest:g}: give a share of the positives above 0 and up to 1")
    check_smallest("smallest", smallest, components)
    _check_inner("confidence", confidence)
    if 1 - confidence == 1:
        raise InputError(f"confidence {confidence:g}: this is practically none, and any sample gives it")
    if rows is not None:
        check_count("rows", rows)


def _check_inner(name: str, value: float) -> None:
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


def _percent(share: float) -> str:
    # Four digits, but more where 99.9999 % would be rounded to certainty.
    return f"{100 * share:.{4 if share < 0.9999 or share == 1 else 13}g} %"


def _chance(probability: float) -> str:
    """A probability in percent, never rounded to certain or impossible."""
    if probability > 0.9999:
        return "over 99.99 %"
    return "under 0.01 %" if 0 < probability < 0.0001 else f"{100 * probability:.2f} %"


def _rows(number: int, kind: str = "") -> str:
    return f"{number:,} {kind}row{'s' if number != 1 else ''}"


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _dimension(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f}"
