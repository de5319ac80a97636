"""Items that are one and the same: asked for once, labelled together, and taken back together."""

import numpy as np
import pytest

from activecover import Campaign, InputError, Pool
from activecover.pool import Duplicates
from activecover.store import MemoryLog

#: a, c and e are the same; b and f nearly so.
POINTS = [[0.0], [9.0], [0.0], [3.0], [0.0], [9.25]]


def begin(duplicates=None, **settings):
    pool = Pool(POINTS, ids=list("abcdef"))
    settings = {"known": ["d"], **settings}
    return Campaign(pool, "explore-commit", explore=0, duplicates=duplicates or Duplicates(), **settings)


def reopened(campaign, pool=None):
    log = MemoryLog()
    log.append([{key: value for key, value in event.items() if key != "seq"} for event in campaign.history()])
    return Campaign(pool or campaign.pool, log=log)


def test_a_group_is_asked_for_once_and_labelled_together():
    campaign = begin()
    (item,) = campaign.ask()
    assert (item.id, item.duplicates) == ("a", ("c", "e"))
    campaign.tell("a", True)
    assert campaign.labels() == {"a": True, "c": True, "e": True}
    status = campaign.status()
    assert (status.labelled, status.positives, status.duplicates, status.unlabelled) == (3, 3, 2, 2)
    assert [item.id for item in campaign.ask(6)] == ["b", "f"]
    assert reopened(campaign).labels() == campaign.labels()
    assert campaign.undo() == ["a"]
    assert campaign.labels() == {}
    assert campaign.ask()[0].id == "a"


def test_near_duplicates_are_within_the_threshold():
    campaign = begin(Duplicates(near=0.25))
    assert campaign.sight.snapshot().grouped == 3
    campaign.tell("f", False)
    assert campaign.labels() == {"b": False, "f": False}
    assert begin(Duplicates(near=0.2)).sight.snapshot().grouped == 2


def test_contents_make_duplicates_too():
    pool = Pool([[0.0], [1.0], [2.0]], contents={"text": ["The Cat", "a dog", "the  cat"]})
    campaign = Campaign(pool, explore=0, known=["1"], duplicates=Duplicates(("text",), vectors=False))
    assert campaign.ask()[0].duplicates == ("2",)


@pytest.mark.parametrize("told", ["a", "c", "e"])
def test_whichever_is_told_the_group_is(told):
    campaign = begin()
    campaign.tell(told, True)
    assert list(campaign.labels()) == ["a", "c", "e"]
    campaign.tell("c", True)
    with pytest.raises(InputError, match="told as positive before"):
        campaign.tell("e", False)
    assert [event["id"] for event in campaign.history("e") if event["event"] == "told"] == ["a"]


def test_answers_that_differ_within_a_group_are_refused():
    campaign = begin()
    with pytest.raises(InputError, match="'e' is a duplicate of 'a'"):
        campaign.tell(["a", "b", "e"], [True, True, False])
    assert campaign.labels() == {}
    campaign.tell(["a", "b", "e"], [True, False, True])
    assert campaign.labels() == {"a": True, "c": True, "e": True, "b": False}


def test_who_is_no_duplicate_can_be_taken_out():
    campaign = begin()
    campaign.tell("a", True)
    campaign.ungroup("c")
    assert campaign.labels() == {"a": True, "e": True}
    assert campaign.ask()[0].id == "c"
    campaign.tell("c", False)
    assert reopened(campaign).labels() == campaign.labels() == {"a": True, "e": True, "c": False}
    with pytest.raises(InputError, match="stands for itself"):
        campaign.ungroup("a")


def test_rows_that_are_added_join_their_group():
    campaign = begin()
    campaign.tell("a", True)
    campaign.pool.extend([[0.0], [50.0]], ids=["g", "h"])
    with campaign.together():
        pass  # reading alone would write nothing
    assert campaign.labels() == {"a": True, "c": True, "e": True, "g": True}
    assert campaign.status().unlabelled == 3
    proposed = [item.id for item in reopened(campaign).ask(5)]
    assert [item.id for item in campaign.ask(5)] == proposed == ["b", "f", "h"]


def test_known_positives_bring_their_duplicates():
    campaign = begin(known=["c"])
    assert campaign.status().known == 1
    assert campaign.status().unlabelled == 3
    assert sorted(item.id for item in campaign.ask(9)) == ["b", "d", "f"]
    campaign.pool.extend([[0.0]], ids=["g"])
    assert campaign.ask(9, by="other") == []


@pytest.mark.parametrize("when", ["before", "leased", "labelled"])
def test_an_erased_item_does_not_take_its_group_with_it(when):
    campaign = begin()
    if when == "leased":
        campaign.ask()
    if when == "labelled":
        campaign.tell("a", True)
    campaign.pool.withdraw([0])
    if when == "labelled":
        assert campaign.labels() == {"a": True, "c": True, "e": True}
        # Taken back, nobody can look at the erased one: the next of them is asked for.
        campaign.undo()
    (item,) = campaign.ask(by="other")
    assert (item.id, item.duplicates) == ("c", ("e",))
    campaign.tell("c", False, by="other")
    assert campaign.labels() == {"c": False, "e": False}
    assert reopened(campaign).labels() == campaign.labels()


def test_the_learner_is_told_of_all_members():
    """Its next proposals are those of one that was told of each by itself."""
    points = np.random.default_rng(3).normal(size=(60, 4))
    points[40:] = points[:20]
    truth = points[:, 0] > 0.7
    grouped = Campaign(Pool(points), explore=5, seed=2, duplicates=Duplicates())
    plain = Campaign(Pool(points), explore=0, seed=2)
    for _ in range(12):
        (item,) = grouped.ask()
        grouped.tell(item.id, truth[int(item.id)])
    assert grouped.sight.snapshot().grouped == 20
    labels = grouped.labels()
    assert len(labels) > 12
    plain.tell(list(labels), list(labels.values()))
    held = np.arange(40, 60)
    assert (
        grouped.proposals.learner.propose(9, held).rows.tolist()
        == plain.proposals.learner.propose(9, held).rows.tolist()
    )


def test_rows_chosen_for_exploration_stand_for_their_groups():
    campaign = Campaign(Pool(POINTS, ids=list("abcdef")), explore=[4, 1], duplicates=Duplicates())
    assert [item.id for item in campaign.ask(2)] == ["a", "b"]


def test_another_rule_is_refused():
    campaign = begin()
    log = MemoryLog()
    log.append([{key: value for key, value in event.items() if key != "seq"} for event in campaign.history()])
    with pytest.raises(InputError, match="duplicates"):
        Campaign(campaign.pool, log=log, duplicates=Duplicates(near=0.5))


def test_export_and_group_sizes():
    campaign = begin()
    campaign.tell("a", True)
    records = {record["id"]: record for record in campaign.records()}
    assert records["c"]["source"] == "duplicate"
    assert records["c"]["why"] == "a"
    assert records["c"]["label"] == 1
    assert campaign.journal.ledger.groups.sizes() == {"a": 3}
