"""Fits and scores through BLAS are scikit-learn's own."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from activecover.learners._detectors import fit, fit_each, score
from activecover.learners._svm import fit_support, support_of


@pytest.mark.parametrize(
    "detector",
    [
        OneClassSVM(nu=0.5, gamma=0.05),
        OneClassSVM(nu=0.1, gamma="scale"),
        OneClassSVM(nu=0.1, gamma=2.0**-16),
        OneClassSVM(kernel="linear", nu=0.3),
        OneClassSVM(kernel="poly", nu=0.3),
        EllipticEnvelope(random_state=0),
    ],
)
@pytest.mark.parametrize("offset", [0.0, 500.0])
def test_same_scores_as_scikit_learn(detector, offset):
    random = np.random.default_rng(0)
    positives, points = random.normal(size=(200, 20)) + offset, random.normal(size=(3000, 20)) * 1.5 + offset
    detector.fit(positives)
    theirs = detector.score_samples(points)
    is_machine = getattr(detector, "kernel", "") in ("linear", "rbf")
    ours = score(support_of(detector) if is_machine else detector, points)
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7 * np.abs(theirs).max())
    # A fit of our own ends where no step gains more than the tolerance, as libsvm's does.
    own = score(fit(clone(detector), positives), points)
    np.testing.assert_allclose(own, theirs, rtol=1e-3, atol=1e-3 * np.abs(theirs).max())
    assert spearmanr(own, theirs).statistic > 0.9999


def test_a_detector_without_score_samples_and_one_that_gives_nan():
    class Odd:
        def decision_function(self, points):
            return np.where(points[:, 0] > 0, np.nan, points[:, 0])

    assert score(Odd(), np.array([[1.0], [-2.0]])).tolist() == [-np.inf, -2.0]
    outlier = LocalOutlierFactor(novelty=True, n_neighbors=2).fit(np.eye(5))
    assert score(outlier, np.eye(5)).shape == (5,)


@pytest.mark.parametrize("count", [1, 2, 7, 300])
@pytest.mark.parametrize(
    "detector",
    [
        OneClassSVM(nu=0.5, gamma=0.05),
        OneClassSVM(nu=0.95, gamma="auto"),
        # So flat that almost all weights are good enough: libsvm's way to its own has to be gone.
        OneClassSVM(nu=0.125, gamma=2.0**-16),
        OneClassSVM(nu=2.0**-7, gamma=2.0**-10),
        OneClassSVM(kernel="linear", nu=0.3),
        OneClassSVM(nu=0.99, gamma=0.5),
    ],
)
def test_the_same_support_vectors_as_libsvm(detector, count):
    random = np.random.default_rng(count)
    points = random.exponential(size=(count, 12))
    support = fit_support(detector, points)
    libsvm = clone(detector).fit(points)
    assert np.isclose(support.weights.sum(), detector.nu * count)
    others = random.exponential(size=(500, 12))
    ours, theirs = support.score_samples(others), libsvm.score_samples(others)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3 * np.abs(theirs).max() + 1e-12)
    assert spearmanr(ours, theirs).statistic > 0.9999 or np.ptp(theirs) < 1e-9


def test_equal_points_can_be_fitted():
    points = np.ones((40, 3))
    for kernel in ("rbf", "linear"):
        detector = OneClassSVM(kernel=kernel, nu=0.5)
        np.testing.assert_allclose(
            score(fit(detector, points), points), clone(detector).fit(points).score_samples(points)
        )


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize(
    "detectors",
    [
        [EllipticEnvelope(contamination=share, random_state=3) for share in (0.5, 0.25, 0.01)],
        [IsolationForest(n_estimators=trees, random_state=3) for trees in (4, 8, 16)],
        [IsolationForest(n_estimators=trees, random_state=3) for trees in (16, 4, 8)],
        [IsolationForest(n_estimators=trees, contamination=0.1, random_state=3) for trees in (4, 8)],
        [OneClassSVM(nu=nu, gamma=0.1) for nu in (0.5, 0.1)],
        # Not alike: nothing is shared.
        [EllipticEnvelope(support_fraction=share, random_state=3) for share in (0.9, 0.7)],
    ],
)
def test_what_is_shared_between_settings_changes_nothing(detectors, count):
    random = np.random.default_rng(1)
    positives, points = random.normal(size=(count, 5)), random.normal(size=(200, 5)) * 2
    for detector, fitted in zip(detectors, fit_each([clone(one) for one in detectors], positives), strict=True):
        alone = clone(detector).fit(positives)
        assert np.array_equal(fitted.score_samples(points), alone.score_samples(points))
        assert np.array_equal(fitted.predict(points), alone.predict(points))


def test_settings_that_cannot_be_fitted():
    one = np.zeros((1, 3))
    assert list(fit_each([EllipticEnvelope(contamination=0.1 * share, random_state=0) for share in (1, 2)], one)) == [
        None,
        None,
    ]
    assert list(fit_each([EllipticEnvelope(contamination=0.1, support_fraction=0.5)], one)) == [None]
