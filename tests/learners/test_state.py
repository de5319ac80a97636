"""The state that rules share: the same whatever way labels came, made once, and closed to forbidden negatives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from activecover.errors import InputError
from activecover.learners import Exploration, Labels, Learner, Part, SearchState, whitened
from activecover.learners._state import near_of_sample
from activecover.pool import Pool
from activecover.testing import check_learner

KINDS = ("dense", "sparse", "bits")


def pool_of(kind, rows=40, seed=0):
    random = np.random.default_rng(seed)
    if kind == "dense":
        return Pool(random.integers(-3, 4, (rows, 3)).astype(np.float32))
    bits = (random.random((rows, 24)) < 0.2).astype(int)
    bits[:, -1] = 1
    return (
        Pool(sparse.csr_array(bits.astype(float)), metric="cosine")
        if kind == "sparse"
        else Pool(bits, metric="jaccard")
    )


def some_labels(rows=40, seed=0, count=18):
    random = np.random.default_rng(seed)
    chosen = random.permutation(rows)[:count]
    positive = random.random(count) < 0.4
    positive[:2] = True, False
    return Labels.of(np.arange(count), chosen, positive, np.arange(count) < 6)


def seen(state):
    """All that a rule can read, as plain values."""
    rows = state.open_rows()
    near, far, sampled = (one.look_up(rows) for one in (state.near, state.far, near_of_sample(state)))
    first = state.frontier("auto").nearest(5)
    return [
        part.tolist()
        for part in (
            rows, near.distances, near.sources, far.distances, far.sources, sampled.distances, first.rows,
            state.marks, state.known, state.positives, state.negatives, state.truth, state.lots,
            state.labels.rows, state.labels.numbers, state.scale(4), state.closed, state.summed(state.positives),
        )
    ] + [state.has_positives, state.free().count]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learns_from", ["none", "sample", "all"])
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_the_way_of_the_labels_leaves_no_mark(kind, learns_from, seed):
    random, pool, labels = np.random.default_rng(seed), pool_of(kind, seed=seed), some_labels(seed=seed)
    at_once = SearchState(pool, learns_from=learns_from)
    at_once.tell(labels)
    expected = seen(at_once)
    other = SearchState(pool, learns_from=learns_from)
    places = random.permutation(len(labels))
    for turn, place in enumerate(places):
        if random.random() < 0.3:
            seen(other)  # parts are made in between
        other.tell(labels.take([int(place)]))
        if random.random() < 0.3:
            gone = labels.rows[random.choice(places[: turn + 1], size=min(turn + 1, 3), replace=False)]
            back = other.untell(gone)
            other.tell(back)
    assert seen(other) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_added_and_erased_are_followed(kind):
    whole, labels = pool_of(kind), some_labels(rows=25, count=12)
    if kind == "dense":
        pool = Pool(whole.vectors[:25] + whole.origin)
        if not np.array_equal(pool.origin, whole.origin):
            pytest.skip("other stored values")
        rest = whole.vectors[25:] + whole.origin
    elif kind == "sparse":
        pool, rest = Pool(whole.vectors[:25], metric="cosine"), whole.vectors[25:]
    else:
        numbers = np.unpackbits(np.ascontiguousarray(whole.vectors).view(np.uint8), axis=1, count=whole.dimensions)
        pool, rest = Pool(numbers[:25], metric="jaccard"), numbers[25:]
    order = Exploration(0, 0).begin(25)
    state = SearchState(pool, exploration=order)
    state.tell(labels)
    seen(state)
    pool.extend(rest)
    order.begin(40)
    state.extend()
    fresh = SearchState(whole)
    fresh.tell(labels)
    assert seen(state) == seen(fresh)
    for one, of in ((state, pool), (fresh, whole)):
        of.withdraw([int(labels.rows[0]), int(labels.rows[1]), 30, 31])
        one.open_rows()
    assert seen(state) == seen(fresh)
    assert not np.isin([labels.rows[0], labels.rows[1]], state.known).any()
    assert not np.isin([30, 31], state.open_rows()).any()


def test_what_may_not_be_learnt_from_is_not_there():
    labels = some_labels()
    drawn_negatives = labels.rows[~labels.positive & labels.sampled]
    for learns_from, negatives in [
        ("none", []), ("sample", sorted(drawn_negatives)), ("all", sorted(labels.rows[~labels.positive])),
    ]:  # fmt: skip
        state = SearchState(pool_of("dense"), learns_from=learns_from)
        state.tell(labels)
        assert state.negatives.tolist() == list(negatives)
        assert state.far.positives == len(negatives)
        assert (state.marks == -1).sum() == len(negatives)
        assert len(state.truth) == len(state.known)
        hidden = np.setdiff1d(labels.rows[~labels.positive], negatives)
        if len(hidden):
            with pytest.raises(InputError, match="closed to it"):
                state.vectors(hidden[:1])
        state.vectors(np.concatenate([state.known, state.open_rows()]))


def test_each_thing_is_made_once_for_all():
    state = SearchState(pool_of("dense"))
    state.tell(some_labels())
    assert state.near is state.near
    assert state.known is state.known
    near, known = state.near, state.known
    state.tell(Labels.of([99], [int(state.open_rows()[0])], [True], False))
    assert state.near is near
    assert state.known is not known
    calls = []
    for _ in range(3):
        state.kept("mine", lambda: calls.append(1))
    assert len(calls) == 1


def test_a_part_that_cannot_undo_is_made_anew():
    class Counted(Part):
        def __init__(self, state):
            self.rows = []

        def tell(self, labels):
            self.rows += labels.rows.tolist()

    state, labels = SearchState(pool_of("dense")), some_labels()
    part = state.part("counted", Counted)
    state.tell(labels)
    assert part.rows == labels.rows.tolist()
    state.untell(labels.rows[:3])
    assert state.part("counted", Counted).rows == labels.rows[3:].tolist()


def test_the_same_search_in_another_space():
    random = np.random.default_rng(3)
    pool = Pool((random.normal(size=(300, 4)) * [100.0, 1.0, 1.0, 0.01]).astype(np.float32))
    state = SearchState(pool, outside=pool.encode(np.ones((1, 4))), learns_from="none")
    labels = some_labels(300)
    state.tell(labels)
    space = state.space("whitened", whitened)
    assert space is state.space("whitened", whitened)
    assert space.labels.rows.tolist() == labels.rows.tolist()
    values = space.pool.vectors + space.pool.origin
    np.testing.assert_allclose(np.linalg.norm(values, axis=1), 1.0, rtol=1e-5)
    spread = np.linalg.eigvalsh(np.cov(values.T))
    assert spread.max() / spread.min() < 1.5
    # A label later, taken back, and an erased row.
    state.tell(Labels.of([50], [int(state.open_rows()[0])], [True], False))
    assert len(space.labels) == len(labels) + 1
    state.untell(state.labels.rows[-1:])
    assert len(space.labels) == len(labels)
    gone = int(state.open_rows()[7])
    pool.withdraw([gone])
    assert gone not in state.space("whitened", whitened).open_rows()
    assert gone not in state.open_rows()
    order = state.exploration
    pool.extend(np.ones((2, 4)))
    order.begin(302)
    state.extend()
    assert len(state.space("whitened", whitened).closed) == 302


class InTwoSpaces(Learner):
    """Near a positive in the pool and in its whitened twin."""

    negatives = "none"

    def __init__(self, explore=100):
        self.explore = explore

    def prepare(self, state):
        state.space("whitened", whitened)

    def score(self, state, rows):
        twin = state.space("whitened", whitened)
        return -state.near.look_up(rows).distances - twin.near.look_up(rows).distances


class Sequential(Learner):
    """The score of a label's row just before it came counts, so that the order of the labels matters."""

    negatives = "all"
    ordered = True

    def __init__(self, explore=100):
        self.explore = explore

    def _fold(self, labels):
        for place in range(len(labels)):
            if self.state_.has_positives:
                far = self.state_.near.look_up(labels.rows[[place]]).distances[0]
                self.state_.part("weight", lambda state: Weight()).value += far
            self.state_.tell(labels.take([place]))

    def score(self, state, rows):
        return np.sin(state.part("weight", lambda state: Weight()).value + rows)


class Weight(Part):
    def __init__(self):
        self.value = 0.0

    def tell(self, labels):
        pass


def test_learners_in_two_spaces_and_in_order_keep_the_contract():
    check_learner(lambda truth: InTwoSpaces(explore=10), rounds=2)
    check_learner(lambda truth: Sequential(explore=10), rounds=2)


def test_scores_of_the_wrong_shape_are_one_line_and_no_number_goes_last():
    class Odd(InTwoSpaces):
        def score(self, state, rows):
            return np.zeros(3)

    class Nan(InTwoSpaces):
        def score(self, state, rows):
            return np.where(rows == 3, np.nan, 0.0)

    for made in (Odd, Nan):
        learner = made(explore=0).begin(pool_of("dense"))
        learner.tell(Labels.of([0], [0], [True], True))
        if made is Odd:
            with pytest.raises(InputError, match="Odd"):
                learner.propose(1)
        else:
            assert learner.propose(40).rows[-1] == 3
