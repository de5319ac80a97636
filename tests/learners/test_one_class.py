"""One-class learners: what they are fitted to, how they are tuned, and what two of them share."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.svm import OneClassSVM

from activecover.learners import Labels, OneClass, make_learner
from activecover.learners._detectors import fit, score
from activecover.pool import Pool
from activecover.simulate import simulate_one

SAMPLE = list(range(0, 60, 3))
FOUND = [1, 2, 4, 5]


def scene(seed: int = 0) -> tuple[Pool, np.ndarray]:
    """200 rows; the first 60 are positive, and the found ones among them lie apart from the sampled ones."""
    points = np.random.default_rng(seed).normal(size=(200, 6))
    points[FOUND] += 6
    return Pool(points), np.arange(200) < 60


class Recording(OneClassSVM):
    """Notes how many points each fit was given."""

    sizes: ClassVar[list[int]] = []

    def fit(self, points, y=None, sample_weight=None):
        self.sizes.append(len(points))
        return super().fit(points, y, sample_weight)


@pytest.mark.parametrize("active", [True, False])
def test_an_active_learner_is_fitted_to_all_positives_and_an_offline_one_to_the_sample(active):
    pool, truth = scene()
    learner = OneClass(OneClassSVM(gamma=0.1), None, active, SAMPLE).begin(pool)
    learner.tell(Labels.of(np.arange(len(SAMPLE)), SAMPLE, truth[SAMPLE], True))
    learner.tell(Labels.of(np.arange(100, 100 + len(FOUND)), FOUND, truth[FOUND], False))
    fitted_to = sorted(SAMPLE + FOUND) if active else SAMPLE
    expected = score(fit(OneClassSVM(gamma=0.1), pool.take(fitted_to).astype(float)), pool.vectors.astype(float))
    rows = learner.state_.open_rows()
    np.testing.assert_allclose(learner.all_scores(learner.state_)[rows], expected[rows], rtol=1e-6)


@pytest.mark.parametrize(("positives", "fits"), [(20, [16] * 5), (3, [2] * 3)])
def test_tuning_has_five_folds_or_as_many_as_there_are_positives(positives, fits):
    pool, truth = scene()
    rows = [*SAMPLE[:positives], *range(100, 130)]
    Recording.sizes.clear()
    learner = OneClass(Recording(), {"nu": [0.1]}, explore=rows).begin(pool)
    learner.tell(Labels.of(np.arange(len(rows)), rows, truth[rows], True))
    learner.propose(1)
    assert Recording.sizes[: len(fits)] == fits


def test_the_papers_methods_are_tuned_with_five_folds():
    assert {make_learner(f"{kind}-{code}").cv for kind in "OA" for code in ("LS", "RS", "IF", "RC")} == {5}


def test_both_variants_of_a_detector_are_tuned_once_on_a_pool(monkeypatch):
    tuned = []
    tune = OneClass._tuned
    monkeypatch.setattr(OneClass, "_tuned", lambda self, *known: tuned.append(self.detector) or tune(self, *known))
    rows = [*SAMPLE, *range(100, 130)]

    def order(pool: Pool, truth: np.ndarray, method: str, seed: int = 0) -> list[int]:
        learner = make_learner(method, explore=rows)
        return simulate_one(pool, truth, learner, batch=20, batches=3, seed=seed).rows.tolist()

    alone = order(*scene(), "A-RS")
    pool, truth = scene()
    tuned.clear()
    order(pool, truth, "O-RS")
    assert order(pool, truth, "A-RS") == alone
    assert tuned == ["rbf-svm"]
    order(pool, truth, "A-LS")
    order(pool, truth, "A-RS", seed=1)
    assert tuned == ["rbf-svm", "linear-svm", "rbf-svm"]
