"""Thinking ahead changes how long an answer takes, and nothing else."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from activecover.campaign import Campaign
from activecover.learners import ExploreCommit, Labels, ThinkAhead, make_learner
from activecover.pool import Pool

LEARNERS = ["explore-commit", "offline", "passive", "active-linear-svm"]


def pool_and_truth(seed: int, rows: int = 60) -> tuple[Pool, np.ndarray]:
    random = np.random.default_rng(seed)
    points = random.normal(size=(rows, 6))
    return Pool(points), points[:, 0] > 0.5


def play(campaign: Campaign, truth: np.ndarray, moves: list[int]) -> list:
    """Answers, doubts, second thoughts, other people and growth, as the moves say; everything seen on the way."""
    seen = []
    for move in moves:
        items = campaign.ask(2 if move == 7 else 1, by="you" if move == 6 else "me")
        seen.append([item.id for item in items])
        if not items:
            break
        name = items[0].id
        if move == 1:
            campaign.skip(name)
        elif move == 2:
            campaign.release(name)
        elif move == 3 and campaign.labels():
            seen.append(campaign.undo())
        elif move == 4:
            campaign.pool.extend(np.full((1, 6), len(campaign.pool) / 50.0))
            truth = np.append(truth, True)
        elif move == 5:
            campaign.pool.withdraw([campaign.pool.rows([name])[0]])
            campaign.release(name)
        elif move > 9:
            seen.append([item.id for item in campaign.answer(name, bool(truth[campaign.pool.rows([name])[0]]))])
        else:
            campaign.tell(name, bool(truth[campaign.pool.rows([name])[0]]))
        if move == 8:
            seen.append(campaign.status())
    return [*seen, campaign.status(), campaign.labels(), list(campaign.log.read())]


@pytest.mark.parametrize("learner", LEARNERS)
@settings(max_examples=25)
# An item that came back by undo was thought of before the learner had heard of the undo.
@example(seed=629, moves=[2, 18, 17, 7, 18, 2, 8, 11, 9, 18, 17, 3, 14, 8, 3, 1])
@given(seed=st.integers(0, 1000), moves=st.lists(st.integers(0, 18), min_size=5, max_size=40))
def test_the_same_items_whatever_happens(learner, seed, moves):
    runs = []
    for think_ahead in (False, True):
        pool, truth = pool_and_truth(seed)
        with Campaign(pool, learner, explore=8, seed=seed, think_ahead=think_ahead, clock=lambda: 0.0) as campaign:
            runs.append(play(campaign, truth, moves))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize(
    "make", [lambda: ExploreCommit(explore=[0, 1]), lambda: make_learner("active-linear-svm", explore=10)]
)
def test_both_answers_are_ready_and_right(make, answer):
    pool, truth = pool_and_truth(3)
    first = np.flatnonzero(truth)[:1]

    def begin() -> object:
        learner = make().begin(pool, seed=1)
        learner.tell(Labels.of([-1], first, [True], True))
        return learner

    plain, ahead = begin(), ThinkAhead(begin())
    row = plain.propose(1).rows
    ahead.think(0, int(row[0]), sampled=False, held=[])
    told = Labels.of([0], row, [answer], False)
    plain.tell(told)
    ahead.tell(told)
    assert ahead._guess is not None
    assert ahead.propose(1).rows.tolist() == plain.propose(1).rows.tolist()
    assert ahead._guess is not None, "it was not ready"
    assert ahead.unlabelled == plain.unlabelled
    assert ahead.propose(20).rows.tolist() == plain.propose(20).rows.tolist()
    ahead.close()


def test_a_guess_that_nobody_confirms_leaves_no_trace():
    pool, _ = pool_and_truth(5)
    plain = ExploreCommit(explore=[4]).begin(pool)
    ahead = ThinkAhead(ExploreCommit(explore=[4]).begin(pool))
    for learner in (plain, ahead):
        learner.tell(Labels.of([0], [4], [True], True))
    row = plain.propose(1).rows
    ahead.think(1, int(row[0]), sampled=False, held=[])
    assert ahead.propose(60).rows.tolist() == plain.propose(60).rows.tolist()
    ahead.close()


@pytest.mark.parametrize("says", [True, False])
def test_what_was_shown_comes_next_though_others_have_told_something_meanwhile(says):
    """Who sees an item already decides on that one: it must not be changed for another under their fingers."""
    pool = Pool([[0.0], [1.0], [2.1], [100.0], [100.5]])
    with Campaign(pool, "explore-commit", explore=0, known=["0"], think_ahead=True) as campaign:
        (item,) = campaign.ask(by="ann")
        assert {answer: one.id for answer, one in campaign.peek_next(item.id).items()} == dict.fromkeys(
            (True, False, None), "2"
        )
        campaign.tell("3", True, by="bob")
        (following,) = campaign.answer(item.id, True, by="ann", shown="2" if says else None)
        assert following.id == ("2" if says else "4")
        # What somebody has is theirs, whatever was shown.
        assert campaign.ask(by="ann", shown="4") == [following]


def test_what_was_shown_is_kept_for_whom_it_was_shown_to():
    pool = Pool(np.random.default_rng(4).normal(size=(80, 3)))
    with Campaign(pool, "explore-commit", explore=0, known=["0"], think_ahead=True) as campaign:
        (item,) = campaign.ask(by="ann")
        shown = campaign.peek_next(item.id)[None].id
        taken = {one.id for one in campaign.ask(3, by="bob")}
        assert len(taken) == 3
        assert shown not in taken
        (following,) = campaign.answer(item.id, False, by="ann", shown=shown)
        assert following.id == shown


def test_what_was_shown_to_one_is_avoided_by_the_others():
    pool = Pool(np.random.default_rng(4).normal(size=(80, 3)))
    with Campaign(pool, "explore-commit", explore=0, known=["0"], think_ahead=True) as campaign:
        (item,) = campaign.ask(by="ann")
        shown = {one.id for one in campaign.peek_next(item.id).values()}
        taken = {one.id for one in campaign.ask(3, by="bob", avoid=shown)}
        assert len(taken) == 3
        assert not taken & {item.id, *shown}
        # What is on somebody's table stays there.
        assert {one.id for one in campaign.ask(3, by="bob", avoid=taken)} == taken
        assert len(campaign.ask(100, by="cid", avoid=shown)) == 80 - 1 - 1 - 3 - len(shown)
