"""Measured rates: excess query cost against pool size.

A cell is one learner on one pool of one size. Finished cells are stored in a CSV file, so that a long measurement can
be interrupted and resumed.
"""

from __future__ import annotations

import csv
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.frontier import TreeFrontier
from activecover.lab.rates._distributions import DISTRIBUTIONS, Distribution
from activecover.learners import Exploration
from activecover.planning import explore_union
from activecover.pool import Pool

#: The learners with rates in the paper.
LEARNERS = ("passive", "offline", "explore-commit")
_DELTA = 0.001
_BOOTSTRAPS = 1000

Watcher = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RateCell:
    """One measurement: the cost of one learner on one pool."""

    distribution: str
    dimension: int
    n: int
    learner: str
    run: int
    seed: int
    sample: int
    cost: int
    optimal: int
    seconds: float

    @property
    def excess(self) -> int:
        """C = Q - Q_opt."""
        return self.cost - self.optimal

    @property
    def key(self) -> tuple[str, int, int, str, int]:
        """What is measured."""
        return (self.distribution, self.dimension, self.n, self.learner, self.run)


@dataclass(frozen=True, slots=True)
class RatePlan:
    """The measurements to make."""

    dimensions: tuple[int, ...]
    sizes: tuple[int, ...]
    runs: int
    seed: int = 0
    distribution: str = "cube"
    learners: tuple[str, ...] = LEARNERS

    def keys(self) -> list[tuple[str, int, int, str, int]]:
        """All cells, small pools first, so that a plot is available early."""
        return [
            (self.distribution, dimension, n, learner, run)
            for n in sorted(self.sizes)
            for run in range(self.runs)
            for dimension in self.dimensions
            for learner in self.learners
        ]


def measure(plan: RatePlan, path: Path | None = None, watch: Watcher | None = None) -> list[RateCell]:
    """Make the measurements of a plan, except those already in the file."""
    _check(plan)
    wanted = plan.keys()
    known = {cell.key: cell for cell in (read_cells(path) if path is not None and path.exists() else [])}
    for cell in known.values():
        if cell.seed != plan.seed:
            raise InputError(f"{path}: its cells were made with seed {cell.seed}, not {plan.seed}; use another file")
    with _Writer(path) as writer:
        for done, key in enumerate(wanted):
            if key not in known:
                known[key] = measure_one(*key, seed=plan.seed)
                writer.write(known[key])
            if watch is not None:
                watch(done + 1, len(wanted))
    return [known[key] for key in wanted]


def measure_one(distribution: str, dimension: int, n: int, learner: str, run: int, *, seed: int) -> RateCell:
    """Draw a pool and count the queries of one learner until the last positive."""
    started = time.perf_counter()
    law = DISTRIBUTIONS.build(distribution, dimensions=dimension)
    # One pool per (dimension, size, run): the learners are compared on the same points.
    random = np.random.default_rng([seed, dimension, n, run])
    points, positive, inside = law.sample(n, random)
    sample = sample_size(law, n, learner)
    cost = _COSTS[learner](points, positive, sample, seed + run)
    seconds = round(time.perf_counter() - started, 3)
    return RateCell(distribution, dimension, n, learner, run, seed, sample, cost, int(inside.sum()), seconds)


def sample_size(law: Distribution, n: int, learner: str) -> int:
    """Number of rows that a learner explores.

    Explore-commit uses the direct union bound, which does not grow with the pool; with one component a single row is
    enough, since exploration continues until a positive is found. Offline uses its best order,
    (n^D · log n)^(1/(D+1)), times a constant that was tuned on other seeds.
    """
    if learner == "explore-commit":
        count = len(law.components)
        return 1 if count == 1 else min(n, explore_union(law.share, law.smallest_share, count, _DELTA))
    if learner == "offline":
        d = law.intrinsic_dimension
        order: float = (n**d * math.log(n)) ** (1 / (d + 1))
        return min(n, max(1, round(OFFLINE_CONSTANT.get(d, 1.0) * order)))
    return 0


#: Tuned by ``best_constant``: the multiple of its best order with the lowest cost for the offline learner.
OFFLINE_CONSTANT: dict[int, float] = {1: 0.5, 2: 0.25, 3: 0.125}


