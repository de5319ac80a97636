"""The contract of frontiers, checked against a simple reference implementation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.frontier import NO_KEY, Frontier
from activecover.pool import Pool, Vectors, VectorsLike, bit_vectors, dense_vectors, sparse_vectors

Point = TypeVar("Point")
Apart = TypeVar("Apart", float, Fraction)


class Definition(ABC, Generic[Point, Apart]):
    """The definition of distance for one kind of pool, written as plainly as possible."""

    @abstractmethod
    def read(self, vectors: Vectors, row: int) -> Point:
        """One row of stored vectors, as a point."""

    @abstractmethod
    def apart(self, a: Point, b: Point) -> Apart:
        """A number that orders pairs of points by distance."""

    @abstractmethod
    def distance(self, apart: Apart) -> float:
        """The distance for such a number."""


class DenseDefinition(Definition[npt.NDArray[np.float64], float]):
    """Squared differences, summed by NumPy in float64."""

    def read(self, vectors: Vectors, row: int) -> npt.NDArray[np.float64]:
        return np.asarray(dense_vectors(vectors)[row], np.float64)

    def apart(self, a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
        return float(((a - b) ** 2).sum())

    def distance(self, apart: float) -> float:
        return math.sqrt(apart)


class SparseDefinition(Definition[dict[int, float], float]):
    """Squared differences over the columns of either row, summed in the order of the columns."""

    def read(self, vectors: Vectors, row: int) -> dict[int, float]:
        csr = sparse_vectors(vectors)
        stretch = slice(csr.indptr[row], csr.indptr[row + 1])
        return dict(zip(csr.indices[stretch].tolist(), csr.data[stretch].tolist(), strict=True))

    def apart(self, a: dict[int, float], b: dict[int, float]) -> float:
        total = 0.0
        for column in sorted({*a, *b}):
            difference = a.get(column, 0.0) - b.get(column, 0.0)
            total += difference * difference
        return total

    def distance(self, apart: float) -> float:
        return math.sqrt(apart)


class BitDefinition(Definition[int, Fraction]):
    """The fraction of bits that are not in common, as an exact fraction."""

    def read(self, vectors: Vectors, row: int) -> int:
        return int.from_bytes(bit_vectors(vectors)[row].tobytes(), "big")

    def apart(self, a: int, b: int) -> Fraction:
        return Fraction((a ^ b).bit_count(), (a | b).bit_count()) if a | b else Fraction(0)

    def distance(self, apart: Fraction) -> float:
        return float(apart)


def definition_of(pool: Pool) -> Definition[Any, Any]:
    """The definition of distance for a pool."""
    if pool.kind == "bits":
        return BitDefinition()
    return SparseDefinition() if pool.kind == "sparse" else DenseDefinition()


class BruteForce:
    """The reference: compute all distances, every time."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.definition = definition_of(pool)
        self.positives: dict[int, Any] = {}
        self.open = set(np.flatnonzero(~pool.withdrawn).tolist())

    def add(self, keys: list[int], vectors: Vectors) -> None:
        """Add positives by key, with stored or encoded vectors."""
        self.positives.update({key: self.definition.read(vectors, place) for place, key in enumerate(keys)})

    def nearest(self, k: int, without: set[int]) -> list[tuple[Any, int, int]]:
        """Distance, row and source of the ``k`` nearest open rows."""
        found = []
        vectors = self.pool.vectors
        for row in sorted(self.open - without):
            point = self.definition.read(vectors, row)
            nearest = [(self.definition.apart(point, p), key) for key, p in self.positives.items()]
            if nearest:
                apart, key = min(nearest)
                found.append((apart, row, key))
        return sorted(found)[:k]


def check_frontier(
    make: Callable[[Pool], Frontier],
    *,
    rounds: int = 20,
    steps: int = 30,
    seed: int = 0,
    pools: Callable[[np.random.Generator], Pool] | None = None,
) -> None:
    """Check that a frontier satisfies its contract, on random pools and random sequences of calls.

    Parameters
    ----------
    make : callable
        Builds the frontier for a pool.
    rounds, steps : int
        Number of pools, and of calls on each.
    seed : int
        Seed for the pools and calls.
    pools : callable, optional
        Draws a pool: ``random_pool`` (dense, the default), ``random_sparse_pool``, ``random_bit_pool``,
        or your own function.
    """
    for turn in range(rounds):
        random = np.random.default_rng([seed, turn])
        _check_one(make, random, steps, random_pool if pools is None else pools)


