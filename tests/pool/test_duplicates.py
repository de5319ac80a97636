"""Groups of duplicates are those that a plain loop over all pairs finds, for every kind of pool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from activecover.errors import InputError
from activecover.frontier import choose_frontier
from activecover.pool import Pool, bits_set, duplicate_groups, plain_text

KINDS = pytest.mark.parametrize("kind", ["dense", "sparse", "bits"])


def make(kind: str, values: Any, **more: Any) -> Pool:
    if kind == "bits":
        return Pool(np.asarray(values) != 0, metric="jaccard", **more)
    return Pool(np.asarray(values, np.float32) if kind == "dense" else sparse.csr_array(np.asarray(values)), **more)


def distance(pool: Pool, a: int, b: int) -> float:
    """As the documentation defines it, one pair at a time."""
    if pool.kind == "bits":
        x, y = (set(bits_set(pool.vectors[row], pool.dimensions).tolist()) for row in (a, b))
        return len(x ^ y) / len(x | y) if x | y else 0.0
    if pool.kind == "sparse":
        x, y = (pool.vectors[[row]].toarray()[0].astype(np.float64) for row in (a, b))
        return float(np.sqrt(np.cumsum((x - y) ** 2)[-1]))
    x, y = (pool.vectors[row].astype(np.float64) for row in (a, b))
    return float(np.sqrt(((x - y) ** 2).sum()))


def brute_force(
    pool: Pool, contents: list[str], vectors: bool, near: float | None, groups: list[int] | None = None
) -> list[int]:
    groups = list(groups or [])
    for row in range(len(groups), len(pool)):
        groups.append(row)
        if pool.withdrawn[row]:
            continue
        before = [other for other in range(row) if not pool.withdrawn[other]]
        texts = [tuple(plain_text(pool.contents[name][r]) for name in contents) for r in range(row + 1)]
        same = [
            groups[other]
            for other in before
            if (vectors and distance(pool, row, other) == 0) or (any(texts[row]) and texts[row] == texts[other])
        ]
        firsts = [other for other in before if groups[other] == other]
        if same:
            groups[row] = min(same)
        elif near is not None and firsts:
            nearest = min(firsts, key=lambda other: (distance(pool, row, other), other))
            if distance(pool, row, nearest) <= near:
                groups[row] = nearest
    return groups


tables = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.sampled_from([0.0, -0.0, 1.0, 1.25, -2.0, 3.0]), min_size=width, max_size=width),
        min_size=1,
        max_size=14,
    )
)


@KINDS
@given(
    values=tables,
    near=st.none() | st.sampled_from([0.0, 0.25, 0.5, 0.75, 0.9]),
    vectors=st.booleans(),
    words=st.lists(st.sampled_from(["", " ", "Cat", "cat ", "dog", "d og", None]), min_size=14, max_size=14),
    erased=st.sets(st.integers(0, 13), max_size=3),
    split=st.integers(0, 14),
)
def test_groups_are_those_of_a_plain_loop(
    kind: str, values: Any, near: float | None, vectors: bool, words: Any, erased: set[int], split: int
) -> None:
    pool = make(kind, values, contents={"word": words[: len(values)]})
    pool.withdraw(np.array([row for row in erased if row < len(pool)], np.int64))
    expected = brute_force(pool, ["word"], vectors, near)
    found = duplicate_groups(pool, contents=["word"], vectors=vectors, near=near)
    assert found.tolist() == expected
    assert found.dtype == np.int64
    assert (found <= np.arange(len(pool))).all()
    assert (found[found] == found).all()
    # Rows that come later change nothing, and need only be looked at themselves.
    earlier = found[: min(split, len(pool))]
    again = duplicate_groups(pool, contents=["word"], vectors=vectors, near=near, earlier=earlier)
    assert again.tolist() == expected


@pytest.mark.parametrize("dimensions", [3, 40, 300])
@given(seed=st.integers(0, 2**32 - 1), near=st.floats(0.01, 0.6))
def test_near_duplicates_of_longer_vectors(dimensions: int, seed: int, near: float) -> None:
    random = np.random.default_rng(seed)
    centres = random.normal(size=(6, dimensions))
    noise = random.normal(size=(20, dimensions)) / np.sqrt(dimensions)
    values = centres[random.integers(6, size=20)] + noise * random.uniform(0, 0.5, size=(20, 1))
    for pool in (Pool(values, metric="cosine"), Pool(values), Pool(sparse.csr_array(np.where(values > 0, values, 0)))):
        assert duplicate_groups(pool, near=near).tolist() == brute_force(pool, [], True, near)
    bits = make("bits", values > 0.5)
    assert duplicate_groups(bits, near=near).tolist() == brute_force(bits, [], True, near)


@KINDS
def test_the_threshold_itself_is_near_enough(kind: str) -> None:
    """A distance that is exactly the threshold counts, as the frontier computes it."""
    random = np.random.default_rng(1)
    values = random.integers(0, 3, size=(40, 30)) * 0.1
    pool = make(kind, values)
    frontier = choose_frontier(pool)
    frontier.add([0], pool.take([0]))
    frontier.retire([0])
    found = frontier.nearest(39)
    for row, exactly in zip(found.rows.tolist(), found.distances.tolist(), strict=True):
        pair = make(kind, values[[0, row]])
        assert duplicate_groups(pair, near=exactly).tolist() == [0, 0]
        if exactly > 0:
            assert duplicate_groups(pair, near=np.nextafter(exactly, 0)).tolist() == [0, 1]


def test_far_from_zero_and_huge_values() -> None:
    values = np.array([[1e6], [1e6 + 0.25], [1e6 + 4], [-1e12], [-1e12]])
    assert duplicate_groups(Pool(values), near=0.5).tolist() == [0, 0, 2, 3, 3]
    values = np.array([[2000.0], [2000.25], [2004]])
    assert duplicate_groups(Pool(values), near=0.5).tolist() == [0, 0, 2]


def test_a_chain_is_not_one_group() -> None:
    pool = Pool(np.arange(10.0)[:, None])
    assert duplicate_groups(pool, near=1).tolist() == [0, 0, 2, 2, 4, 4, 6, 6, 8, 8]


def test_many_rows_take_no_table_of_pairs() -> None:
    random = np.random.default_rng(0)
    values = np.repeat(random.normal(size=(10_000, 24)), 2, axis=0)
    values[1::2] += 1e-3
    found = duplicate_groups(Pool(values), near=0.01)
    assert found.tolist() == np.repeat(np.arange(0, 20_000, 2), 2).tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"near": -1}, "near -1: give a distance from 0 and below inf"),
        ({"near": float("nan")}, "near nan: give a distance from 0"),
        ({"contents": ["x"]}, r"no content column 'x' \(columns are: none\)"),
        ({"earlier": [0, 2]}, "earlier groups: give what duplicate_groups returned"),
        ({"earlier": [0, 0, 0]}, "earlier groups"),
        ({"earlier": [0.5]}, "earlier groups"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        duplicate_groups(Pool([[0.0], [1.0]]), **settings)
    with pytest.raises(InputError, match="below 1"):
        duplicate_groups(Pool([[1], [0]], metric="jaccard"), near=1)
