"""Sums and products read from stored rows are those of the rows as numbers, in every kind of pool."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from activecover.learners._products import compressed_bits, projected, summed, vectors_of
from activecover.pool import Pool

SEEDS = st.integers(0, 10**6)


def pool_of(kind, random, rows=30, columns=70):
    values = random.normal(size=(rows, columns)) * (random.random((rows, columns)) < 0.2)
    if kind == "bits":
        return Pool((values != 0).astype(np.uint8), metric="jaccard")
    return Pool(sparse.csr_array(values) if kind == "sparse" else values)


@pytest.mark.parametrize("kind", ["dense", "sparse", "bits"])
@given(seed=SEEDS)
def test_sums_and_products(kind, seed):
    random = np.random.default_rng(seed)
    pool = pool_of(kind, random)
    rows, weights = random.permutation(len(pool))[:11], random.normal(size=pool.dimensions)
    numbers = vectors_of(pool, rows)
    numbers = numbers.toarray() if sparse.issparse(numbers) else numbers
    np.testing.assert_allclose(projected(pool, rows, weights), numbers @ weights, atol=1e-12)
    np.testing.assert_allclose(summed(pool, rows), numbers.sum(axis=0), atol=1e-12)
    assert projected(pool, rows[:0], weights).tolist() == []
    assert not summed(pool, rows[:0]).any()


@given(seed=SEEDS)
def test_bits_in_compressed_rows(seed):
    random = np.random.default_rng(seed)
    pool = pool_of("bits", random)
    rows = random.permutation(len(pool))[:7]
    assert np.array_equal(compressed_bits(pool, rows).toarray(), vectors_of(pool, rows))
