"""Sums in a fixed order, and vectors that do not depend on the kernels of a BLAS."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from activecover.lab.datasets import load_letters
from activecover.lab.grid import prepare_trial, run_trial
from activecover.lab.networks._arithmetic import exponential, product

#: Of the vectors of run 0 on Letters, wherever they are made.
VECTORS = "abe8fa09"
SHOW = """
import hashlib
from activecover.lab.grid import prepare_trial
from activecover.lab.datasets import load_letters
print(hashlib.sha256(prepare_trial(load_letters(), "A", 0).pool.vectors.tobytes()).hexdigest())
"""


def in_order(left, right):
    total = np.zeros((len(left), right.shape[1]), left.dtype)
    for k in range(left.shape[1]):
        total = total + left[:, k, None] * right[k]
    return total


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_adds_its_terms_in_order(kind, transposed):
    random = np.random.default_rng(0)
    left, right = random.normal(size=(37, 131)).astype(kind), random.normal(size=(131, 29)).astype(kind)
    if transposed:
        left, right = np.asfortranarray(left), np.asfortranarray(right)
    found = product(left, right)
    assert found.dtype == kind
    assert found.tobytes() == in_order(left, right).tobytes()


def test_the_exponential_is_right_to_fifteen_digits():
    powers = np.concatenate([np.linspace(-50, 5, 10_001), [0.0]])
    assert np.abs(exponential(powers) / np.exp(powers) - 1).max() < 1e-15
    assert exponential(np.array([0.0]))[0] == 1.0
    assert 0 <= exponential(np.array([-1e6]))[0] < 1e-300


@pytest.mark.parametrize("kernels", ["", "Prescott", "Haswell"])
def test_vectors_are_the_same_whichever_kernels_blas_chooses(kernels):
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernels}
    done = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout[:8] == VECTORS


def test_a_forest_asks_in_the_same_order_as_on_other_machines():
    # Its trees differ from their roots on where a single comparison does, so that this is the first to notice.
    trace = run_trial(prepare_trial(load_letters(), "A", 0), "A", "A-IF")
    assert hashlib.sha256(trace.rows.astype("<i8").tobytes()).hexdigest()[:8] == "c6b618b1"
