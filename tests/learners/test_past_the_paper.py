"""The learners past the paper do what they say: by brute force on small pools, and on the ways they can go wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.naive_bayes import GaussianNB

from activecover.errors import InputError
from activecover.graph import NEIGHBOURS, local_scale, weights
from activecover.learners import (
    ClassifierLearner,
    Contrast,
    DensityCommit,
    EfficientSearch,
    ExploreCommit,
    KnnPosterior,
    Labels,
    Linear,
    LocalContrast,
    Logistic,
    Rocchio,
    SpreadCommit,
    SpreadPosterior,
)
from activecover.pool import Pool
from activecover.simulate import simulate_one
from activecover.testing import check_learner

SEEDS = st.integers(0, 10**6)
RULES = [
    DensityCommit, SpreadCommit, Contrast, LocalContrast, KnnPosterior, SpreadPosterior, Rocchio, Linear, Logistic,
    EfficientSearch,
]  # fmt: skip


def scene(seed, rows=40, dimensions=3):
    """Points with ties and copies, the labels of some of them, and a pool."""
    random = np.random.default_rng(seed)
    points = random.integers(-4, 5, size=(rows, dimensions)).astype(np.float32)
    known = random.permutation(rows)[: rows // 3]
    positive = random.random(len(known)) < 0.4
    positive[:2] = True, False
    return points, known, positive


def told(learner, points, known, positive):
    learner = learner.begin(Pool(points), seed=3)
    learner.tell(Labels.of(np.arange(len(known)), known, positive, True))
    return learner


def expected(points, known, score):
    """Open rows, the highest score first, ties by the lower row."""
    rows = np.setdiff1d(np.arange(len(points)), known)
    return rows[np.lexsort((rows, -score[rows]))].tolist()


def distances(points):
    return np.sqrt(((points[:, None].astype(float) - points[None]) ** 2).sum(-1))


def neighbour_lists(points):
    far = distances(points)
    np.fill_diagonal(far, np.inf)
    order = np.argsort(far, axis=1, kind="stable")[:, :-1]
    return order, np.take_along_axis(far, order, axis=1)


def test_large_pools_have_a_density_from_a_sample(monkeypatch):
    monkeypatch.setattr("activecover.graph._graph.MOST_ROWS", 30)
    monkeypatch.setattr("activecover.graph._graph.SAMPLE_ROWS", 20)
    points, *_ = scene(11)
    pool = Pool(points)
    scale = local_scale(pool, 3)
    far = distances(points)
    np.fill_diagonal(far, np.inf)
    # Neighbours in a sample are never nearer than those in the pool.
    assert (scale >= np.minimum(scale.max(), np.sort(far, axis=1)[:, 2]) - 1e-3).all()
    assert np.array_equal(local_scale(Pool(points), 3), scale)
    pool.extend(points[:5] + 0.5)
    assert len(local_scale(pool, 3)) == 45
    learner = DensityCommit(explore=10).begin(pool)
    assert len(learner.propose(12)) == 12


# The rules, by their definitions.


@given(SEEDS, st.integers(1, 12))
def test_density_commit(seed, neighbour):
    points, known, positive = scene(seed)
    learner = told(DensityCommit(explore=0, n_neighbors=neighbour), points, known, positive)
    unit = neighbour_lists(points)[1][:, neighbour - 1]
    unit = np.maximum(unit, 1e-3 * np.median(unit[unit > 0]))
    near = distances(points)[:, known[positive]].min(axis=1)
    assert learner.propose(len(points)).rows.tolist() == expected(points, known, -near / unit)


@given(SEEDS)
def test_contrast(seed):
    points, known, positive = scene(seed)
    far = distances(points)
    near, away = far[:, known[positive]].min(axis=1), far[:, known[~positive]].min(axis=1)
    both = near + away
    share = np.where(both > 0, near / np.where(both > 0, both, 1), 0.5)
    learner = told(Contrast(explore=0), points, known, positive)
    assert learner.propose(len(points)).rows.tolist() == expected(points, known, -share)


@given(SEEDS)
def test_local_contrast_with_all_rows_as_neighbours_is_the_contrast(seed):
    points, known, positive = scene(seed)
    local, whole = (told(rule(explore=0), points, known, positive) for rule in (LocalContrast, Contrast))
    assert len(points) <= NEIGHBOURS
    assert local.propose(99).rows.tolist() == whole.propose(99).rows.tolist()


@given(SEEDS, st.integers(1, 12))
def test_knn_posterior(seed, neighbours):
    points, known, positive = scene(seed)
    mark = np.zeros(len(points))
    mark[known] = np.where(positive, 1, -1)
    around = mark[neighbour_lists(points)[0][:, :neighbours]]
    prior = (positive.sum() + 1) / (len(known) + 2)
    score = ((around == 1).sum(axis=1) + prior) / ((around != 0).sum(axis=1) + 1)
    learner = told(KnnPosterior(explore=0, n_neighbors=neighbours), points, known, positive)
    found = learner.propose(len(points)).rows
    # Chance decides among equals: the scores must descend, and no row be lost.
    assert sorted(found.tolist()) == sorted(expected(points, known, score))
    assert (np.diff(score[found]) < 1e-8).all()


def scale_of(far, place):
    values = far[:, place - 1]
    return np.maximum(values, 1e-3 * np.median(values[values > 0]))


def weights_by_distance(points):
    """Of the five nearest neighbours, both ways."""
    order, far = neighbour_lists(points)
    scale = scale_of(far, 7)
    weights = np.zeros((len(points), len(points)))
    for row in range(len(points)):
        for place, other in enumerate(order[row, :5]):
            weights[row, other] = max(np.exp(-(far[row, place] ** 2) / (scale[row] * scale[other])), 1e-12)
    return weights + weights.T


def weights_in_common(points):
    """Of the five nearest neighbours, both ways, by those of the twenty nearest that both have."""
    order, _ = neighbour_lists(points)
    weights = np.zeros((len(points), len(points)))
    for row in range(len(points)):
        for other in order[row, :5]:
            common = {row, *order[row, :20]} & set(order[other, :20])
            weights[row, other] = max((len(common) / 20) ** 2, 1e-12)
    return weights + weights.T


@given(SEEDS)
def test_spread_commit(seed):
    points, known, positive = scene(seed)
    weights = weights_by_distance(points)
    gone = known[~positive]
    # As if the negatives had never been there.
    weights[gone], weights[:, gone] = 0.0, 0.0
    totals = weights.sum(axis=1)
    score = np.zeros(len(points))
    score[known[positive]] = 1.0
    for _ in range(40):
        score = 0.9 * (weights @ score) / np.where(totals > 0, totals, 1.0)
        score[known[positive]] = 1.0
    near, unit = distances(points)[:, known[positive]].min(axis=1), scale_of(neighbour_lists(points)[1], 10)
    score += 1e-12 * unit / (near + unit)
    found = told(SpreadCommit(explore=0, n_neighbors=5), points, known, positive).propose(len(points)).rows
    assert sorted(found.tolist()) == sorted(expected(points, known, score))
    assert (np.diff(score[found]) < 1e-13).all()


def test_spread_commit_follows_a_class_along_its_shape():
    # Two lines side by side: the end of one's own is farther than the other line, and comes first all the same.
    along = np.arange(30.0)
    points = np.concatenate([np.column_stack([along, 0 * along]), np.column_stack([along, 0 * along + 6.0])])
    learner = SpreadCommit(explore=0, n_neighbors=2).begin(Pool(points))
    learner.tell(Labels.of([0], [0], [True], True))
    assert sorted(learner.propose(29).rows.tolist()) == list(range(1, 30))


def test_spread_commit_forgets_what_is_erased():
    points, known, positive = scene(5)
    pool = Pool(points)
    learner = SpreadCommit(explore=0, n_neighbors=5).begin(pool)
    learner.tell(Labels.of(np.arange(len(known)), known, positive, True))
    before = learner.propose(len(points)).rows
    pool.withdraw(known[~positive])
    assert learner.propose(len(points)).rows.tolist() == before.tolist()
    gone = known[~positive]
    assert not np.isin(weights(learner.state_.graph, 5).indices, gone).any()


@given(SEEDS)
def test_spread_posterior(seed):
    points, known, positive = scene(seed)
    weights = weights_in_common(points)
    pairs = distances(points)
    near, away = pairs[:, known[positive]].min(axis=1), pairs[:, known[~positive]].min(axis=1)
    both = near + away
    score = np.where(both > 0, away / np.where(both > 0, both, 1), 0.5) ** 4
    score[known] = positive
    for _ in range(80):
        score = weights @ score / weights.sum(axis=1)
        score[known] = positive
    found = told(SpreadPosterior(explore=0, n_neighbors=5), points, known, positive).propose(len(points)).rows
    assert (np.diff(score[found]) < 1e-9).all()


def crowded_and_lonely():
    """A class with a crowded middle, far from the negatives, and the labels of a sample: 10 of 40 rows positive."""
    random = np.random.default_rng(3)
    points = np.concatenate([random.normal(size=(60, 2)) * 0.2, random.normal(size=(40, 2)) * 3.0])
    points = np.concatenate([points, 60.0 + random.normal(size=(300, 2))]).astype(np.float32)
    sample = np.concatenate([np.arange(3), np.arange(60, 67), np.arange(100, 130)])
    return points, Labels.of(np.arange(40), sample, sample < 100, True)


def test_spread_posterior_takes_crowded_rows_first_among_those_expected():
    points, labels = crowded_and_lonely()
    learner = SpreadPosterior(explore=0).begin(Pool(points))
    learner.tell(labels)
    rows = learner.propose(90).rows
    assert sorted(rows.tolist()) == sorted(set(range(100)) - set(labels.rows.tolist()))
    scale = scale_of(neighbour_lists(points)[1], 10)
    assert scale[rows[:40]].max() < scale[rows[60:]].min()
    # A shorter proposal begins a longer one.
    assert learner.propose(7).rows.tolist() == rows[:7].tolist()


def test_spread_posterior_expects_nothing_of_few_random_labels_or_of_known_positives():
    points, labels = crowded_and_lonely()
    few = labels.take(np.arange(0, 40, 2))
    known = Labels.of(np.where(np.arange(40) < 20, np.arange(40), -1 - np.arange(40)), *fields(labels))
    for told_labels in (few, known):
        learner = SpreadPosterior(explore=0).begin(Pool(points))
        learner.tell(told_labels)
        assert learner.all_scores(learner.state_).max() <= 1.0


def test_spread_posterior_counts_the_sample_that_is_left():
    points, labels = crowded_and_lonely()
    pool = Pool(points)
    learner = SpreadPosterior(explore=0).begin(pool)
    learner.tell(labels)
    learner.untell(labels.rows[:3])
    fresh = SpreadPosterior(explore=0).begin(pool)
    fresh.tell(labels.take(slice(3, None)))
    assert learner.propose(50).rows.tolist() == fresh.propose(50).rows.tolist()


def fields(labels):
    return labels.rows, labels.positive, labels.sampled


@given(SEEDS)
def test_rocchio(seed):
    points, known, positive = scene(seed)
    weights = points[known[positive]].mean(axis=0, dtype=float) - points[known[~positive]].mean(axis=0, dtype=float)
    found = told(Rocchio(explore=0), points, known, positive).propose(len(points)).rows
    assert (np.diff((points @ weights)[found]) < 1e-9).all()


def test_linear_finds_a_half_space():
    random = np.random.default_rng(5)
    points = random.normal(size=(400, 5))
    truth = points @ [1, -1, 0.5, 0, 0] > 1.2
    trace = simulate_one(Pool(points), truth, Linear(explore=60), batch=5)
    assert trace.found == truth.sum()
    assert len(trace.rows) < 60 + 2.5 * truth.sum()


def test_ens_with_no_future_is_the_posterior():
    points, known, positive = scene(6)
    greedy = told(EfficientSearch(explore=0, n_neighbors=7, horizon=1), points, known, positive)
    posterior = told(KnnPosterior(explore=0, n_neighbors=7), points, known, positive)
    assert greedy.propose(1).rows.tolist() == posterior.propose(1).rows.tolist()


@given(SEEDS)
def test_ens_takes_the_row_that_promises_most(seed):
    points, known, positive = scene(seed)
    lists = neighbour_lists(points)[0][:, :7]
    prior = (positive.sum() + 1) / (len(known) + 2)

    def posterior(mark):
        around = mark[lists]
        return ((around == 1).sum(axis=1) + prior) / ((around != 0).sum(axis=1) + 1)

    mark = np.zeros(len(points))
    mark[known] = np.where(positive, 1, -1)
    rows = np.flatnonzero(mark == 0)
    now, promise = posterior(mark), np.full(len(points), -np.inf)
    for row in rows:
        after = {}
        for answer in (1, -1):
            then = mark.copy()
            then[row] = answer
            after[answer] = np.sort(posterior(then)[rows[rows != row]])[::-1][:5].sum()
        promise[row] = now[row] + now[row] * after[1] + (1 - now[row]) * after[-1]
    learner = told(EfficientSearch(explore=0, n_neighbors=7, horizon=6), points, known, positive)
    assert promise[learner.propose(1).rows[0]] > promise.max() - 1e-6


# All kinds of pools.


@pytest.mark.parametrize("rule", RULES)
def test_sparse_pools_and_pools_of_bits(rule):
    random = np.random.default_rng(7)
    bits = (random.random((90, 40)) < 0.15).astype(int)
    bits[:20, :6] |= random.random((20, 6)) < 0.8
    bits[:, 39] = 1
    truth = np.arange(90) < 20
    for pool in (Pool(sparse.csr_array(bits.astype(float)), metric="cosine"), Pool(bits, metric="jaccard")):
        trace = simulate_one(pool, truth, rule(explore=15), batch=3)
        assert trace.found == 20
        assert len(trace.rows) < 90


@pytest.mark.parametrize("rule", RULES)
def test_positives_from_outside_are_enough_to_begin(rule):
    pool = Pool(np.random.default_rng(8).normal(size=(50, 3)))
    learner = rule(explore=0).begin(pool, outside=pool.encode([[0.0, 0.0, 0.0]]))
    assert len(learner.propose(5)) == 5


def test_rows_that_every_row_is_compared_with():
    """Where the neighbours say nothing, the negatives of the sample and some by chance do."""
    random = np.random.default_rng(12)
    points = random.normal(size=(200, 3)).astype(np.float32)
    pairs = distances(points)
    order = np.argsort(pairs[0], kind="stable")
    positive, sampled, later = int(order[0]), int(order[150]), int(order[199])
    learner = LocalContrast(explore=0, n_landmarks=0).begin(Pool(points))
    learner.tell(Labels.of([0, 1], [positive, sampled], [True, False], True))
    learner.tell(Labels.of([2], [later], [False], False))
    rows = np.setdiff1d(np.arange(200), [positive, sampled, later])
    beside = np.argsort(pairs[rows] + 1e9 * np.eye(200)[rows], axis=1)[:, :NEIGHBOURS]
    away = np.where(
        (beside == later).any(axis=1), np.minimum(pairs[rows, later], pairs[rows, sampled]), pairs[rows, sampled]
    )
    near = pairs[rows, positive]
    found = learner.propose(200).rows
    share = dict(zip(rows.tolist(), near / (near + away), strict=True))
    assert (np.diff([share[row] for row in found.tolist()]) > -1e-6).all()


def test_contract_of_a_classifier():
    check_learner(lambda truth: ClassifierLearner(GaussianNB(), explore=10), rounds=1)


# Bad input.


@pytest.mark.parametrize(
    ("learner", "line"),
    [
        (DensityCommit(n_neighbors=51), "n_neighbors 51: a graph keeps 50 per row"),
        (DensityCommit(n_neighbors=0), "n_neighbors 0: give a whole number from 1"),
        (KnnPosterior(n_neighbors=1.5), "n_neighbors 1.5: give a whole number from 1"),
        (SpreadCommit(n_neighbors=51), "n_neighbors 51: a graph keeps 50 per row"),
        (SpreadPosterior(max_iter=-1), "max_iter -1: give a whole number from 0"),
        (EfficientSearch(horizon=0), "horizon 0: give a whole number from 1"),
    ],
)
def test_bad_parameters_are_one_line(learner, line):
    with pytest.raises(InputError, match=line) as wrong:
        learner.begin(Pool(np.random.default_rng(0).normal(size=(20, 2))))
    assert "\n" not in str(wrong.value)


def test_ens_refuses_large_pools():
    with pytest.raises(InputError, match="up to 20,000 rows: use knn-posterior"):
        EfficientSearch().begin(Pool(np.zeros((20_001, 1))))


def test_a_classifier_without_negatives_says_so():
    learner = told(ClassifierLearner(GaussianNB(), explore=0), *scene(1)[:1], np.array([3, 4]), np.array([True, True]))
    assert "no negative is known" in learner.propose(2).unavailable


def test_the_papers_rule_is_untouched():
    points, known, positive = scene(2)
    near = distances(points)[:, known[positive]].min(axis=1)
    learner = told(ExploreCommit(explore=0), points, known, positive)
    assert learner.propose(len(points)).rows.tolist() == expected(points, known, -near)
