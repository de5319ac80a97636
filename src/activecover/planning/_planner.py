"""How many rows to explore, planned from prior knowledge or from a labelled random sample."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from activecover.errors import InputError, check_count
from activecover.planning._bounds import (
    check_smallest,
    explore_lemma1,
    explore_theorem4,
    explore_union,
    probability_all_hit,
)
from activecover.planning._phrases import chance, count_text, percent, rows_text
from activecover.planning._sample import SampleEstimate, check_inner

#: With more components, a plan is of no use, and its probabilities take too long to compute.
MOST_COMPONENTS = 1_000_000


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
            f"{begin} {rows_text(self.size, 'random ')}: they hit every component with a probability of at least "
            f"{chance(self.reached)} (requested: {percent(self.confidence)}).",
            f"About {count_text(self.expected_positives)} of them will be positive; the probability of at least one is "
            f"{chance(self.any_positive)}.",
            f"If only {percent(self.half.prevalence)} of the pool are positive, half of what you stated, the "
            f"confidence is {chance(self.half.reached)}; {percent(self.confidence)} would then take "
            f"{rows_text(self.half.needed)}.",
        ]
        return sentences if self.pool is None else [*sentences, _pool_sentence(self.pool, self.size)]

    def as_dict(self) -> dict[str, Any]:
        """The plan, including its sentences, as plain data."""
        return {**asdict(self), "sentences": self.sentences()}


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
    >>> from activecover.planning import estimate_from_sample
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
            f"That is {percent(size / pool.rows)} of the pool of {pool.rows:,} rows, which should contain about "
            f"{count_text(pool.expected_positives)} positives, {count_text(pool.expected_smallest)} of them in the smallest "
            "component."
        )
    return (
        f"The pool has only {rows_text(pool.rows)}, with about {count_text(pool.expected_smallest)} positives in the smallest "
        f"component. Label them all, or settle for less: a tenth ({rows_text(pool.tenth)}) gives a confidence of "
        f"{chance(pool.tenth_reached)}."
    )


def _check_plan(prevalence: float, components: int, smallest: float, confidence: float, rows: int | None) -> None:
    check_inner("prevalence", prevalence)
    check_count("components", components)
    if components > MOST_COMPONENTS:
        raise InputError(f"components {components:,}: give at most {MOST_COMPONENTS:,}")
    if not 0 < smallest <= 1:
        raise InputError(f"smallest {smallest:g}: give a share of the positives above 0 and up to 1")
    check_smallest("smallest", smallest, components)
    check_inner("confidence", confidence)
    if 1 - confidence == 1:
        raise InputError(f"confidence {confidence:g}: this is practically none, and any sample gives it")
    if rows is not None:
        check_count("rows", rows)
