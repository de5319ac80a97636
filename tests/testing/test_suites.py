"""The check suites catch what they are there to catch."""

import numpy as np
import pytest

from activecover.frontier import ExactFrontier, Nearest
from activecover.learners import ExploreCommit, Labels, ranked
from activecover.store import JsonlLog, MemoryLog
from activecover.testing import check_frontier, check_learner, check_log


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

    def _counts(self, labels):
        return super()._counts(labels)[-1:]


class Nosy(ExploreCommit):
    """Reads the negatives' vectors while it says that it does not."""

    def _rank(self, k, free):
        told = [row for row, (_, positive, _) in self._told.items() if not positive]
        rows = free.all()
        centre = self.pool_.vectors[told].mean(axis=0) if told else np.zeros(self.pool_.dimensions)
        return ranked(rows[np.argsort(-((self.pool_.vectors[rows] - centre) ** 2).sum(axis=1), kind="stable")][:k])


class NoUndo(ExploreCommit):
    def _unfold(self, gone: Labels):
        self.frontier_.restore(gone.rows)


class Busy(ExploreCommit):
    def __init__(self, explore=10):
        super().__init__(explore)
        self.cache = {}


class Repeats(ExploreCommit):
    def _rank(self, k, free):
        first = free.all()[:1]
        return ranked(np.repeat(first, k))


@pytest.mark.parametrize("broken", [Chatty, OrderBound, Nosy, NoUndo, Busy, Repeats])
def test_a_broken_learner_is_caught(broken):
    with pytest.raises(AssertionError):
        check_learner(lambda truth: broken(explore=10))


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
