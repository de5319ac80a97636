"""The mixture of models: what it finds, what it remembers, and what it says about the rest."""

import numpy as np
import pytest
from scipy import sparse

from activecover.errors import InputError
from activecover.intake import Table, make_pool
from activecover.learners import Labels, Mixture, NearestWhitened, Passive, learner_from, learner_settings
from activecover.pool import Pool
from activecover.simulate import simulate_one
from activecover.testing import check_learner

TOPICS = {
    "cats": "cat kitten fur paw whisker purr",
    "boats": "boat sail anchor harbour mast tide",
    "bread": "bread flour oven yeast crust dough",
}


def texts(rows=240, seed=0):
    """Texts about three things, and which are about cats: one in eight."""
    random = np.random.default_rng(seed)
    about = random.choice(["cats", "boats", "bread"], rows, p=[0.125, 0.4375, 0.4375])
    common = ["the", "one", "with", "some", "very", "old", "thing"]
    written = [" ".join([*random.choice(TOPICS[one].split(), 4), *random.choice(common, 6)]) for one in about.tolist()]
    return make_pool(Table.of({"text": written}), embed="tfidf:text").pool, about == "cats"


def clusters(rows=300, columns=8, seed=1):
    random = np.random.default_rng(seed)
    kind = random.integers(0, 6, rows)
    points = 2.0 * random.normal(size=(6, columns))[kind] + random.normal(size=(rows, columns))
    return points, kind == 0


def pool_of(kind):
    points, truth = clusters(columns=8 if kind == "dense" else 64)
    if kind == "dense":
        return Pool(points), truth
    if kind == "sparse":
        return Pool(sparse.csr_array(np.maximum(points - 1, 0.01)), metric="cosine"), truth
    return Pool((points > 1).astype(np.uint8) | (np.arange(64) == 0), metric="jaccard"), truth


def walk(learner, truth, steps):
    """Ask one row at a time; how many positives came."""
    found = 0
    for number in range(steps):
        row = learner.propose(1).rows
        learner.tell(Labels.of([number + 1000], row, truth[row], False))
        found += int(truth[row[0]])
    return found


@pytest.mark.parametrize("kind", ["dense", "sparse", "bits"])
def test_it_finds_most_positives_where_chance_finds_few(kind):
    pool, truth = pool_of(kind)
    start = [int(np.flatnonzero(truth)[0])]
    budget = int(1.6 * truth.sum())
    found = {}
    for learner in (Mixture(explore=start, n_estimators=10), Passive(explore=start)):
        trace = simulate_one(pool, truth, learner, batch=1, budget=budget)
        found[type(learner).__name__] = int(trace.positive.sum())
    assert found["Mixture"] > 0.7 * truth.sum() > 2 * found["Passive"]


def test_the_contract_with_rows_drawn_first():
    check_learner(lambda truth: Mixture(explore=8, n_estimators=2, growth=0.3), rounds=1)


@pytest.mark.parametrize("kind", ["sparse", "bits"])
def test_labels_at_once_give_the_order_that_labels_one_by_one_give(kind):
    pool, truth = pool_of(kind)
    first = Mixture(explore=[int(truth.argmax())], n_estimators=3).begin(pool, seed=3)
    walk(first, truth, 30)
    again = first.replace().begin(pool, seed=3)
    again.tell(first.state_.labels)
    assert again.propose(300).rows.tolist() == first.propose(300).rows.tolist()
    assert again.weights(again.state_) == first.weights(first.state_)
    assert again.expected_positives(again.state_) == first.expected_positives(first.state_)


def test_a_model_that_knows_nothing_loses_its_weight():
    """Positives lie around the middle of one column among others that are noise: directions say nothing."""
    random = np.random.default_rng(0)
    points = random.normal(size=(500, 12))
    truth = np.abs(points[:, 0]) > 1.8
    learner = Mixture(explore=np.flatnonzero(truth)[:2].tolist(), rate=1.0, share=0.01).begin(Pool(points))
    walk(learner, truth, 90)
    weights = learner.weights(learner.state_)
    assert sum(weights.values()) == pytest.approx(1)
    assert weights["trees"] > 2 * weights["nearest"]
    still = learner.replace(rate=0.0, share=0.0).begin(Pool(points))
    still.tell(learner.state_.labels)
    assert len({round(weight, 9) for weight in still.weights(still.state_).values()}) == 1