def best_constant(
    dimension: int, *, n: int = 10_000, runs: int = 10, seed: int = 1000, distribution: str = "cube"
) -> tuple[float, dict[float, float]]:
    """The multiple of the offline learner's best order with the lowest cost, and the cost of each."""
    law = DISTRIBUTIONS.build(distribution, dimensions=dimension)
    order = (n**dimension * math.log(n)) ** (1 / (dimension + 1))
    costs: dict[float, float] = {}
    for constant in (2.0**power for power in range(-6, 3)):
        sample = min(n, round(constant * order))
        excess = []
        for run in range(runs):
            points, positive, inside = law.sample(n, np.random.default_rng([seed, dimension, n, run]))
            excess.append(_offline_cost(points, positive, sample, seed + run) - int(inside.sum()))
        costs[constant] = float(np.mean(excess))
    return min(costs, key=lambda constant: costs[constant]), costs


def _passive_cost(points: npt.NDArray[np.float64], positive: npt.NDArray[np.bool_], sample: int, seed: int) -> int:
    order = Exploration(0, seed).begin(len(points)).order()
    return int(np.flatnonzero(positive[order])[-1]) + 1 if positive.any() else 0


def _offline_cost(points: npt.NDArray[np.float64], positive: npt.NDArray[np.bool_], sample: int, seed: int) -> int:
    frontier, drawn, asked = _explore(points, positive, sample, seed)
    if positive[drawn].sum() == positive.sum():
        return int(np.flatnonzero(positive[drawn])[-1]) + 1
    rows = frontier.nearest(len(points)).rows
    return asked + int(np.flatnonzero(positive[rows])[-1]) + 1


def _active_cost(points: npt.NDArray[np.float64], positive: npt.NDArray[np.bool_], sample: int, seed: int) -> int:
    frontier, drawn, asked = _explore(points, positive, sample, seed)
    left = int(positive.sum() - positive[drawn].sum())
    if not left:
        return int(np.flatnonzero(positive[drawn])[-1]) + 1
    return asked + len(frontier.follow(positive, left))


_COSTS: dict[str, Callable[[npt.NDArray[np.float64], npt.NDArray[np.bool_], int, int], int]] = {
    "passive": _passive_cost,
    "offline": _offline_cost,
    "explore-commit": _active_cost,
}


def _explore(
    points: npt.NDArray[np.float64], positive: npt.NDArray[np.bool_], sample: int, seed: int
) -> tuple[TreeFrontier, npt.NDArray[np.int64], int]:
    """Label a random sample, and continue until it contains a positive, as every learner does."""
    pool = Pool(points)
    order = Exploration(0, seed).begin(len(pool)).order()
    first = int(positive[order].argmax()) + 1
    drawn = order[: max(sample, first)]
    frontier = TreeFrontier(pool)
    frontier.retire(drawn)
    found = drawn[positive[drawn]]
    frontier.add(found, pool.vectors[found])
    return frontier, drawn, len(drawn)


@dataclass(frozen=True, slots=True)
class Fit:
    """An exponent: the measured value, its 95 % interval over runs, and the value proved in the paper."""

    learner: str
    dimension: int
    exponent: float
    low: float
    high: float
    theory: float
    #: Ratio of the adjusted cost at the largest pool to that at the smallest.
    growth: float


