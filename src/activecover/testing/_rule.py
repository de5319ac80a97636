"""The contract of stopping rules, and campaigns with a known truth to measure their guarantees."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from activecover.stopping import Course, Record, Rule, campaign_for

Truth = npt.NDArray[np.bool_]
Random = np.random.Generator
#: Builds a rule for a target and a confidence.
MakeRule = Callable[[float, float], Rule]


@dataclass(frozen=True, slots=True)
class Ranking:
    """A way to rank a pool: the truth of all rows in order, and optionally where the learner rests."""

    rows: int
    positives: int
    draw: Callable[[int, int, Random], Truth]
    switch: Callable[[int, int], int] | None = None

    def scaled(self, rows: int) -> Ranking:
        """The same ranking for a pool of another size; up to 5 positives are not scaled."""
        few = self.positives <= 5
        positives = self.positives if few else round(self.positives * rows / self.rows)
        return Ranking(rows, positives, self.draw, self.switch)


def _benign(rows: int, positives: int, random: Random) -> Truth:
    """A good learner: scores of positives lie 2.5 standard deviations above the others."""
    scores = random.normal(size=rows)
    scores[:positives] += 2.5
    truth: Truth = np.argsort(-scores) < positives
    return truth


def _any_order(rows: int, positives: int, random: Random) -> Truth:
    return random.permutation(np.arange(rows) < positives)


def _hidden(rows: int, positives: int, random: Random) -> Truth:
    """30 % of the positives lie in a cluster that the learner reaches last."""
    late = round(0.3 * positives)
    return np.concatenate([_benign(rows - late, positives - late, random), np.ones(late, bool)])


def _stuck(rows: int, positives: int, random: Random) -> Truth:
    """The learner finds 85 % at once, and is no better than chance after that."""
    early = _early(positives)
    return np.concatenate([np.ones(early, bool), _any_order(rows - early, positives - early, random)])


def _early(positives: int) -> int:
    return int(0.85 * positives)


#: The campaigns on which rules are measured.
RANKINGS: Mapping[str, Ranking] = {
    "benign": Ranking(2000, 100, _benign),
    "benign, 20,000": Ranking(20_000, 1000, _benign),
    "benign, 1 %": Ranking(2000, 20, _benign),
    "benign, 50 %": Ranking(2000, 1000, _benign),
    "random": Ranking(2000, 100, _any_order),
    "adversarial": Ranking(2000, 100, _hidden),
    "stuck at 85 %": Ranking(2000, 100, _stuck, lambda rows, positives: _early(positives)),
    "5 in 20,000": Ranking(20_000, 5, _benign),
    "no positives": Ranking(2000, 0, _benign),
    "all positive": Ranking(2000, 2000, _benign),
}


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often a rule stopped too early.

    Attributes
    ----------
    runs, early : int
        Number of campaigns, and of those that ended below the target.
    labels : float
        Median share of the pool labelled.
    recall : float
        Mean recall at the end.
    low, high : float
        Quartiles of the share of the pool labelled.
    """

    runs: int
    early: int
    labels: float
    recall: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Share of campaigns that ended below the target."""
        return self.early / self.runs

    def within(self, alpha: float, errors: float = 3.0) -> bool:
        """Whether the share is at most alpha, with a tolerance of ``errors`` standard errors."""
        return self.error <= alpha + errors * math.sqrt(alpha * (1 - alpha) / self.runs)


def measure_coverage(
    make: MakeRule,
    ranking: Ranking,
    *,
    targets: Sequence[float] = (0.9,),
    alphas: Sequence[float] = (0.05,),
    runs: int = 200,
    seed: int = 0,
) -> dict[tuple[float, float], Coverage]:
    """Simulate campaigns and count those that a rule ended too early, for each target and alpha.

    The rule is evaluated after every label. If it never stops, the campaign ends with the pool. For rules that look at
    distances, a row's position in the ranking serves as its distance to the nearest positive.
    """
    distance = np.arange(1.0, ranking.rows + 1)
    ends: dict[tuple[float, float], list[tuple[float, float]]] = {}
    for run in range(runs):
        truth = ranking.draw(ranking.rows, ranking.positives, np.random.default_rng([seed, run]))
        switch = None if ranking.switch is None else ranking.switch(ranking.rows, ranking.positives)
        record: Record | None = None
        for alpha in alphas:
            course: Course | None = None
            for target in targets:
                rule = make(target, 1 - alpha)
                # A control sample is planned for the target; other draws are the same for all targets.
                if record is None or rule.design == "control":
                    draws = np.random.default_rng([seed, run, 1])
                    record = campaign_for(rule, truth, draws, switch=switch, distance=distance)
                if course is None or rule.course_per_target:
                    course = rule.follow(record)
                stops = rule.stops(record, course)
                time = int(stops.argmax()) if stops.any() else len(record)
                recall = 1.0 if not ranking.positives else int(record.found[time]) / ranking.positives
                ends.setdefault((target, alpha), []).append((recall, time / ranking.rows))
    return {key: _coverage(key[0], values) for key, values in ends.items()}


def _coverage(target: float, ends: Sequence[tuple[float, float]]) -> Coverage:
    recall, labels = np.array(ends).T
    low, middle, high = np.quantile(labels, [0.25, 0.5, 0.75]).tolist()
    return Coverage(len(ends), int((recall < target - 1e-9).sum()), middle, float(recall.mean()), low, high)


def check_rule(make: MakeRule, *, rows: int = 120, rounds: int = 6, runs: int = 60, seed: int = 0) -> None:
    """Check that a stopping rule satisfies its contract.

    Parameters
    ----------
    make : callable
        Builds the rule for a target and a confidence.
    rows, rounds : int
        Size and number of the pools.
    runs : int
        Campaigns per ranking on which the guarantee of a valid rule is measured.
    seed : int
        Seed of the campaigns.

    Examples
    --------
    >>> from activecover.stopping import ConfidenceSequence
    >>> check_rule(ConfidenceSequence, rounds=1, runs=5)
    """
    for turn in range(rounds):
        random = np.random.default_rng([seed, turn])
        truth = random.permutation(np.arange(rows) < random.integers(0, rows // 3))
        rule = make(float(random.choice([0.7, 0.9])), float(random.choice([0.8, 0.95])))
        record = campaign_for(rule, truth, random, switch=int(random.integers(0, rows)))
        _check_bounds(rule, record)
        _check_prefixes(rule, record, random)
        _check_end(rule, record)
        _check_unsettled(rule, record, random)
    if make(0.9, 0.95).valid:
        for name in ("benign", "random", "adversarial", "stuck at 85 %"):
            found = measure_coverage(
                make, RANKINGS[name].scaled(400), runs=runs, targets=(0.8,), alphas=(0.2,), seed=seed
            )
            assert found[0.8, 0.2].within(0.2), (
                f"{name}: stops below the target in {found[0.8, 0.2].error:.0%} of the runs"
            )


def _check_bounds(rule: Rule, record: Record) -> None:
    lower = rule.recall_lower(record)
    assert len(lower) == len(rule.stops(record)) == len(record) + 1, "not exactly one answer per time"
    assert np.all((lower >= 0) & (lower <= 1)), "a bound on recall lies outside 0 to 1"


def _check_prefixes(rule: Rule, record: Record, random: Random) -> None:
    lower, stops = rule.recall_lower(record), rule.stops(record)
    for time in random.integers(0, len(record) + 1, size=4).tolist():
        assessment = rule.assess(record.head(time))
        assert math.isclose(assessment.recall_lower, lower[time]), f"time {time}: the bound depends on later asks"
        # Heuristics that look only now and then look at the end of every record, so their stops can differ.
        assert assessment.stop or not stops[time] or not rule.valid, f"time {time}: the stop depends on later asks"
        price = assessment.price
        assert price is None or 0 <= price <= record.rows - time, "the price is not between 0 and the rows left"
        assert assessment.valid == rule.valid, "assessment and rule disagree on whether the rule is valid"
        assert assessment.reasoning, "no reasoning"


def _check_end(rule: Rule, record: Record) -> None:
    assessment = rule.assess(record)
    assert assessment.recall_lower == 1.0, "all rows are labelled, but the bound on recall is below 1"
    assert assessment.remaining_upper == 0, "all rows are labelled, but positives may remain"


def _check_unsettled(rule: Rule, record: Record, random: Random) -> None:
    """Check that withdrawing a label never makes a valid rule more certain."""
    if not rule.valid:
        return
    time = int(random.integers(1, len(record) + 1))
    before = record.head(time)
    outcome = before.outcome.copy()
    outcome[random.random(time) < 0.2] = -1
    doubtful = Record.of(
        outcome, rows=before.rows, source=before.source, probability=before.probability, open_rows=before.open_rows,
        reached=before.reached, control=before.control,
    )  # fmt: skip
    certain = int(doubtful.found[-1]) / max(1, int(doubtful.found[-1] + doubtful.unsettled[-1]))
    lower = rule.assess(doubtful).recall_lower
    assert lower <= max(certain, 0) + 1e-12 or not doubtful.unsettled[-1], "unsettled rows do not count as missed"
