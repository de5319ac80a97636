"""auto@5 does what it says: until its successor takes its place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from activecover.errors import InputError
from activecover.graph import shared_graph
from activecover.learners import Auto, Labels, ThinkAhead, make_learner
from activecover.learners._auto5 import _auto as portfolio
from activecover.learners._auto5 import _survey as survey
from activecover.learners._auto5._ground import balanced_ground
from activecover.learners._auto5._rocchio import Rocchio
from activecover.pool import Pool
from activecover.simulate import simulate_one
from activecover.testing import check_learner

SEEDS = st.integers(0, 10**6)


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


def test_large_pools_have_no_graph(monkeypatch):
    monkeypatch.setattr("activecover.graph._graph.MOST_ROWS", 30)
    monkeypatch.setattr("activecover.graph._graph.SAMPLE_ROWS", 20)
    points = np.random.default_rng(11).integers(-4, 5, size=(40, 3)).astype(np.float32)
    pool = Pool(points)
    pool.extend(points[:5] + 0.5)
    for learner in (Auto(explore=10), Auto(explore=10, positives_only=True)):
        learner.begin(pool)
        assert len(learner.propose(12)) == 12
    assert "knn-posterior" not in Auto(explore=0).begin(pool).names_
    check_learner(lambda truth: Auto(explore=10, positives_only=True), rounds=1)


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
    trace = simulate_one(Pool(points), truth, Auto(explore=20), batch=10)
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


def test_contract_of_parts_of_the_portfolio():
    check_learner(lambda truth: Auto(explore=10, rules=("knn-posterior", "contrast")), rounds=1)
    check_learner(lambda truth: Auto(explore=10, positives_only=True, rules=("density-commit",)), rounds=1)


@pytest.mark.parametrize(
    ("learner", "line"),
    [
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
