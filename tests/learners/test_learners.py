"""Every registered learner keeps the contract, and does what its name says."""

import numpy as np
import pytest
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from activecover.errors import InputError
from activecover.learners import (
    LEARNERS,
    Auto,
    Blend,
    ClassifierLearner,
    Contrast,
    DensityCommit,
    EfficientSearch,
    Exploration,
    ExploreCommit,
    KnnPosterior,
    Labels,
    Linear,
    LocalContrast,
    Mixture,
    NearestWhitened,
    Offline,
    OneClass,
    Optimal,
    Passive,
    Rocchio,
    SpreadCommit,
    SpreadPosterior,
    make_learner,
    stratified_sample,
)
from activecover.pool import Pool
from activecover.simulate import simulate, simulate_one
from activecover.testing import check_learner

SMALL = {
    "passive": lambda truth: Passive(explore=10),
    "optimal": lambda truth: Optimal(truth),
    "offline": lambda truth: Offline(explore=10),
    "explore-commit": lambda truth: ExploreCommit(explore=10),
    "offline-linear-svm": lambda truth: OneClass(OneClassSVM(kernel="linear"), {"nu": [0.5, 0.1]}, False, 20),
    "active-linear-svm": lambda truth: OneClass(OneClassSVM(kernel="linear"), {"nu": [0.5, 0.1]}, True, 20),
    "offline-rbf-svm": lambda truth: OneClass(OneClassSVM(), {"nu": [0.5], "gamma": [0.1, 1.0]}, False, 20),
    "active-rbf-svm": lambda truth: OneClass(OneClassSVM(), {"nu": [0.5], "gamma": [0.1, 1.0]}, True, 20),
    "offline-isolation-forest": lambda truth: OneClass(IsolationForest(), {"n_estimators": [2, 4]}, False, 20),
    "active-isolation-forest": lambda truth: OneClass(IsolationForest(), {"n_estimators": [2, 4]}, True, 20),
    "offline-robust-covariance": lambda truth: OneClass(EllipticEnvelope(), {"contamination": [0.1]}, False, 20),
    "active-robust-covariance": lambda truth: OneClass(EllipticEnvelope(), {"contamination": [0.1]}, True, 20),
    "density-commit": lambda truth: DensityCommit(explore=10),
    "spread-commit": lambda truth: SpreadCommit(explore=10, n_neighbors=5),
    "contrast": lambda truth: Contrast(explore=10),
    "local-contrast": lambda truth: LocalContrast(explore=10),
    "knn-posterior": lambda truth: KnnPosterior(explore=10, n_neighbors=9),
    "spread-posterior": lambda truth: SpreadPosterior(explore=10, n_neighbors=5),
    "rocchio": lambda truth: Rocchio(explore=10),
    "linear": lambda truth: Linear(explore=10),
    "blend": lambda truth: Blend(explore=10),
    "logistic": lambda truth: ClassifierLearner(LogisticRegression(), explore=10),
    "ens": lambda truth: EfficientSearch(explore=10, n_neighbors=8, horizon=5),
    "nearest-whitened": lambda truth: NearestWhitened(),
    "mixture": lambda truth: Mixture(n_estimators=3),
    "auto": lambda truth: Auto(explore=10),
    "auto-positives": lambda truth: Auto(explore=10, positives_only=True),
}


def test_every_registered_learner_is_checked():
    assert set(SMALL) == {entry.name for entry in LEARNERS}


@pytest.mark.parametrize("name", SMALL)
def test_contract(name):
    cheap = not name.endswith(("forest", "covariance", "mixture"))
    check_learner(SMALL[name], rounds=4 if cheap else 1)


def test_contract_of_a_detector_of_ones_own():
    check_learner(lambda truth: OneClass(LocalOutlierFactor(n_neighbors=1, novelty=True), explore=15), rounds=2)


@pytest.mark.parametrize("name", [entry.name for entry in LEARNERS])
def test_the_registry_says_what_a_learner_learns_from(name):
    extra = {"support": [True]} if name == "optimal" else {}
    assert make_learner(name, **extra).negatives == LEARNERS[name].negatives


def test_codes_and_versions_name_the_same_learner():
    assert LEARNERS["EC"] is LEARNERS["explore-commit"] is LEARNERS["explore-commit@1"] is LEARNERS["ec"]
    with pytest.raises(InputError, match="did you mean 'explore-commit'"):
        LEARNERS["explore-comit"]
    with pytest.raises(InputError, match="this is explore-commit@1"):
        LEARNERS["explore-commit@7"]
    with pytest.raises(InputError, match="explore_more"):
        make_learner("explore-commit", explore_more=3)


def test_offline_looks_at_the_sample_only_and_explore_commit_at_all():
    pool = Pool(np.array([[0.0], [1.0], [2.1], [-1.5], [3.3]]))
    positive = np.array([True, True, True, False, True])
    offline = simulate_one(pool, positive, Offline(explore=[0]), to_the_end=True)
    committed = simulate_one(pool, positive, ExploreCommit(explore=[0]), to_the_end=True)
    assert offline.rows.tolist() == [0, 1, 3, 2, 4]
    assert committed.rows.tolist() == [0, 1, 2, 4, 3]


def test_exploration_goes_on_until_a_positive_is_found():
    pool = Pool(np.arange(200.0)[:, None])
    positive = np.arange(200) == 77
    trace = simulate_one(pool, positive, ExploreCommit(explore=5), seed=1)
    assert trace.found == 1
    assert trace.explored.all()
    order = Exploration(5, 1).begin(200).order()
    assert trace.rows.tolist() == order[: len(trace)].tolist()


