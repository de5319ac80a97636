"""The frontier over bits: exact shares, whatever the counts rule out."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from activecover.errors import InputError
from activecover.frontier import BitFrontier, _bits_kernel, choose_frontier
from activecover.pool import PackedBits, Pool
from activecover.testing import BruteForce, check_frontier, random_bit_pool


def test_contract():
    check_frontier(BitFrontier, rounds=60, pools=random_bit_pool)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 5, 64, 100, 256]), st.integers(1, 20))
def test_same_rows_order_and_sources_as_the_definition(seed, dimensions, positives):
    random = np.random.default_rng(seed)
    bits = random.random((80, dimensions)) < random.choice([0.0, 0.05, 0.5, 1.0], (80, 1))
    pool = Pool(bits[random.integers(0, 80, 80)], metric="jaccard")
    keys = random.choice(80, positives, replace=False).tolist()
    at_once, one_by_one = BitFrontier(pool), BitFrontier(pool)
    at_once.add(keys, pool.take(keys))
    for key in random.permutation(keys).tolist():
        one_by_one.add([key], pool.take([key]))
    model = BruteForce(pool)
    model.add(keys, pool.take(keys))
    expected = model.nearest(80, set())
    for frontier in (at_once, one_by_one):
        found = frontier.nearest(80)
        assert found.rows.tolist() == [row for _, row, _ in expected]
        assert found.sources.tolist() == [key for _, _, key in expected]
        assert found.distances.tolist() == [float(apart) for apart, _, _ in expected]


def test_the_distance_is_that_of_the_textbook():
    bits = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]])
    pool = Pool(bits, metric="jaccard")
    frontier = BitFrontier(pool)
    frontier.add([0], pool.take([0]))
    assert frontier.nearest(5).distances.tolist() == [0, 0.5, 1, 1, 1]
    frontier.add([3], pool.take([3]))
    found = frontier.nearest(5)
    assert found.rows.tolist() == [0, 3, 4, 1, 2]
    assert found.distances.tolist() == [0, 0, 0, 0.5, 1]


@given(st.integers(1, 2**26), st.integers(1, 2**26), st.integers(0, 2**26), st.integers(0, 2**26))
def test_different_shares_are_different_numbers(union, other_union, apart, other_apart):
    """Up to 2**26 bits, float64 orders shares as exact fractions do."""
    a, b = Fraction(min(apart, union), union), Fraction(min(other_apart, other_union), other_union)
    x, y = min(apart, union) / union, min(other_apart, other_union) / other_union
    assert (x < y, x == y) == (a < b, a == b)


def test_the_closest_shares_of_all_are_different_numbers():
    most = 2**26
    assert (most - 2) / (most - 1) < (most - 1) / most < 1.0
    assert 1 / most < 1 / (most - 1)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40))
def test_bits_are_counted(words):
    counts = np.empty(len(words), np.int64)
    _bits_kernel.count_ones(np.array(words, np.uint64)[:, None], 0, counts)
    assert counts.tolist() == [word.bit_count() for word in words]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_many_blocks_and_threads_agree_with_numpy(threads, monkeypatch):
    monkeypatch.setenv("ACTIVECOVER_THREADS", threads)
    random = np.random.default_rng(2)
    bits = random.random((20_000, 130)) < random.choice([0.02, 0.1, 0.3], (20_000, 1))
    pool = Pool(PackedBits(np.packbits(bits, axis=1), 130), metric="jaccard")
    frontier = BitFrontier(pool)
    keys = np.sort(random.choice(20_000, 60, replace=False))
    frontier.retire(random.choice(20_000, 5_000, replace=False))
    for part in np.array_split(random.permutation(keys), 3):
        frontier.add(part, pool.take(part))
    found = frontier.nearest(20_000)
    wide = bits.astype(np.int64)
    common = wide[found.rows] @ wide[keys].T
    union = wide[found.rows].sum(1)[:, None] + wide[keys].sum(1) - common
    every = np.divide(union - common, union, out=np.zeros(union.shape), where=union > 0)
    assert (found.distances == every.min(axis=1)).all()
    assert (found.sources == keys[every.argmin(axis=1)]).all()
    assert (np.lexsort((found.rows, found.distances)) == np.arange(len(found.rows))).all()


def test_it_is_chosen_for_bits_and_for_nothing_else():
    pool = Pool(np.eye(3, dtype=bool), metric="jaccard")
    assert isinstance(choose_frontier(pool), BitFrontier)
    for name in ("exact", "tree", "pruned", "sparse"):
        with pytest.raises(
            InputError, match=f"frontier '{name}' needs a pool of kind .* but this one is 'bits': use 'auto'"
        ):
            choose_frontier(pool, name)
    with pytest.raises(InputError, match="frontier 'bits' needs a pool of kind 'bits', but this one is 'dense'"):
        choose_frontier(Pool(np.eye(3)), "bits")
