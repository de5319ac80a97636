"""What may be seen of a blind campaign, what cannot be guessed of it, and decisions that stand."""

from __future__ import annotations

import numpy as np
import pytest

from activecover import Campaign, InputError, Pool
from activecover.campaign._mixer import control_order
from activecover.pool import Duplicates
from activecover.stopping import ControlQuantile


def make_pool(rows: int = 80) -> Pool:
    points = np.random.default_rng(0).normal(size=(rows, 2))
    points[1] = points[0]
    return Pool(points, ids=[f"i{row}" for row in range(rows)])


def disagree(campaign: Campaign, name: str = "i0") -> None:
    campaign.tell(name, True, by="ann")
    campaign.tell(name, False, by="bob")
    campaign.adjudicate(name, False, by="judge")


def test_an_adjudicated_decision_is_changed_by_adjudicating_it_again_alone() -> None:
    campaign = Campaign(make_pool(), overlap=2, duplicates=Duplicates())
    disagree(campaign)
    for attempt in (
        lambda: campaign.tell("i0", False, by="ann", change=True),
        lambda: campaign.tell("i1", True, by="bob", change=True),  # its duplicate
        lambda: campaign.undo(by="ann"),
        lambda: campaign.undo(by="bob"),
    ):
        with pytest.raises(InputError, match="was adjudicated: only adjudicating it again can change it"):
            attempt()
        assert campaign.labels() == {"i0": False, "i1": False}
    campaign.adjudicate("i1", True, by="other")
    assert campaign.labels() == {"i0": True, "i1": True}
    assert campaign.undo(by="judge") == []
    assert campaign.undo(by="other") == ["i0"]
    assert campaign.status().conflicts == 1


def test_an_adjudication_and_what_it_decided_between_are_undone_together_in_order() -> None:
    campaign = Campaign(make_pool(), overlap=2)
    disagree(campaign)
    assert campaign.undo(2) == ["i0", "i0"]
    assert campaign.status().waiting == 1


def test_control_rows_cannot_be_worked_out_without_the_log() -> None:
    pool = make_pool()
    one, other = (Campaign(pool, explore=0, known=["i5"], certify="0.9@0.9") for _ in range(2))
    created = one.history()[0]
    assert len(created["key"]) == 32
    assert created["seed"] != other.history()[0]["seed"]
    drawn = [campaign.guarantee.mixer.control._walk(campaign.journal.ledger, 20, ())[1] for campaign in (one, other)]
    guessed = [pool.id(row) for row in control_order(pool.ids, created["seed"])[:20]]
    assert len({tuple(drawn[0]), tuple(drawn[1]), tuple(guessed)}) == 3
    assert {"seed", "key", "explore"}.isdisjoint(one.sight.events()[0])


def test_a_seed_that_was_given_says_everything_so_that_a_run_can_be_repeated() -> None:
    pool = make_pool()
    one, other = (Campaign(pool, seed=3, explore=5, certify="0.9@0.9") for _ in range(2))
    assert "key" not in one.history()[0]
    assert [item.id for item in one.ask(20)] == [item.id for item in other.ask(20)]


def test_a_log_with_a_damaged_key_is_refused() -> None:
    campaign = Campaign(make_pool(), certify="0.9@0.9")
    from activecover.errors import StoreError
    from activecover.store import Ledger

    (created,) = campaign.history()
    with pytest.raises(StoreError, match="key 'x' is damaged"):
        Ledger([{**created, "key": "x"}])


def test_as_many_items_come_as_were_asked_for_however_few_control_rows_are_left() -> None:
    campaign = Campaign(make_pool(), seed=1, explore=0, known=["i5"], certify=ControlQuantile(0.9, 0.9, sample=4))
    for place in range(6):
        assert len(campaign.ask(10, by=f"person {place}")) == 10
    assert campaign.journal.ledger.sources["control"] <= 4


def test_everything_is_seen_of_a_campaign_without_control_rows() -> None:
    campaign = Campaign(make_pool(), explore=3)
    (item,) = campaign.ask()
    campaign.tell(item.id, True)
    sight = campaign.sight
    assert not sight.blind
    assert sight.events() == campaign.history()
    assert sight.status() == campaign.status()
    assert sight.records() == campaign.records()


def test_in_a_blind_campaign_that_forgets_no_negative_looks_unlike_another() -> None:
    campaign = Campaign(
        make_pool(),
        "explore-commit",
        seed=2,
        explore=0,
        known=["i5"],
        forget_negatives=True,
        certify=ControlQuantile(0.9, 0.9),
    )
    asked = []
    for _ in range(40):
        (item,) = campaign.ask()
        campaign.tell(item.id, False)
        asked.append(item.id)
    kept = set(asked) - set(campaign.eraser.status().forgotten)
    assert len(kept) > 10, "hidden control rows are kept for the learner"
    assert campaign.eraser.withheld(asked) == set(asked[:-10])
    refusals = set()
    for name in asked[:-10]:
        with pytest.raises(InputError) as refused:
            campaign.tell(name, True, change=True)
        refusals.add(str(refused.value).replace(name, "x"))
    assert refusals == {"id 'x' was erased from the pool: it can no longer be told"}
    assert not any(event["event"] == "forgotten" for event in campaign.sight.events())
