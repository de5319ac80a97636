"""The learners past the paper do what they say: by brute force on small pools, and on the ways they can go wrong."""

import numpy as np
import pytest
from activecover.learners._ground import balanced_ground
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.naive_bayes import GaussianNB

from activecover.errors import InputError
from activecover.graph import NEIGHBOURS, NeighbourGraph, local_scale, shared_graph, shares_in_common
from activecover.learners import (
    Auto,
    Blend,
    ClassifierLearner,
    Contrast,
    DensityCommit,
    EfficientSearch,
    ExploreCommit,
    KnnPosterior,
    Labels,
    Linear,
    LocalContrast,
    Rocchio,
    SpreadCommit,
    SpreadPosterior,
    ThinkAhead,
    make_learner,
)
from activecover.learners import _auto as portfolio
from activecover.learners import _survey as survey
from activecover.pool import Pool
from activecover.simulate import cover
from activecover.testing import check_learner

SEEDS = st.integers(0, 10**6)
RULES = [
    DensityCommit, SpreadCommit, Contrast, LocalContrast, KnnPosterior, SpreadPosterior, Rocchio, Linear, Blend,
    EfficientSearch, Auto,
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


# The graph.


@given(SEEDS, st.integers(1, 12))
def test_graph_is_that_of_all_pairs(seed, count):
    points, *_ = scene(seed)
    graph = NeighbourGraph(count).refresh(Pool(points))
    order, far = neighbour_lists(points)
    assert graph.neighbours.tolist() == order[:, :count].tolist()
    assert np.array_equal(graph.distances, far[:, :count])


@given(SEEDS)
def test_graph_grows_as_if_it_had_been_large_at_once(seed):
    points, *_ = scene(seed)
    pool = Pool(points[:13])
    graph = NeighbourGraph(6).refresh(pool)
    pool.extend(points[13:])
    whole = NeighbourGraph(6).refresh(Pool(points))
    graph.refresh(pool)
    assert np.array_equal(graph.neighbours, whole.neighbours)
    assert np.array_equal(graph.distances, whole.distances)


def test_graph_of_a_tiny_pool_has_empty_places():
    graph = NeighbourGraph(4).refresh(Pool([[0.0], [2.0]]))
    assert graph.neighbours.tolist() == [[1, -1, -1, -1], [0, -1, -1, -1]]
    assert graph.scale(3).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_graph_of_sparse_rows(metric):
    random = np.random.default_rng(1)
    rows = sparse.random_array((60, 30), density=0.3, rng=random, format="csr") + 0.01 * sparse.eye_array(60, 30)
    rows = sparse.csr_array(rows.toarray() + (rows.sum(axis=1) == 0)[:, None])
    pool = Pool(rows, metric=metric)
    graph = NeighbourGraph(5).refresh(pool)
    far = cdist(pool.vectors.toarray().astype(float), pool.vectors.toarray().astype(float))
    np.fill_diagonal(far, np.inf)
    np.testing.assert_allclose(graph.distances, np.sort(far, axis=1)[:, :5], atol=1e-7)


def test_graph_of_bits():
    bits = np.random.default_rng(2).random((50, 70)) < 0.3
    graph = NeighbourGraph(5).refresh(Pool(bits.astype(int), metric="jaccard"))
    far = cdist(bits, bits, "jaccard")
    np.fill_diagonal(far, np.inf)
    np.testing.assert_allclose(graph.distances, np.sort(far, axis=1)[:, :5], atol=1e-12)


def test_an_erased_row_is_wiped_out_of_the_graph_and_the_density_stays():
    points, *_ = scene(4)
    pool = Pool(points)
    before = shared_graph(pool).scale(10)
    copy = pool.without([7])
    after = shared_graph(copy)
    assert not (after.neighbours == 7).any()
    assert (after.neighbours[7] == -1).all()
    assert not np.isfinite(after.distances[7]).any()
    others = np.arange(len(points)) != 7
    assert np.array_equal(after.scale(10)[others], before[others])
    assert (shared_graph(pool).neighbours == 7).any()


@given(SEEDS)
def test_shares_of_neighbours_in_common(seed):
    points, *_ = scene(seed, rows=25)
    pool = Pool(points)
    pool.withdraw([3, 4])
    lists = shared_graph(pool).neighbours
    shares = shares_in_common(lists, 5, 10)
    for row, found in enumerate(shares):
        mine = {row, *lists[row, :10]} - {-1}
        for other, share in zip(lists[row, :5], found, strict=True):
            assert share == (len(mine & set(lists[other, :10])) / 10 if other >= 0 else 0.0)


def test_graph_refuses_pools_that_are_too_large(monkeypatch):
    monkeypatch.setattr("activecover.graph._graph.MOST_ROWS", 3)
    with pytest.raises(InputError, match="too large"):
        shared_graph(Pool(np.zeros((4, 1))))


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
    for learner in (Auto(explore=10), Auto(explore=10, positives_only=True), DensityCommit(explore=10)):
        learner.begin(pool)
        assert len(learner.propose(12)) == 12
    assert "knn-posterior" not in Auto(explore=0).begin(pool).names_
    check_learner(lambda truth: Auto(explore=10, positives_only=True), rounds=1)


# The rules, by their definitions.


@given(SEEDS, st.integers(1, 12))
def test_density_commit(seed, neighbour):
    points, known, positive = scene(seed)
    learner = told(DensityCommit(explore=0, neighbour=neighbour), points, known, positive)
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
    learner = told(KnnPosterior(explore=0, neighbours=neighbours), points, known, positive)
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
    found = told(SpreadCommit(explore=0, neighbours=5), points, known, positive).propose(len(points)).rows
    assert sorted(found.tolist()) == sorted(expected(points, known, score))
    assert (np.diff(score[found]) < 1e-13).all()


def test_spread_commit_follows_a_class_along_its_shape():
    # Two lines side by side: the end of one's own is farther than the other line, and comes first all the same.
    along = np.arange(30.0)
    points = np.concatenate([np.column_stack([along, 0 * along]), np.column_stack([along, 0 * along + 6.0])])
    learner = SpreadCommit(explore=0, neighbours=2).begin(Pool(points))
    learner.tell(Labels.of([0], [0], [True], True))
    assert sorted(learner.propose(29).rows.tolist()) == list(range(1, 30))


def test_spread_commit_forgets_what_is_erased():
    points, known, positive = scene(5)
    pool = Pool(points)
    learner = SpreadCommit(explore=0, neighbours=5).begin(pool)
    learner.tell(Labels.of(np.arange(len(known)), known, positive, True))
    before = learner.propose(len(points)).rows
    pool.withdraw(known[~positive])
    assert learner.propose(len(points)).rows.tolist() == before.tolist()
    gone = known[~positive]
    assert not np.isin(learner._weights.indices, gone).any()


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
    found = told(SpreadPosterior(explore=0, neighbours=5), points, known, positive).propose(len(points)).rows
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
        assert learner._kept_scores().max() <= 1.0


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
    trace = cover(Pool(points), truth, Linear(explore=60), batch=5)
    assert trace.found == truth.sum()
    assert len(trace.rows) < 60 + 2.5 * truth.sum()


def test_ens_with_no_future_is_the_posterior():
    points, known, positive = scene(6)
    greedy = told(EfficientSearch(explore=0, neighbours=7, horizon=1), points, known, positive)
    posterior = told(KnnPosterior(explore=0, neighbours=7), points, known, positive)
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
    learner = told(EfficientSearch(explore=0, neighbours=7, horizon=6), points, known, positive)
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
        trace = cover(pool, truth, rule(explore=15), batch=3)
        assert trace.found == 20
        assert len(trace.rows) < 90


@pytest.mark.parametrize("rule", RULES)
def test_positives_from_outside_are_enough_to_begin(rule):
    pool = Pool(np.random.default_rng(8).normal(size=(50, 3)))
    learner = rule(explore=0).begin(pool, outside=pool.encode([[0.0, 0.0, 0.0]]))
    assert len(learner.propose(5)) == 5


# The portfolio.


def walk(learner, truth, steps, batch, first=0):
    for step in range(steps):
        rows = learner.propose(batch).rows
        learner.tell(Labels.of(first + step * batch + np.arange(len(rows)), rows, truth[rows], False))
    return learner


@pytest.fixture(scope="module")
def clumps():
    random = np.random.default_rng(9)
    points = random.normal(size=(300, 4))
    points[:60] = points[:60] * 0.3 + 1.5
    order = random.permutation(300)
    return points[order].astype(np.float32), (np.arange(300) < 60)[order]


def test_auto_expects_less_of_a_rule_when_positives_have_become_rare():
    """Rows far from a rule's top say nothing of the rule, but something of the times."""
    learner = Auto(explore=[0], rules=("explore-commit", "density-commit")).begin(Pool(np.arange(200.0)[:, None]))
    learner.tell(Labels.of([0], [0], [True], True))
    before = learner.yields()
    for number, row in enumerate(range(199, 119, -1)):
        learner.tell(Labels.of([1 + number], [row], [False], False))
    assert all(learner.yields()[name] < 0.6 * before[name] for name in before)


@pytest.mark.parametrize("positives_only", [False, True])
def test_auto_says_why(clumps, positives_only):
    points, truth = clumps
    seen = np.flatnonzero(truth)[:2].tolist() + np.flatnonzero(~truth)[:2].tolist()
    learner = Auto(explore=seen, positives_only=positives_only).begin(Pool(points))
    learner.tell(Labels.of(range(4), seen, truth[seen], True))
    proposal = walk(learner, truth, 6, 5, 4).propose(20)
    assert len(proposal.reasons) == 20
    for reason in proposal.reasons:
        assert reason.startswith(("a random row", "looking around")) or (
            reason.split(",")[0] in learner.names_ and "rank " in reason and reason.endswith(" %")
        )
    assert set(learner.yields()) == set(learner.names_)


def test_auto_decides_by_what_it_expected_far_down_a_batch(clumps):
    points, truth = clumps
    learner = walk(Auto(explore=20).begin(Pool(points)), truth, 6, 10)
    means, labels = learner._far_down(np.array([0, 10**9]))
    assert np.array_equal(means[0], learner._yields()[0])
    assert np.array_equal(labels[0], learner._yields()[1])
    np.testing.assert_allclose(means[1] / means[1].max(), learner._expected / learner._expected.max(), rtol=1e-6)
    # Where it was not tried, the place does not matter.
    other = Auto(explore=20).begin(Pool(sparse.csr_array(points)))
    assert (np.diff(other._far_down(np.array([0, 10**9]))[0], axis=0) == 0).all()


def test_auto_turns_to_the_rule_that_pays(clumps, monkeypatch):
    """A rule that is always right gets nearly all questions within a few batches."""
    points, truth = clumps

    class Oracle(Rocchio):
        def _scores(self, rows):
            return truth[rows] + 0.0

    class Fool(Rocchio):
        def _scores(self, rows):
            return -(truth[rows] + 0.0)

    monkeypatch.setattr(portfolio, "RULES", {"oracle": Oracle, "fool": Fool})
    learner = Auto(explore=[int(np.flatnonzero(truth)[0])], rules=("fool", "oracle")).begin(Pool(points))
    learner.tell(Labels.of([0], learner.explore, [True], True))
    walk(learner, truth, 5, 10, 1)
    reasons = learner.propose(15).reasons
    assert sum(reason.startswith("oracle") for reason in reasons) >= 13
    assert learner.yields()["oracle"] > 0.5 > 0.4 > learner.yields()["fool"]


@pytest.mark.parametrize("positives_only", [False, True])
def test_auto_after_undo_replay_and_late_labels(clumps, positives_only):
    points, truth = clumps

    def fresh():
        return Auto(explore=12, positives_only=positives_only).begin(Pool(points), seed=4)

    learner = fresh()
    labels = []
    for step in range(12):
        proposal = learner.propose(5)
        numbers = 5 * step + np.arange(5)
        labels.append(Labels.of(numbers, proposal.rows, truth[proposal.rows], np.arange(5) < proposal.explored))
        learner.tell(labels[-1])
    order = learner.propose(50).rows.tolist()
    # The last label is taken back and told again, on the quick way.
    last = labels[-1].take([4])
    before = [*labels[:-1], labels[-1].take([0, 1, 2, 3])]
    learner.untell(last.rows)
    replayed = fresh()
    for part in before:
        replayed.tell(part)
    assert learner.propose(50).rows.tolist() == replayed.propose(50).rows.tolist()
    learner.tell(last)
    assert learner.propose(50).rows.tolist() == order
    # Late: a batch in the middle comes last.
    late = fresh()
    for part in [*labels[:5], *labels[6:], labels[5]]:
        late.tell(part)
    assert late.propose(50).rows.tolist() == order


@pytest.mark.parametrize("positives_only", [False, True])
def test_auto_thinks_ahead(clumps, positives_only):
    points, truth = clumps
    plain = Auto(explore=10, positives_only=positives_only).begin(Pool(points))
    ahead = ThinkAhead(Auto(explore=10, positives_only=positives_only).begin(Pool(points)))
    for number in range(30):
        row = plain.propose(1).rows
        assert ahead.propose(1).rows.tolist() == row.tolist()
        ahead.think(number, int(row[0]), sampled=number < 10, held=[])
        for learner in (plain, ahead):
            learner.tell(Labels.of([number], row, truth[row], number < 10))
    ahead.close()


def test_auto_finds_all_and_keeps_a_share_for_chance(clumps):
    points, truth = clumps
    trace = cover(Pool(points), truth, Auto(explore=20), batch=10)
    assert trace.found == truth.sum()
    learner = Auto(explore=0).begin(Pool(points))
    learner.tell(Labels.of([0], [int(np.flatnonzero(truth)[0])], [True], True))
    lots = learner._draw(np.arange(20_000), learner._yields())
    share = (lots == len(learner.rules_)).mean()
    assert 0.5 * portfolio.EXPLORATION / 8 < share < 2 * portfolio.EXPLORATION / 8
    again = learner._draw(np.arange(500, 510), learner._yields())
    assert lots[500:510].tolist() == again.tolist()


@given(SEEDS)
def test_a_survey_takes_the_row_that_is_worth_most(seed):
    """The lazy heap gives what counting anew for every row would."""
    random = np.random.default_rng(seed)
    graph = shared_graph(Pool(random.normal(size=(120, 2)).astype(np.float32)))
    lists = graph.neighbours[:, : survey.REACH]
    free = random.permutation(120)[:90]
    looked_at, worth = np.setdiff1d(np.arange(120), free), random.random(90)
    around = survey.Survey(graph, looked_at, free, worth)
    covered = np.zeros(120, bool)
    covered[looked_at], covered[lists[looked_at]] = True, True
    left = dict(zip(free.tolist(), worth.tolist(), strict=True))
    for turn in range(90):
        # Every third row is taken by somebody else.
        gains = {row: value * (~covered[lists[row]]).sum() for row, value in left.items()}
        row = next(iter(left)) if turn % 3 == 2 else max(gains, key=lambda one: gains[one])
        if turn % 3 == 2:
            around.look(row)
        else:
            assert around.next() == row
        del left[row]
        covered[row], covered[lists[row]] = True, True


def test_auto_looks_around_in_batches_that_are_larger_than_what_is_left(clumps):
    """Not one at a time, nor before the positives that can be expected."""
    points, truth = clumps
    learner = Auto(explore=20).begin(Pool(points))
    rows = learner.propose(20).rows
    learner.tell(Labels.of(range(20), rows, truth[rows], True))
    left = truth[rows].mean() * len(points) - truth[rows].sum()
    shares = learner._survey_shares(np.arange(250), np.arange(250) / (20 + np.arange(250)))
    assert (shares[: int(portfolio.CERTAIN * left)] == 0).all()
    assert (np.diff(shares[int(portfolio.CERTAIN * left) + 1 :]) > 0).all()
    assert shares[-1] > 0.5
    reasons = learner.propose(250).reasons
    assert reasons.count(portfolio.LOOKING_AROUND) > 50
    alone = Auto(explore=20, positives_only=True).begin(Pool(points))
    alone.tell(Labels.of(range(20), rows, truth[rows], True))
    assert portfolio.LOOKING_AROUND not in alone.propose(250).reasons


def test_rows_that_every_row_is_compared_with(monkeypatch):
    """Where the neighbours say nothing, the negatives of the sample and some by chance do."""
    monkeypatch.setattr("activecover.learners._contrast.LANDMARKS", 0)
    random = np.random.default_rng(12)
    points = random.normal(size=(200, 3)).astype(np.float32)
    pairs = distances(points)
    order = np.argsort(pairs[0], kind="stable")
    positive, sampled, later = int(order[0]), int(order[150]), int(order[199])
    learner = LocalContrast(explore=0).begin(Pool(points))
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


def test_balanced_ground_evens_out_half_way():
    random = np.random.default_rng(13)
    points = random.normal(size=(3000, 3)) * [100.0, 10.0, 1.0] @ np.linalg.qr(random.normal(size=(3, 3)))[0]
    pool = Pool(points)
    ground = balanced_ground(pool)
    spread = np.linalg.eigvalsh(np.cov(ground.pool.vectors.T.astype(float)))
    np.testing.assert_allclose(np.sqrt(spread[1:] / spread[:-1]), [np.sqrt(10), np.sqrt(10)], rtol=0.05)
    assert balanced_ground(pool) is ground
    pool.withdraw([5])
    assert np.isnan(balanced_ground(pool).pool.vectors[5]).all()
    pool.extend(points[:2])
    assert len(balanced_ground(pool).pool) == 3002
    for other in (Pool(points, metric="cosine"), Pool(sparse.csr_array(points))):
        assert balanced_ground(other) is None
    flat = balanced_ground(Pool(np.ones((4, 2))))
    assert np.isfinite(flat.pool.vectors).all()


def test_auto_with_positives_only_consists_of_such_rules():
    learner = make_learner("auto-positives", explore=5)
    assert learner.negatives == "none"
    learner.begin(Pool(np.random.default_rng(0).normal(size=(30, 2))))
    assert all(rule.negatives == "none" for rule in learner.rules_)


def test_contract_of_a_classifier_and_of_parts_of_the_portfolio():
    check_learner(lambda truth: ClassifierLearner(GaussianNB(), explore=10), rounds=1)
    check_learner(lambda truth: Auto(explore=10, rules=("knn-posterior", "contrast")), rounds=1)
    check_learner(lambda truth: Auto(explore=10, positives_only=True, rules=("density-commit",)), rounds=1)


# Bad input.


@pytest.mark.parametrize(
    ("learner", "line"),
    [
        (DensityCommit(neighbour=51), "neighbour 51: a graph keeps 50 per row"),
        (DensityCommit(neighbour=0), "neighbour 0: give a whole number from 1"),
        (KnnPosterior(neighbours=1.5), "neighbours 1.5: give a whole number from 1"),
        (SpreadCommit(neighbours=51), "neighbours 51: a graph keeps 50 per row"),
        (SpreadPosterior(sweeps=-1), "sweeps -1: give a whole number from 0"),
        (EfficientSearch(horizon=0), "horizon 0: give a whole number from 1"),
        (Auto(rules=()), "give some of explore-commit"),
        (Auto(rules=("kontrast",)), "give some of explore-commit"),
        (Auto(rules=("rocchio", "rocchio")), "each once"),
        (Auto(rules=("rocchio",), positives_only=True), "not all of them learn from positives only"),
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


@pytest.mark.parametrize("outside", [0, 2])
def test_auto_says_how_far_the_nearest_positive_is_in_the_pool(outside):
    random = np.random.default_rng(8)
    # Directions of very different spread: distances in the balanced space are others.
    points = (random.normal(size=(300, 4)) * [50.0, 5.0, 1.0, 0.2]).astype(np.float32)
    pool = Pool(points)
    known = points[:outside] + np.float32(0.5)
    learner = Auto(explore=0).begin(pool, outside=known if outside else None)
    learner.tell(Labels.of(np.arange(40), np.arange(40), np.arange(40) % 4 == 0, True))
    found = learner.propose(60)
    ends = np.array([points[key] if key >= 0 else known[-1 - key] for key in found.nearest.tolist()])
    np.testing.assert_allclose(found.distances, np.linalg.norm(points[found.rows] - ends, axis=1), rtol=1e-5)
