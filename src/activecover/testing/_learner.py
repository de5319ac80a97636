"""The contract of learners: pure proposals from a state that is a fold over the labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import ModelUnavailableError
from activecover.learners import Exploration, Labels, Learner, SearchState
from activecover.pool import Pool

Make = Callable[[npt.NDArray[np.bool_]], Learner]


def check_learner(make: Make, *, rows: int = 60, dimensions: int = 3, rounds: int = 3, seed: int = 0) -> None:
    """Check that a learner satisfies its contract, on small random pools.

    Parameters
    ----------
    make : callable
        Builds a new learner, given the truth, which only the yardstick learners need.
    rows, dimensions, rounds : int
        Size of the pools, and their number.
    seed : int
        Seed for the pools.

    Examples
    --------
    >>> from activecover.learners import ExploreCommit
    >>> check_learner(lambda truth: ExploreCommit(explore=10), rounds=1)
    """
    for turn in range(rounds):
        scene = _Scene(make, np.random.default_rng([seed, turn]), rows, dimensions)
        _check_constructor(make(scene.truth))
        _check_whole_run(scene)
        _check_purity(scene)
        _check_fold(scene)
        _check_undo(scene)
        _check_growth(scene)
        _check_outside(scene)
        _check_privacy(scene)
        _check_score(scene)


class _Scene:
    """A pool with a cluster of positives and some duplicates, and its truth."""

    def __init__(self, make: Make, random: np.random.Generator, rows: int, dimensions: int) -> None:
        self.make, self.random = make, random
        inside = max(6, rows // 4)
        points = random.normal(size=(rows, dimensions))
        points[:inside] = points[:inside] * 0.3 + 2.0
        points[1] = points[0]
        order = random.permutation(rows)
        self.vectors = points[order].astype(np.float32)
        self.truth: npt.NDArray[np.bool_] = (np.arange(rows) < inside)[order]

    def begin(self, pool: Pool | None = None, **more: Any) -> Learner:
        return self.make(self.truth).begin(pool if pool is not None else Pool(self.vectors), seed=5, **more)

    def walk(self, learner: Learner, steps: int, batch: int = 4, first: int = 0) -> Labels:
        """Ask and tell some batches, and return the labels."""
        parts = []
        for _ in range(steps):
            proposal = learner.propose(batch)
            labels = self.answer(proposal.rows, proposal.explored, first)
            first += len(labels)
            learner.tell(labels)
            parts.append(labels)
        return _join(parts)

    def answer(self, rows: npt.NDArray[np.int64], explored: int, first: int) -> Labels:
        numbers = np.arange(first, first + len(rows))
        return Labels.of(numbers, rows, self.truth[rows], np.arange(len(rows)) < explored)


def _join(parts: list[Labels]) -> Labels:
    return Labels.of(
        np.concatenate([p.numbers for p in parts]),
        np.concatenate([p.rows for p in parts]),
        np.concatenate([p.positive for p in parts]),
        np.concatenate([p.sampled for p in parts]),
    )


def _order(learner: Learner) -> list[int]:
    return [int(row) for row in learner.propose(len(learner.pool_)).rows]


def _check_constructor(learner: Learner) -> None:
    before = dict(vars(learner).items())
    assert set(before) == set(learner.get_params()), "the constructor does more than store its parameters"
    again = learner.replace()
    assert repr(again) == repr(learner), "replace() without changes gives a different learner"
    assert learner.negatives in ("none", "sample", "all"), "negatives must be none, sample or all"


def _check_whole_run(scene: _Scene) -> None:
    learner, asked = scene.begin(), []
    while len(proposal := learner.propose(7)):
        asked += proposal.rows.tolist()
        assert len(set(asked)) == len(asked), "a row was asked for twice"
        learner.tell(scene.answer(proposal.rows, proposal.explored, len(asked)))
    assert sorted(asked) == list(range(len(scene.truth))), "some row was never asked for"


def _check_purity(scene: _Scene) -> None:
    learner, twin = scene.begin(), scene.begin()
    for step in range(5):
        proposal = learner.propose(6)
        assert learner.propose(6).rows.tolist() == proposal.rows.tolist(), "propose changed the learner"
        assert learner.propose(3).rows.tolist() == proposal.rows[:3].tolist(), "propose(3) does not begin propose(6)"
        held = proposal.rows[::2]
        without = learner.propose(6, held).rows
        assert not np.isin(without, held).any(), "a held row was proposed"
        assert twin.propose(6).rows.tolist() == proposal.rows.tolist(), (
            "the same pool, seed and labels give different proposals"
        )
        for one in (learner, twin):
            one.tell(scene.answer(proposal.rows, proposal.explored, 6 * step))
    assert len(learner.propose(10**6)) == int((~learner.closed_).sum()), (
        "with k larger than the pool, propose must return all remaining rows"
    )


def _check_fold(scene: _Scene) -> None:
    learner = scene.begin()
    labels = scene.walk(learner, 6)
    expected = _order(learner)
    at_once, one_by_one, shuffled = scene.begin(), scene.begin(), scene.begin()
    at_once.tell(labels)
    for place in range(len(labels)):
        one_by_one.tell(labels.take([place]))
    for place in scene.random.permutation(len(labels)):
        shuffled.tell(labels.take([place]))
    assert _order(at_once) == expected, "labels told at once give a different state than in batches"
    assert _order(one_by_one) == expected, "labels told one by one give a different state than in batches"
    assert _order(shuffled) == expected, "labels told in a different order give a different state"


def _check_undo(scene: _Scene) -> None:
    learner = scene.begin()
    labels = scene.walk(learner, 7)
    gone = scene.random.permutation(len(labels))[:9]
    learner.propose(5)
    learner.untell(labels.rows[gone])
    never = scene.begin()
    never.tell(labels.take(np.setdiff1d(np.arange(len(labels)), gone)))
    assert _order(learner) == _order(never), "an undone label has an effect"
    for place in gone:
        learner.tell(labels.take([int(place)]))
    again = scene.begin()
    again.tell(labels)
    assert _order(learner) == _order(again), "labels undone and told again have an effect"


def _check_growth(scene: _Scene) -> None:
    half = len(scene.vectors) // 2
    # The smaller pool is centred like the larger one, so that both store the same values.
    whole = Pool(scene.vectors)
    pool = Pool(scene.vectors[:half])
    if not np.array_equal(pool.origin, whole.origin):
        return
    learner = scene.make(scene.truth[:half]).begin(pool, seed=5)
    labels = scene.walk(learner, 3)
    pool.extend(scene.vectors[half:])
    learner.extend()
    fresh = scene.make(scene.truth[:half]).begin(whole, seed=5)
    fresh.tell(labels)
    assert _order(learner) == _order(fresh), (
        "a pool that has grown gives a different state than one that was large from the start"
    )


def _check_outside(scene: _Scene) -> None:
    pool = Pool(scene.vectors)
    seeds = pool.encode(scene.vectors[scene.truth][:2])
    learner, twin = scene.begin(pool, outside=seeds), scene.begin(pool, outside=seeds)
    scene.walk(learner, 3)
    scene.walk(twin, 3)
    assert _order(learner) == _order(twin), (
        "known positives from outside make the proposals depend on the order of calls"
    )


def _check_privacy(scene: _Scene) -> None:
    """Check that the order stays the same if negatives that must not be learnt from are erased after each batch."""
    learner = scene.begin()
    if learner.negatives == "all":
        return
    told: list[Labels] = []
    # Statistics of the whole pool are computed before anything is erased, and kept; a learner that computes none
    # gets a pool without any.
    whole = Pool(scene.vectors)
    scene.begin(whole)
    if not whole.statistics:
        whole = Pool(scene.vectors)
    for _ in range(10):
        proposal = learner.propose(4)
        labels = scene.answer(proposal.rows, proposal.explored, 4 * len(told))
        learner.tell(labels)
        told.append(labels)
        all_labels = _join(told)
        gone = ~all_labels.positive
        if learner.negatives == "sample":
            gone &= ~all_labels.sampled
        rebuilt = scene.begin(whole.without(all_labels.rows[gone]))
        rebuilt.tell(all_labels)
        assert _order(rebuilt) == _order(learner), "the learner read the vector of a negative that it must not use"


def _check_score(scene: _Scene) -> None:
    """Check that another learner with the same parameters computes the same scores from the state alone."""
    learner = scene.begin()
    labels = scene.walk(learner, 6)
    if learner.ordered or not hasattr(learner, "state_") or not learner.ready(learner.state_):
        return
    pool, alone = Pool(scene.vectors), scene.make(scene.truth)
    exploration = Exploration(alone.explore, 5).begin(len(pool))
    state = SearchState(pool, seed=5, learns_from=learner.negatives, exploration=exploration)
    alone.prepare(state)
    state.tell(labels)
    rows, version = state.open_rows(), state.version
    try:
        found = alone.score(state, rows)
    except ModelUnavailableError:
        return
    assert np.shape(found) == rows.shape, "score() does not give one score per row"
    assert np.array_equal(learner.score(learner.state_, rows), found, equal_nan=True), (
        "score() depends on more than the state"
    )
    assert state.version == version, "score() changed the state"
