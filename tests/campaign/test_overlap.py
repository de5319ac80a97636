"""Two opinions of every item: leases of the second one run out, and what was taken back is gone."""

import numpy as np

from activecover import Campaign, Pool


def make_pool() -> Pool:
    return Pool(np.random.default_rng(0).normal(size=(4, 3)), ids=[f"i{row}" for row in range(4)])


def test_a_second_opinion_that_is_not_given_in_time_is_asked_of_somebody_else() -> None:
    now = [1000.0]
    with Campaign(make_pool(), explore=4, overlap=2, lease=60, clock=lambda: now[0]) as campaign:
        (item,) = campaign.ask(by="ann")
        campaign.tell(item.id, True, by="ann")
        assert [one.id for one in campaign.ask(by="bob")] == [item.id]
        assert item.id not in [one.id for one in campaign.ask(by="cat")]
        now[0] += 59
        assert item.id not in [one.id for one in campaign.ask(4, by="cat")]
        now[0] += 1
        assert item.id in [one.id for one in campaign.ask(4, by="cat")]
        campaign.tell(item.id, True, by="cat")
        assert campaign.labels() == {item.id: True}


def test_an_opinion_that_was_taken_back_is_no_decision_any_more() -> None:
    with Campaign(make_pool(), explore=4, overlap=2) as campaign:
        for name in ("i0", "i1"):
            campaign.tell(name, True, by="ann")
            campaign.tell(name, True, by="bob")
        assert campaign.journal.ledger.last_decisions(5, "ann") == ["i1", "i0"]
        assert campaign.undo(by="ann") == ["i1"]
        assert campaign.journal.ledger.last_decisions(5, "ann") == ["i0"]
        assert campaign.journal.ledger.last_decisions(5, "bob") == ["i1", "i0"]
        # The next one to be taken back is the one before.
        assert campaign.undo(by="ann") == ["i0"]
        assert campaign.undo(by="ann") == []
        assert campaign.labels() == {}
