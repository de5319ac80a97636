"""The check suites catch what they are there to catch."""

import numpy as np
import pytest

from activecover.errors import InputError
from activecover.frontier import ExactFrontier, Nearest
from activecover.intake import ScaledColumns, Table
from activecover.learners import ExploreCommit, Learner, ranked
from activecover.store import JsonlLog, MemoryLog
from activecover.testing import check_embedding, check_frontier, check_learner, check_log


class HighTies(ExactFrontier):
    """Ties to the higher row."""

    def nearest(self, k, without=()):
        found = super().nearest(len(self._open), without)
        order = np.lexsort((-found.rows, found.distances))[:k]
        return Nearest(found.rows[order], found.distances[order], found.sources[order])


class FloatProducts(ExactFrontier):
    """Distances from float32 products, as one would write them first."""

    def nearest(self, k, without=()):
        found = super().nearest(len(self._open), without)
        points, positives = self._pool.vectors[found.rows], self._known.vectors
        products = (points**2).sum(1)[:, None] + (positives**2).sum(1) - 2 * points @ positives.T
        distances = products.min(axis=1, initial=np.inf)
        order = np.lexsort((found.rows, distances))[:k]
        return Nearest(found.rows[order], found.distances[order], found.sources[order])


class Forgetful(ExactFrontier):
    """Removing a positive leaves its distances behind."""

    def remove(self, keys):
        kept = self._values.copy(), self._sources.copy()
        super().remove(keys)
        self._values, self._sources = kept


class NeverReopens(ExactFrontier):
    def restore(self, rows):
        pass


@pytest.mark.parametrize("broken", [HighTies, FloatProducts, Forgetful, NeverReopens])
def test_a_broken_frontier_is_caught(broken):
    with pytest.raises(AssertionError):
        check_frontier(broken, rounds=60)


class Chatty(ExploreCommit):
    """Proposing changes the state."""

    def propose(self, k, held=()):
        proposal = super().propose(k, held)
        self.closed_[proposal.rows[:1]] = True
        return proposal


class OrderBound(ExploreCommit):
    """Looks only at the positive told last."""

    def tell(self, labels):
        super().tell(labels)
        found = labels.rows[labels.positive]
        self.last_ = int(found[-1]) if len(found) else getattr(self, "last_", 0)

    def rank(self, state, k, free):
        rows = free.all()
        far = ((state.pool.vectors[rows] - state.pool.vectors[getattr(self, "last_", 0)]) ** 2).sum(axis=1)
        return ranked(rows[np.argsort(far, kind="stable")][:k])


class Nosy(ExploreCommit):
    """Reads the negatives' vectors while it says that it does not."""

    def rank(self, state, k, free):
        told = state.labels.rows[~state.labels.positive]
        rows = free.all()
        centre = state.pool.vectors[told].mean(axis=0) if len(told) else np.zeros(state.pool.dimensions)
        return ranked(rows[np.argsort(-((state.pool.vectors[rows] - centre) ** 2).sum(axis=1), kind="stable")][:k])


class NosyByTheBook(Nosy):
    """The same through the state, which refuses."""

    def rank(self, state, k, free):
        state.vectors(state.labels.rows)
        return super().rank(state, k, free)


class NoUndo(ExploreCommit):
    def untell(self, rows):
        super().untell(rows)
        self.state_.frontier(self.frontier).add(np.asarray(rows), self.pool_.take(np.asarray(rows)))


class MoreThanTheState(ExploreCommit):
    def rank(self, state, k, free):
        return Learner.rank(self, state, k, free)

    def score(self, state, rows):
        return np.asarray(rows, float) * (1 + (state is getattr(self, "state_", None)))


class Busy(ExploreCommit):
    def __init__(self, explore=10):
        super().__init__(explore)
        self.cache = {}


class Repeats(ExploreCommit):
    def rank(self, state, k, free):
        first = free.all()[:1]
        return ranked(np.repeat(first, k))


@pytest.mark.parametrize("broken", [Chatty, OrderBound, Nosy, NoUndo, Busy, Repeats, MoreThanTheState])
def test_a_broken_learner_is_caught(broken):
    with pytest.raises(AssertionError):
        check_learner(lambda truth: broken(explore=10))


def test_the_state_refuses_what_a_learner_may_not_read():
    with pytest.raises(InputError, match="closed to it"):
        check_learner(lambda truth: NosyByTheBook(explore=10))


class Neighbourly(ScaledColumns):
    """A row's vector depends on the rows beside it."""

    def transform(self, table, allocate=np.empty):
        vectors = super().transform(table, allocate)
        return vectors - vectors.mean(axis=0)


class LosesWhatItLearnt(ScaledColumns):
    def _restore(self, learnt, arrays):
        super()._restore(learnt, arrays)
        self.parts_ = self.parts_[::-1]


TABLE = Table.of({"age": ["20", "40", "?", "31"], "size": ["1", "2", "4", "9"]})


@pytest.mark.parametrize("broken", [Neighbourly, LosesWhatItLearnt])
def test_a_broken_embedding_is_caught(broken):
    check_embedding(ScaledColumns, TABLE)
    with pytest.raises(AssertionError):
        check_embedding(broken, TABLE)


class Rewrites(MemoryLog):
    def append(self, events):
        return super().append([{**event, "id": "x"} for event in events])


class TakesHalf(MemoryLog):
    def append(self, events):
        return [one for event in events for one in super(TakesHalf, self).append([event])]


@pytest.mark.parametrize("broken", [Rewrites, TakesHalf])
def test_a_broken_log_is_caught(broken):
    with pytest.raises(AssertionError):
        check_log(broken)


def test_own_logs_keep_the_contract(tmp_path):
    check_log(MemoryLog)
    check_log(lambda: JsonlLog(tmp_path / "log.jsonl"), reopen=lambda: JsonlLog(tmp_path / "log.jsonl"))