def test_probabilities_are_in_order_and_add_up_to_about_what_is_left():
    pool, truth = pool_of("dense")
    learner = Mixture(explore=[int(truth.argmax())], n_estimators=20).begin(pool)
    walk(learner, truth, 40)
    early = learner.expected_positives(learner.state_)
    rows = learner.propose(300).rows
    chances = learner.probabilities(learner.state_, rows)
    assert ((chances > 0) & (chances < 1)).all()
    assert (np.diff(chances) <= 0).all()
    walk(learner, truth, 120)
    assert learner.expected_positives(learner.state_) < early


def test_a_question_in_words_comes_before_any_label():
    pool, truth = texts()
    learner = Mixture(question="Which cats purr, and have a paw?").begin(pool)
    first = learner.propose(8).rows
    assert truth[first].sum() >= 4
    plain = Mixture().begin(pool).propose(8)
    assert plain.explored == 8
    # One in four is drawn at random until the question has paid.
    lots = learner.exploration_.order()
    assert first[3] == next(row for row in lots if row not in first[:3])
    row = first[:1]
    learner.tell(Labels.of([0], row, [True], False))
    learner.tell(Labels.of([1], np.flatnonzero(~truth)[:1], [False], False))
    assert truth[learner.propose(8).rows].sum() >= 6


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Mixture(question="cats").begin(Pool([[0.0], [1.0]])), "needs a pool of words"),
        (lambda: Mixture(question="zebra").begin(texts()[0]), "no text of the pool has a word of the question"),
    ],
)
def test_a_question_that_cannot_be_used_is_refused(make, what):
    with pytest.raises(InputError, match=what):
        make()


@pytest.mark.parametrize("kind", ["dense", "sparse", "bits"])
def test_positives_from_outside_are_enough_to_begin(kind):
    pool, truth = pool_of(kind)
    known = pool.take(np.flatnonzero(truth)[:3])
    learner = Mixture(n_estimators=5).begin(pool.without(np.flatnonzero(truth)[:3]), outside=known)
    proposal = learner.propose(10)
    assert proposal.explored == 0
    assert truth[proposal.rows].mean() > truth.mean()


def test_an_erased_row_is_learnt_from_no_more():
    pool, truth = pool_of("dense")
    learner = Mixture(explore=[int(truth.argmax())], n_estimators=3).begin(pool)
    walk(learner, truth, 20)
    gone = learner.state_.labels.rows[::3]
    labels = learner.state_.labels
    pool.withdraw(gone)
    after = learner.propose(20).rows
    fresh = learner.replace().begin(pool)
    fresh.tell(labels)
    assert fresh.propose(20).rows.tolist() == after.tolist()


def test_a_log_builds_it_again():
    learner = Mixture(question="cats", growth=0.2, n_estimators=7)
    again = learner_from(learner_settings(learner), explore=0)
    assert repr(again) == repr(learner)


def test_positives_choose_the_space_in_which_they_lie_together():
    random = np.random.default_rng(2)
    kind = random.random(600) < 0.1
    # What tells positives apart is drowned by a column a thousand times as wide.
    spread = np.column_stack([random.normal(size=600) * 1000, np.where(kind, 6.0, 0) + random.normal(size=600)])
    start = np.flatnonzero(kind)[:4].tolist()
    labels = {
        name: simulate_one(Pool(spread), kind, learner, batch=1).rows.size
        for name, learner in {
            "chosen": NearestWhitened(explore=start),
            "chance": Passive(explore=start),
        }.items()
    }
    assert labels["chosen"] < 0.5 * labels["chance"]
    # On a ring what counts is the distance from the middle, which a cosine leaves out.
    angles, radius = random.uniform(0, 2 * np.pi, 600), np.where(kind, 1.0, 5.0) + 0.1 * random.normal(size=600)
    ring = Pool(np.column_stack([radius * np.cos(angles), radius * np.sin(angles)]))
    learner = NearestWhitened().begin(ring)
    learner.tell(Labels.of(range(4), start, [True] * 4, True))
    assert kind[learner.propose(20).rows].all()
