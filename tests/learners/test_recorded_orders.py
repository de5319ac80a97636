"""Learners ask in the orders that were recorded before their code was last rebuilt, to the last row.

``recorded_orders.json`` holds a hash of every order. To record what a learner does now (only where its order is meant
to change, under a new version): ``python tests/learners/test_recorded_orders.py [NAME …]``.
"""

import hashlib
import json
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from activecover.lab.datasets import load_letters
from activecover.learners import LEARNERS, Labels, make_learner
from activecover.pool import Pool

RECORDED = Path(__file__).with_name("recorded_orders.json")
BATCHES = (1, 1, 1, 5, 20, 1, 1, 60, 200)
ONE_CLASS = [
    f"{how}-{which}" for how in ("offline", "active") for which in ("linear-svm", "rbf-svm", "isolation-forest")
]
ENVELOPES = ["offline-robust-covariance", "active-robust-covariance"]
PAPER = ["passive", "optimal", "offline", "explore-commit"]
PAST = [
    "density-commit", "spread-commit", "contrast", "local-contrast", "knn-posterior", "spread-posterior",
    "rocchio", "linear", "blend", "logistic", "auto", "auto-positives",
]  # fmt: skip

#: Not recorded before they are finished: nothing rests on their order yet.
STILL_CHANGING = {"mixture", "nearest-whitened"}


@cache
def letters():
    data = load_letters()
    return np.asarray(data.inputs, np.float32), np.asarray(data.labels)


def some_letters(label, rows):
    points, labels = letters()
    chosen = np.random.default_rng([rows, ord(label)]).permutation(len(points))[:rows]
    return Pool(points[chosen]), labels[chosen] == label


def clusters(seed):
    random = np.random.default_rng(seed)
    kind = random.integers(0, 6, 700)
    points = random.normal(size=(6, 30))[kind] + random.normal(size=(700, 30))
    return points.astype(np.float32), kind == 0


def words(seed):
    random = np.random.default_rng(seed)
    topic = random.integers(0, 5, 400)
    shares = random.dirichlet(np.full(150, 0.1), 5)
    counts = np.stack([random.multinomial(25, shares[one]) for one in topic]).astype(np.float32)
    return Pool(sparse.csr_array(np.log1p(counts)), metric="cosine"), topic == 0


def fingerprints(seed):
    random = np.random.default_rng(seed)
    kind = random.integers(0, 5, 400)
    bits = random.random((400, 128)) < (random.random((5, 128)) ** 3)[kind]
    bits[~bits.any(axis=1), 0] = True
    return Pool(bits.astype(np.uint8), metric="jaccard"), kind == 0


def cases():
    """Name of the case, then all that it takes."""
    yield from letters_cases()
    yield from made_up_cases()


def letters_cases():
    for name in [*PAPER, *ONE_CLASS, *PAST]:
        for label in "AK":
            yield f"letters {label}, {name}", name, {}, lambda label=label: some_letters(label, 1500)
    for name in ENVELOPES:
        yield f"letters A, {name}", name, {}, lambda: some_letters("A", 400)
    yield "letters A, ens", "ens", {"horizon": 20}, lambda: some_letters("A", 400)
    for name in ["passive", "offline", "explore-commit"]:
        for label in "HQ":
            yield f"all letters {label}, {name}", name, {}, lambda label=label: some_letters(label, 20_000)


def made_up_cases():
    for name in [*PAPER, *ONE_CLASS, *PAST, "ens"]:
        for seed in (0, 1):
            yield f"clusters {seed}, {name}", name, {}, lambda seed=seed: _pooled(clusters(seed))
    for backend in ("exact", "pruned", "pruned-half", "tree"):
        yield f"clusters 2, {backend}", "explore-commit", {"frontier": backend}, lambda: _pooled(clusters(2))
    for make in (words, fingerprints):
        for name in [*PAPER, *PAST]:
            for seed in (0, 1):
                yield f"{make.__name__} {seed}, {name}", name, {}, lambda make=make, seed=seed: make(seed)
    for name in ["explore-commit", "offline", "active-rbf-svm", *PAST]:
        yield f"grown, {name}", name, {"grown": True}, lambda: _pooled(clusters(3))


def _pooled(scene):
    points, truth = scene
    return Pool(points), truth


def order_of(name, parameters, pool, truth):
    """A hash of all that a learner asks for: in batches of all sizes, with labels taken back, to the last row."""
    parameters = dict(parameters)
    grown = parameters.pop("grown", False)
    whole = pool
    outside = None
    if grown:
        vectors = np.asarray(pool.vectors) + pool.origin
        pool = Pool(vectors[:500])
        outside = pool.encode(vectors[np.flatnonzero(truth)[:2]] + np.float32(0.01))
    parameters |= {"support": truth} if name == "optimal" else {"explore": 40}
    learner = make_learner(name, **parameters).begin(pool, seed=7, outside=outside)
    heard, number = hashlib.sha256(), 0
    told = []

    def ask(k, held=()):
        nonlocal number
        proposal = learner.propose(k, held)
        rows = proposal.rows
        heard.update(rows.astype(np.int64).tobytes() + bytes([proposal.explored % 251]))
        heard.update(np.asarray(proposal.nearest, np.int64).tobytes())
        heard.update(np.round(np.nan_to_num(proposal.distances, nan=-1.0), 9).tobytes())
        return proposal

    def tell(proposal):
        nonlocal number
        rows = proposal.rows
        labels = Labels.of(number + np.arange(len(rows)), rows, truth[rows], np.arange(len(rows)) < proposal.explored)
        number += len(rows)
        learner.tell(labels)
        told.append(labels)

    for place, k in enumerate(BATCHES):
        proposal = ask(k)
        if not len(proposal):
            break
        ask(3, proposal.rows[:2])
        tell(proposal)
        if place == 5:
            part = told[4].take(slice(0, 7))
            learner.untell(part.rows)
            ask(4)
            learner.tell(part)
        if place == 6 and grown:
            pool.extend((np.asarray(whole.vectors) + whole.origin)[500:])
            learner.extend()
    while len(proposal := ask(max(50, len(whole) // 8))):
        tell(proposal)
    return heard.hexdigest()[:20]


ALL = list(cases())


@pytest.mark.parametrize("case", ALL, ids=[case[0] for case in ALL])
def test_the_order_is_the_recorded_one(case):
    title, name, parameters, scene = case
    recorded = json.loads(RECORDED.read_text())
    assert order_of(name, parameters, *scene()) == recorded[title]


def test_every_learner_is_recorded():
    assert {case[1] for case in ALL} == {entry.name for entry in LEARNERS} - STILL_CHANGING


if __name__ == "__main__":
    kept = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    for title, name, parameters, scene in ALL:
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            kept[title] = order_of(name, parameters, *scene())
            print(title, kept[title], flush=True)
    RECORDED.write_text(json.dumps(kept, indent=1) + "\n")