def fit(cells: Iterable[RateCell]) -> list[Fit]:
    """Fit the exponents, after subtracting the sample (explore-commit) and dividing by the log factor."""
    groups: dict[tuple[str, int], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        groups[cell.learner, cell.dimension][cell.n].append(adjusted(cell))
    return [_fit_one(learner, dimension, by_size) for (learner, dimension), by_size in sorted(groups.items())]


def adjusted(cell: RateCell) -> float:
    """The excess cost in the form whose exponent is proved."""
    log = math.log(cell.n)
    if cell.learner == "explore-commit":
        return float((cell.excess - cell.sample) / log ** (1 / cell.dimension))
    if cell.learner == "offline":
        return float(cell.excess / log ** (1 / (cell.dimension + 1)))
    return float(cell.excess)


def theory_exponent(learner: str, dimension: int) -> float:
    """The exponent proved in the paper, without log factors."""
    return {"passive": 1.0, "offline": dimension / (dimension + 1)}.get(learner, (dimension - 1) / dimension)


def _fit_one(learner: str, dimension: int, by_size: dict[int, list[float]]) -> Fit:
    sizes = sorted(by_size)
    random = np.random.default_rng(0)
    slopes, growths = [], []
    for turn in range(_BOOTSTRAPS + 1):
        means = []
        for n in sizes:
            values = np.array(by_size[n])
            chosen = values if turn == 0 else values[random.integers(0, len(values), len(values))]
            means.append(chosen.mean())
        # If nothing is left of the cost, there is no logarithm and no exponent.
        usable = len(sizes) > 1 and min(means) > 0
        slopes.append(float(np.polyfit(np.log(sizes), np.log(means), 1)[0]) if usable else float("nan"))
        growths.append(means[-1] / means[0] if means[0] > 0 else float("nan"))
    low, high = np.nanquantile(slopes[1:], [0.025, 0.975]) if not np.isnan(slopes[1:]).all() else (np.nan, np.nan)
    return Fit(learner, dimension, slopes[0], float(low), float(high), theory_exponent(learner, dimension), growths[0])


def read_cells(path: Path) -> list[RateCell]:
    """The measurements of a file."""
    kinds = {field.name: {"str": str, "int": int, "float": float}[str(field.type)] for field in fields(RateCell)}
    try:
        # A last line that was truncated by a crash is measured again.
        lines = path.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
        return [
            RateCell(**{name: kind(record[name]) for name, kind in kinds.items()}) for record in csv.DictReader(lines)
        ]
    except (OSError, ValueError, KeyError, TypeError) as wrong:
        raise InputError(f"{path}: not a file of measured rates ({wrong})") from wrong


class _Writer:
    """Appends finished cells, each synced to disk before the next starts."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def __enter__(self) -> _Writer:
        if self._path is not None:
            try:
                new = not self._path.exists() or not self._path.stat().st_size
                whole = 0 if new else self._path.read_bytes().rfind(b"\n") + 1
                self._file = self._path.open("a", newline="", encoding="utf-8")
                self._file.truncate(whole)
            except OSError as wrong:
                raise InputError(f"{self._path}: cannot be written ({wrong.strerror})") from wrong
            self._writer = csv.DictWriter(self._file, [field.name for field in fields(RateCell)], lineterminator="\n")
            if new:
                self._writer.writeheader()
        return self

    def write(self, cell: RateCell) -> None:
        if self._path is not None:
            self._writer.writerow(asdict(cell))
            self._file.flush()
            os.fsync(self._file.fileno())

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            self._file.close()


def sizes_between(text: str) -> tuple[int, ...]:
    """Sizes from ``1000..1000000`` (two per decade) or ``1000,5000``.

    Examples
    --------
    >>> sizes_between("1000..100000")
    (1000, 3162, 10000, 31623, 100000)
    >>> sizes_between("500,2000")
    (500, 2000)
    """
    try:
        if ".." in text:
            low, high = (int(part) for part in text.split(".."))
            steps = round(2 * math.log10(high / low)) if 0 < low < high else 0
            if steps < 1:
                raise ValueError
            return tuple(round(low * (high / low) ** (step / steps)) for step in range(steps + 1))
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"invalid sizes {text!r}: write 1000..1000000 or 1000,5000") from None


def _check(plan: RatePlan) -> None:
    if plan.runs < 1:
        raise InputError(f"{plan.runs} runs: give a number from 1")
    if not plan.sizes or min(plan.sizes) < 10:
        raise InputError("pools need at least 10 points: give larger sizes")
    unknown = [name for name in plan.learners if name not in _COSTS]
    if unknown:
        raise InputError(f"no rate is known for {unknown[0]!r}: choose from {', '.join(LEARNERS)}")
    for dimension in plan.dimensions:
        if dimension < 1:
            raise InputError(f"{dimension} dimensions: give a number from 1")
        DISTRIBUTIONS.build(plan.distribution, dimensions=dimension)


def explore_curve(
    law: Distribution, sizes: Sequence[int], *, runs: int = 1000, seed: int = 0
) -> list[tuple[int, float]]:
    """Measured fraction of random samples of each size that contain a positive of every component."""
    random = np.random.default_rng([seed, len(law.components)])
    shares = [law.share * weight for weight in law.weights]
    measured = []
    for size in sizes:
        counts = random.multinomial(size, [*shares, max(0.0, 1 - sum(shares))], size=runs)[:, :-1]
        measured.append((int(size), float((counts > 0).all(axis=1).mean())))
    return measured