def _check_one(
    make: Callable[[Pool], Frontier],
    random: np.random.Generator,
    steps: int,
    pools: Callable[[np.random.Generator], Pool],
) -> None:
    pool = pools(random)
    frontier, model = make(pool), BruteForce(pool)
    empty = frontier.nearest(3)
    assert len(empty.rows) == 0, "without positives there must be no nearest row"
    for _ in range(steps):
        _random_call(frontier, model, random)
        _compare(frontier, model, random)


def random_pool(random: np.random.Generator, rows: int | None = None) -> Pool:
    """A small pool that makes ordering hard: duplicates, ties on a grid, large offsets, both metrics."""
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


def random_sparse_pool(random: np.random.Generator, rows: int | None = None) -> Pool:
    """A small sparse pool: duplicates, ties, empty rows, rows that share no column, both metrics."""
    count = rows or int(random.integers(1, 60))
    dimensions = int(random.choice([1, 2, 5, 30, 400, 100_000]))
    metric = "cosine" if random.random() < 0.5 else "euclidean"
    matrix = _sparse_rows(random, count, dimensions, metric)
    if random.random() < 0.5:
        matrix = matrix[random.integers(0, count, count)]
    return Pool(matrix, metric=metric)


def _sparse_rows(random: np.random.Generator, count: int, dimensions: int, metric: str) -> sparse.csr_array:
    """Rows of up to 25 values, mostly in the first columns, like word counts."""
    lengths = random.integers(0, min(dimensions, 25) + 1, count)
    lengths = np.maximum(lengths, 1) if metric == "cosine" else lengths
    columns = (dimensions * random.random(lengths.sum()) ** 4).astype(np.int64)
    whole = random.random() < 0.5
    scale = random.choice([1, 1e6])
    values = random.integers(1, 4, len(columns)) if whole else random.normal(size=len(columns)) * scale
    # For cosine no row may be all zeros.
    values = np.abs(values) if metric == "cosine" else values
    place = np.repeat(np.arange(count), lengths)
    return sparse.csr_array(sparse.coo_array((values.astype(np.float64), (place, columns)), shape=(count, dimensions)))


def random_bit_pool(random: np.random.Generator, rows: int | None = None) -> Pool:
    """A small pool of bits: duplicates, many ties, rows without any bits."""
    count = rows or int(random.integers(1, 60))
    dimensions = int(random.choice([1, 3, 8, 63, 64, 65, 200, 1024]))
    bits = _bit_rows(random, count, dimensions)
    if random.random() < 0.5:
        bits = bits[random.integers(0, count, count)]
    return Pool(bits, metric="jaccard")


def _bit_rows(random: np.random.Generator, count: int, dimensions: int) -> npt.NDArray[np.bool_]:
    return np.asarray(random.random((count, dimensions)) < random.choice([0.02, 0.3, 0.9], (count, 1)))


def _more_rows(pool: Pool, random: np.random.Generator, count: int) -> VectorsLike:
    """Outside rows of the pool's kind."""
    if pool.kind == "sparse":
        return _sparse_rows(random, count, pool.dimensions, pool.metric)
    if pool.kind == "bits":
        return _bit_rows(random, count, pool.dimensions)
    return random.normal(size=(count, pool.dimensions)) + pool.origin


def _random_call(frontier: Frontier, model: BruteForce, random: np.random.Generator) -> None:
    pool = model.pool
    every = np.arange(len(pool))
    some = random.choice(every, size=int(random.integers(0, min(5, len(pool)) + 1)), replace=False)
    choice = random.integers(7)
    if choice <= 1:
        keys = [int(row) for row in some if int(row) not in model.positives and not pool.withdrawn[row]]
        frontier.add(keys, pool.take(keys))
        model.add(keys, pool.take(keys))
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
    count = int(random.integers(1, 4))
    vectors = _more_rows(pool, random, count)
    if random.random() < 0.5:
        rows = pool.extend(vectors)
        frontier.extend()
        model.open |= set(rows.tolist())
    else:
        first = min([0, *model.positives]) - 1
        keys = [first - place for place in range(count)]
        encoded = pool.encode(vectors)
        frontier.add(keys, encoded)
        model.add(keys, encoded)


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
    distances = [model.definition.distance(apart) for apart, _, _ in expected]
    assert found.distances.tolist() == distances, "a distance is not exact"
    if rows:
        first = frontier.nearest(1, without=sorted(held))
        assert first.rows.tolist() == rows[:1], "nearest(k) does not begin with nearest(1)"
    assert NO_KEY not in found.sources, "a row has no source"