def test_the_budget_ends_an_exploration_that_finds_nothing():
    trace = simulate_one(
        Pool(np.arange(200.0)[:, None]), np.arange(200) == 77, ExploreCommit(explore=5), budget=20, seed=1
    )
    assert len(trace) == 20
    assert trace.found == 0


def test_exploration_is_uniform_and_prefix_stable_under_growth():
    first = np.array([Exploration(1, seed).begin(10).order()[0] for seed in range(3000)])
    counts = np.bincount(first, minlength=10)
    assert (abs(counts - 300) < 5 * np.sqrt(270)).all()
    small = Exploration(100, 3).begin(100).order()
    large = Exploration(100, 3).begin(150).order()
    assert large[large < 100].tolist() == small.tolist()


def test_stratified_sample_is_proportional_and_random():
    strata = np.repeat(["a", "b", "c"], [500, 300, 200])
    for seed in range(20):
        rows = stratified_sample(strata, 100, seed)
        assert np.unique(strata[rows], return_counts=True)[1].tolist() == [50, 30, 20]
        assert len(set(rows.tolist())) == 100
    assert stratified_sample(strata, 100, 0).tolist() != stratified_sample(strata, 100, 1).tolist()
    # Equal remainders: no class is favoured by its name.
    extra = [stratified_sample(np.repeat(list("abcd"), 25), 6, s) for s in range(400)]
    doubled = np.bincount([c for rows in extra for c in np.flatnonzero(np.bincount(rows // 25, minlength=4) == 2)])
    assert (abs(doubled - 200) < 60).all()


@pytest.mark.parametrize("explore", [-1, [0, 0], [99], [-1]])
def test_impossible_exploration_is_refused(explore):
    with pytest.raises(InputError):
        ExploreCommit(explore=explore).begin(Pool(np.eye(5)))


def test_known_positives_from_outside_replace_exploration():
    pool = Pool(np.arange(10.0)[:, None])
    learner = ExploreCommit(explore=0).begin(pool, outside=pool.encode([[7.2]]))
    proposal = learner.propose(3)
    assert proposal.rows.tolist() == [7, 8, 6]
    assert proposal.nearest.tolist() == [-1, -1, -1]
    assert proposal.explored == 0


def test_too_few_positives_to_tune_is_reported_and_the_run_goes_on():
    random = np.random.default_rng(0)
    pool = Pool(random.normal(size=(60, 2)))
    positive = np.zeros(60, bool)
    positive[[3, 9]] = True
    result = simulate(pool, positive, OneClass(OneClassSVM(), {"nu": [0.5]}, False, [3, 5, 6, 7]), batch=10)
    trace = result.traces[0]
    assert "tuning needs at least 2" in trace.unavailable
    assert trace.found == 2
    assert result.summary()["auc"] is None
    assert result.summary()["available"] is False


def test_a_detector_that_cannot_be_fitted_is_reported():
    class Stubborn(OneClassSVM):
        def fit(self, X, y=None):
            raise ValueError("singular\nmatrix")

    trace = simulate_one(Pool(np.eye(8)), np.arange(8) < 4, OneClass(Stubborn(), None, True, [0, 1, 5]))
    assert trace.unavailable == "Stubborn cannot be fitted to 2 positive(s): singular"


def test_tuning_picks_the_setting_that_separates_the_sample():
    random = np.random.default_rng(1)
    points = np.concatenate([random.normal(0, 0.1, (30, 2)), random.normal(3, 1, (70, 2))])
    learner = OneClass(OneClassSVM(), {"nu": [0.1], "gamma": [1e-6, 1.0]}, True, list(range(0, 100, 3)))
    learner.begin(Pool(points), seed=0)
    rows = np.arange(0, 100, 3)
    learner.tell(Labels.of(np.arange(len(rows)), rows, rows < 30, True))
    learner.propose(1)
    assert learner._best_parameters(learner.state_, learner._knowledge(learner.state_))["gamma"] == 1.0


def test_telling_twice_or_taking_back_what_was_never_told_is_refused():
    learner = ExploreCommit(explore=0).begin(Pool(np.eye(4)))
    learner.tell(Labels.of([0], [1], [True], True))
    with pytest.raises(InputError, match="settled already"):
        learner.tell(Labels.of([1], [1], [True], True))
    with pytest.raises(InputError, match="not settled"):
        learner.untell([2])


def test_what_follows_a_stratified_sample_does_not_repeat_it():
    strata = np.repeat(np.arange(10), 2000)
    near = []
    for seed in range(10):
        sample = stratified_sample(strata, 100, seed)
        following = Exploration(sample.tolist(), seed).begin(20_000).order()[100:200]
        near.append(np.mean([np.isin(following + shift, sample).mean() for shift in range(-30, 31)]))
    assert np.mean(near) < 0.02  # by chance 0.005


def test_labels_told_at_once_are_folded_in_the_order_asked():
    folded = []

    class Ordered(ExploreCommit):
        ordered = True

        def _fold(self, labels):
            folded.append(labels.rows.tolist())
            super()._fold(labels)

    learner = Ordered(0).begin(Pool(np.eye(10)))
    learner.tell(Labels.of([2, 0, 1], [7, 3, 5], [True, False, True], False))
    assert folded[-1] == [3, 5, 7]
    with pytest.raises(InputError, match="outside the pool"):
        learner.tell(Labels.of([4, 5], [1, 99], [True, True], False))
    assert not learner.closed_[1]
