"""A yes that looks like a mistake is offered for a second look; one that does not, is not."""

import numpy as np
import pytest
from scipy import sparse

from activecover import Campaign, InputError, Pool
from activecover.pool import Duplicates
from activecover.store import MemoryLog


def clustered(seed=0):
    """A tight cluster of 40 positives in a cloud of 400 others, one of which is told as positive by mistake."""
    random = np.random.default_rng(seed)
    points = np.concatenate([random.normal(scale=0.3, size=(40, 4)), random.uniform(-12, 12, size=(400, 4)) + 15])
    return points, np.arange(len(points)) < 40


def run(campaign, truth, labels, mistakes=()):
    for _ in range(labels):
        (item,) = campaign.ask()
        campaign.tell(item.id, bool(truth[int(item.id)]) or item.id in mistakes)


def names(campaign):
    return [doubt.item.id for doubt in campaign.suspects()]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_mistake_is_found_and_the_cluster_is_not_doubted(kind):
    points, truth = clustered()
    pool = Pool(points if kind == "dense" else sparse.csr_array(points))
    campaign = Campaign(pool, explore=0, known=["0"])
    run(campaign, truth, 20)
    assert names(campaign) == []
    campaign.tell("300", True)
    assert names(campaign) == ["300"]
    assert campaign.status().suspicious == 1
    assert "far from all other positives" in campaign.suspects()[0].reason
    campaign.confirm("300", by="eve")
    assert names(campaign) == []
    assert campaign.status().suspicious == 0


def test_a_flood_of_negatives_makes_a_yes_suspicious():
    """With too few positives to say what is far."""
    points, truth = clustered(1)
    campaign = Campaign(Pool(points), explore=0, known=["0"])
    campaign.tell("300", True)
    run(campaign, np.zeros(len(truth)), 0)
    asked = 0
    while not campaign.suspects():
        (item,) = campaign.ask()
        campaign.tell(item.id, bool(truth[int(item.id)]) and campaign.status().positives < 5)
        asked += 1
        assert asked < 300
    assert names(campaign) == ["300"]
    assert "negative" in campaign.suspects()[0].reason


def test_a_random_sample_floods_nobody():
    points, truth = clustered(2)
    campaign = Campaign(Pool(points), explore=200)
    run(campaign, truth, 200)
    assert campaign.status().negatives > 100
    assert names(campaign) == []


def test_a_confirmation_lasts_until_the_label_changes_and_over_a_restart():
    points, truth = clustered()
    campaign = Campaign(Pool(points), explore=0, known=["0"])
    run(campaign, truth, 20)
    campaign.tell("300", True)
    campaign.confirm("300")
    log = MemoryLog()
    log.append([{key: value for key, value in event.items() if key != "seq"} for event in campaign.history()])
    assert names(Campaign(Pool(points), log=log)) == []
    campaign.tell("300", False, change=True)
    assert names(campaign) == []
    campaign.tell("300", True, change=True)
    assert names(campaign) == ["300"]
    campaign.undo()
    assert names(campaign) == []


def test_only_positives_can_be_confirmed():
    campaign = Campaign(Pool([[0.0], [1.0]]), explore=0, known=["0"])
    with pytest.raises(InputError, match="not labelled as positive"):
        campaign.confirm("1")
    assert campaign.suspects() == []


def test_duplicates_do_not_vouch_for_each_other():
    points, truth = clustered()
    points[301] = points[300]
    campaign = Campaign(Pool(points), explore=0, known=["0"], duplicates=Duplicates())
    run(campaign, truth, 20)
    campaign.tell("301", True)
    assert names(campaign) == ["300"]
    campaign.confirm("301")
    assert names(campaign) == []


def test_bits_and_outside_positives():
    random = np.random.default_rng(4)
    bits = random.random((60, 64)) < 0.5
    bits[:12] = bits[0] ^ (random.random((12, 64)) < 0.05)
    campaign = Campaign(
        Pool(bits, metric="jaccard"), explore=0, external_positives=bits[:1] ^ (random.random((1, 64)) < 0.05)
    )
    campaign.tell([str(row) for row in (*range(12), 40)], [True] * 13)
    assert names(campaign) == ["40"]
