"""The frontier's contract, checked against a loop that anyone can read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from activecover.frontier import NO_KEY, Frontier
from activecover.pool import Pool


class BruteForce:
    """The definition, written down: all distances in float64, every time."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.positives: dict[int, npt.NDArray[np.float64]] = {}
        self.open = set(np.flatnonzero(~pool.withdrawn).tolist())

    def nearest(self, k: int, without: set[int]) -> list[tuple[float, int, int]]:
        """Squared distance, row and source of the ``k`` nearest open rows."""
        found = []
        for row in sorted(self.open - without):
            point = self.pool.vectors[row].astype(np.float64)
            nearest = [(float(((point - p) ** 2).sum()), key) for key, p in self.positives.items()]
            if nearest:
                squared, key = min(nearest)
                found.append((squared, row, key))
        return sorted(found)[:k]


def check_frontier(make: Callable[[Pool], Frontier], *, rounds: int = 20, steps: int = 30, seed: int = 0) -> None:
    """Hold a frontier to its contract on random pools and random sequences of calls.

    Parameters
    ----------
    make : callable
        Builds the frontier for a pool.
    rounds, steps : int
        Pools, and calls on each.
    seed : int
        Of the pools and calls.
    """
    for turn in range(rounds):
        random = np.random.default_rng([seed, turn])
        _check_one(make, random, steps)


def _check_one(make: Callable[[Pool], Frontier], random: np.random.Generator, steps: int) -> None:
    pool = random_pool(random)
    frontier, model = make(pool), BruteForce(pool)
    empty = frontier.nearest(3)
    assert len(empty.rows) == 0, "with no positive there is no nearest row"
    for _ in range(steps):
        _random_call(frontier, model, random)
        _compare(frontier, model, random)


def random_pool(random: np.random.Generator, rows: int | None = None) -> Pool:
    """A small pool with what makes order hard: duplicates, ties on a grid, far offsets, both metrics."""
    count = rows or int(random.integers(1, 60))
    dimensions = int(random.choice([1, 2, 3, 7, 8, 9, 16, 17, 130, 300]))
    if random.random() < 0.5:
        points = random.integers(-2, 3, (count, dimensions)).astype(np.float64)
    else:
        points = random.normal(size=(count, dimensions))
    points = points[random.integers(0, count, count)] if random.random() < 0.5 else points
    metric = "cosine" if random.random() < 0.3 else "euclidean"
    if metric == "cosine":
        points[~points.any(axis=1)] = 1.0
    else:
        points = points * random.choice([1e-3, 1.0, 1e4]) + random.choice([0.0, 100.0, 1e6])
    return Pool(points, metric=metric)


def _random_call(frontier: Frontier, model: BruteForce, random: np.random.Generator) -> None:
    pool = model.pool
    every = np.arange(len(pool))
    some = random.choice(every, size=int(random.integers(0, min(5, len(pool)) + 1)), replace=False)
    choice = random.integers(7)
    if choice <= 1:
        keys = [int(row) for row in some if int(row) not in model.positives and not pool.withdrawn[row]]
        frontier.add(keys, pool.take(keys))
        model.positives.update({key: pool.vectors[key].astype(np.float64) for key in keys})
    elif choice == 2 and model.positives:
        keys = random.permutation(list(model.positives))[: int(random.integers(1, 4))].tolist()
        frontier.remove(keys)
        for key in keys:
            del model.positives[key]
    elif choice == 3:
        frontier.retire(some)
        model.open -= set(some.tolist())
    elif choice == 4:
        frontier.restore(some)
        model.open |= set(some[~pool.withdrawn[some]].tolist())
    elif choice == 5 and random.random() < 0.3:
        erased = some[:1]
        pool.withdraw(erased)
        model.open -= set(erased.tolist())
        for row in erased.tolist():
            model.positives.pop(row, None)
    else:
        _grow_or_seed(frontier, model, random)


def _grow_or_seed(frontier: Frontier, model: BruteForce, random: np.random.Generator) -> None:
    pool = model.pool
    shape = (int(random.integers(1, 4)), pool.dimensions)
    vectors = random.normal(size=shape) + pool.origin
    if random.random() < 0.5:
        rows = pool.extend(vectors)
        frontier.extend()
        model.open |= set(rows.tolist())
    else:
        first = min([0, *model.positives]) - 1
        keys = [first - place for place in range(shape[0])]
        encoded = pool.encode(vectors)
        frontier.add(keys, encoded)
        model.positives.update({key: point.astype(np.float64) for key, point in zip(keys, encoded, strict=True)})


def _compare(frontier: Frontier, model: BruteForce, random: np.random.Generator) -> None:
    k = int(random.integers(1, len(model.pool) + 3))
    held = set(random.choice(len(model.pool), size=int(random.integers(0, 3))).tolist())
    found = frontier.nearest(k, without=sorted(held))
    rows = found.rows.tolist()
    assert len(set(rows)) == len(rows), "a row was proposed twice"
    assert set(rows) <= model.open - held, "a closed or held row was proposed"
    assert frontier.nearest(k, without=sorted(held)).rows.tolist() == rows, "nearest changed something"
    if not frontier.exact:
        return
    expected = model.nearest(k, held)
    assert rows == [row for _, row, _ in expected], "rows or their order differ from the definition"
    assert found.sources.tolist() == [key for _, _, key in expected], "a row names the wrong positive"
    assert found.distances.tolist() == [float(np.sqrt(d)) for d, _, _ in expected], "a distance is not exact"
    if rows:
        first = frontier.nearest(1, without=sorted(held))
        assert first.rows.tolist() == rows[:1], "nearest(k) does not begin with nearest(1)"
    assert NO_KEY not in found.sources, "a row has no source"
