"""Scores through BLAS are scikit-learn's own."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.covariance import EllipticEnvelope
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from activecover.learners._scores import score


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
    ours, theirs = score(detector, points), detector.score_samples(points)
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7 * np.abs(theirs).max())
    assert spearmanr(ours, theirs).statistic > 0.9999


def test_a_detector_without_score_samples_and_one_that_gives_nan():
    class Odd:
        def decision_function(self, points):
            return np.where(points[:, 0] > 0, np.nan, points[:, 0])

    assert score(Odd(), np.array([[1.0], [-2.0]])).tolist() == [-np.inf, -2.0]
    outlier = LocalOutlierFactor(novelty=True, n_neighbors=2).fit(np.eye(5))
    assert score(outlier, np.eye(5)).shape == (5,)
