"""Control rows, audits and insurance in campaigns: who sees what, what is drawn, and what it proves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activecover import Campaign, Pool
from activecover.campaign import Sight
from activecover.campaign._certificate import record_of
from activecover.campaign._mixer import control_order
from activecover.errors import InputError
from activecover.stopping import (
    ConfidenceSequence,
    ControlQuantile,
    TwoPhase,
    WeightedBetting,
    labels_to_hit,
)
from activecover.stopping._audit import audits_of
from activecover.stopping._record import CONTROL, INSURANCE, NEVER
from activecover.store import MemoryLog, SqlStore

ROWS = 120
CONTROL_RULE = ControlQuantile(0.7, 0.8)


def make_pool(rows: int = ROWS, seed: int = 0) -> tuple[Pool, dict[str, bool]]:
    """A cluster of positives in a cloud of other rows."""
    random = np.random.default_rng(seed)
    positives = rows // 6
    vectors = random.normal(size=(rows, 2)) * 5
    vectors[:positives] = random.normal(size=(positives, 2)) + 4
    names = [f"item {row}" for row in range(rows)]
    return Pool(vectors, ids=names), {name: row < positives for row, name in enumerate(names)}


def work(campaign: Campaign, truth: dict[str, bool], labels: int | None = None, k: int = 1) -> int:
    """Answer until the campaign ends, or for so many labels."""
    done = 0
    while (labels is None or done < labels) and (items := campaign.ask(k)):
        campaign.tell([item.id for item in items], [truth[item.id] for item in items])
        done += len(items)
    return done


def review(campaign: Campaign) -> list[str]:
    """What the learner itself has proposed, in order."""
    return [
        event["id"]
        for event in campaign.history()
        if event["event"] == "reached" or (event["event"] == "asked" and event["source"] in ("explore", "learner"))
    ]


@pytest.mark.parametrize("learner", ["explore-commit", "offline"])
@pytest.mark.parametrize("k", [1, 5])
def test_proposals_are_those_of_a_campaign_without_control_rows(learner: str, k: int) -> None:
    pool, truth = make_pool()
    plain = Campaign(pool, learner, explore=20, seed=3)
    mixed = Campaign(pool, learner, explore=20, seed=3, certify=CONTROL_RULE)
    work(mixed, truth, 100, k=k)
    if k == 1:
        work(plain, truth)
        assert mixed.journal.ledger.sources["control"] > 10
        assert review(mixed) == review(plain)[: len(review(mixed))]
    assert len(set(review(mixed))) == len(review(mixed))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), flips=st.lists(st.booleans(), min_size=ROWS, max_size=ROWS))
def test_a_control_label_steers_nothing_until_the_learner_proposes_its_row(seed: int, flips: list[bool]) -> None:
    pool, truth = make_pool()
    # A fixed number of rows, so that the labels do not decide how long the sample is.
    rule = ControlQuantile(0.9, 0.95, sample=30)
    first = Campaign(pool, explore=10, seed=seed, certify=rule)
    work(first, truth, 60)
    hidden = [ask.id for ask in first.journal.ledger.asks.values() if ask.hidden]
    other = {**truth, **dict(zip(hidden, flips, strict=False))}
    second = Campaign(pool, explore=10, seed=seed, certify=rule)
    work(second, other, 60)
    assert review(first) == review(second)
    assert [e["id"] for e in first.history() if e["event"] == "asked"] == [
        e["id"] for e in second.history() if e["event"] == "asked"
    ]
    # The next proposals too, although the second has been told other labels.
    held = first._rows.held_from_learner()
    assert (
        first.proposals.learner.propose(10, held).rows.tolist()
        == second.proposals.learner.propose(10, held).rows.tolist()
    )


def test_once_reached_a_control_label_counts() -> None:
    pool, truth = make_pool()
    campaign = Campaign(pool, explore=10, seed=5, certify=ControlQuantile(0.9, 0.95, sample=60))
    work(campaign, truth, 110)
    reached = [ask for ask in campaign.journal.ledger.asks.values() if ask.reached is not None]
    assert reached
    learner = campaign.proposals.learner
    for ask in campaign.journal.ledger.asks.values():
        assert bool(learner.closed_[pool.rows([ask.id])[0]]) == (not ask.hidden)


def test_annotators_cannot_tell_control_rows_from_others() -> None:
    pool, truth = make_pool()
    campaign = Campaign(pool, explore=10, certify=CONTROL_RULE, think_ahead=True)
    assert campaign.guarantee.blind
    shown = set()
    for _ in range(40):
        (item,) = campaign.ask()
        shown.add((item.source, item.distance, item.nearest, item.reason))
        assert campaign.peek_next(item.id) == {}
        campaign.tell(item.id, truth[item.id])
    assert shown == {("blind", None, None, "not shown in this campaign: some items are controls")}
    assert {event["source"] for event in campaign.history() if event["event"] == "asked"} > {"control"}
    seen = Sight(campaign).events()
    asked = [event for event in seen if event["event"] == "asked"]
    assert {tuple(sorted(event)) for event in asked} == {("at", "by", "event", "expires", "id", "seq")}
    assert not any(event["event"] == "reached" for event in seen)


def test_the_order_of_what_people_see_does_not_change_when_a_control_row_is_reached() -> None:
    pool, truth = make_pool()
    campaign = Campaign(pool, explore=10, seed=5, certify=ControlQuantile(0.9, 0.95, sample=60))
    asked: list[str] = []
    for _ in range(110):
        (item,) = campaign.ask()
        asked.append(item.id)
        campaign.tell(item.id, truth[item.id])
        assert list(campaign.labels()) == asked


def test_the_control_sample_is_the_head_of_the_keyed_order() -> None:
    pool, truth = make_pool()
    campaign = Campaign(pool, explore=10, seed=2, certify=CONTROL_RULE)
    work(campaign, truth)
    assert campaign.guarantee.mixer is not None
    assert campaign.guarantee.mixer.control is not None
    names = [pool.id(row) for row in control_order(pool.ids, 2).tolist()]
    ends = np.flatnonzero(np.cumsum([truth[name] for name in names]) >= CONTROL_RULE.planned())
    assert campaign.guarantee.mixer.control.ids(campaign.journal.ledger) == names[: int(ends[0]) + 1]


def test_rows_that_are_added_join_the_control_sample() -> None:
    pool, truth = make_pool(60)
    campaign = Campaign(pool, explore=5, seed=1, certify=ControlQuantile(0.7, 0.8, sample=40))
    work(campaign, truth, 30)
    more = {f"new {row}": row < 10 for row in range(60)}
    pool.extend(np.random.default_rng(1).normal(size=(60, 2)), ids=list(more))
    campaign.journal.record_growth()
    truth |= more
    work(campaign, truth)
    assert campaign.guarantee.mixer is not None
    assert campaign.guarantee.mixer.control is not None
    sample = campaign.guarantee.mixer.control.ids(campaign.journal.ledger)
    assert sample == [pool.id(row) for row in control_order(pool.ids, 1).tolist()][:40]
    assert any(name.startswith("new") for name in sample)
    # In the hash order added rows may come first: such draws are not taken for uniform ones.
    late = [e for e in campaign.history() if e["event"] == "asked" and e["source"] == "control" and e["seq"] > 70]
    assert late
    assert {event["probability"] for event in late} == {None}


def test_a_control_row_that_goes_back_comes_again_and_one_set_aside_counts_as_missed() -> None:
    pool, truth = make_pool()
    campaign = Campaign(pool, explore=0, known=["item 0"], seed=2, certify=ControlQuantile(0.7, 0.8, sample=10))
    item = campaign.ask()[0]
    while campaign.journal.ledger.asks[item.id].source != "control":
        campaign.tell(item.id, truth[item.id])
        item = campaign.ask()[0]
    campaign.release(item.id)
    assert campaign.guarantee.mixer is not None
    assert campaign.guarantee.mixer.control is not None
    assert campaign.guarantee.mixer.control.missing(campaign.journal.ledger, 1) == [item.id]
    work(campaign, truth, 60)
    assert campaign.journal.ledger.asks[item.id].settled
    campaign.undo(by="me", count=1)
    aside = campaign.ask()[0]
    campaign.skip(aside.id)
    assert campaign.assess().remaining_upper >= 1


@pytest.mark.parametrize(
    "rule", [CONTROL_RULE, ConfidenceSequence(0.7, 0.8), TwoPhase(0.7, 0.8), WeightedBetting(0.7, 0.8)]
)
@pytest.mark.parametrize("k", [1, 4])
def test_a_campaign_ends_when_its_promise_is_kept(rule, k: int) -> None:  # type: ignore[no-untyped-def]
    pool, truth = make_pool(300)
    campaign = Campaign(pool, explore=20, seed=4, certify=rule)
    labels = work(campaign, truth, k=k)
    stands = campaign.status()
    assert stands.stopped is not None
    assert stands.stopped.startswith("certified: recall at least")
    assert stands.certificate == f"recall 0.7 with confidence 0.8 by {rule.name}: certified"
    assert labels < 300
    assert campaign.assess().stop
    assert not campaign.guarantee.blind
    record = record_of(campaign.journal.ledger, pool, campaign.guarantee.mixer)
    assert rule.recall_lower(record)[-1] >= 0.7
    if rule.design == "audit":
        assert all(audit.sound for audit in audits_of(record))


def test_a_promise_and_a_budget_end_with_whichever_is_first() -> None:
    pool, truth = make_pool(300)
    campaign = Campaign(pool, explore=20, seed=4, certify="0.95@0.95", budget=50)
    assert work(campaign, truth) == 50
    assert campaign.status().stopped == "budget spent: 50 labels"
    said = campaign.assess()
    assert said.stop
    assert said.recall_lower < 0.95
    assert said.rule == "qbcb@1 | budget@1"
    assert not campaign.certificate().certified


def test_insurance_is_a_share_of_all_asks_drawn_uniformly() -> None:
    pool, truth = make_pool(600)
    campaign = Campaign(pool, explore=0, known=["item 0"], seed=1, random_share=0.3)
    work(campaign, truth, 400)
    record = record_of(campaign.journal.ledger, pool, campaign.guarantee.mixer)
    drawn = record.source == INSURANCE
    assert abs(drawn.mean() - 0.3) < 3 * np.sqrt(0.3 * 0.7 / 400)
    assert record.uniform(drawn)
    assert record.current.all()
    assert "uniform draws" in (campaign.status().insurance or "")
    assert campaign.status().certificate is None
    assert not campaign.guarantee.blind


@pytest.mark.parametrize("certify", [CONTROL_RULE, WeightedBetting(0.9, 0.95), None])
def test_a_campaign_goes_on_as_if_it_had_never_been_closed(certify) -> None:  # type: ignore[no-untyped-def]
    pool, truth = make_pool()
    log = MemoryLog()
    first = Campaign(pool, explore=10, seed=7, certify=certify, random_share=0.2, log=log)
    work(first, truth, 45)
    again = MemoryLog()
    again.append([{key: value for key, value in event.items() if key != "seq"} for event in log.read()])
    second = Campaign(pool, log=again)
    for _ in range(25):
        one, two = first.ask(), second.ask()
        assert [item.id for item in one] == [item.id for item in two]
        for campaign, items in ((first, one), (second, two)):
            campaign.tell([item.id for item in items], [truth[item.id] for item in items])


def test_two_processes_draw_the_same_sample(tmp_path) -> None:  # type: ignore[no-untyped-def]
    pool, truth = make_pool()
    with SqlStore(tmp_path / "store.sqlite") as store:
        first = Campaign(pool, explore=10, seed=3, certify=CONTROL_RULE, log=store.create("one"))
        second = Campaign(pool, log=store.open("one"))
        first.status()
        people = {"ann": first, "bob": second}
        asked: list[str] = []
        for _ in range(60):
            for name, campaign in people.items():
                for item in campaign.ask(by=name):
                    assert item.source == "blind" or campaign.status().stopped
                    asked.append(item.id)
                    campaign.tell(item.id, truth[item.id], by=name)
        assert len(asked) == len(set(asked))
        for campaign in people.values():
            assert (campaign.status().stopped or "").startswith("certified")
        record = record_of(first.journal.ledger, pool, first.guarantee.mixer)
        assert record.uniform(record.source == CONTROL)
        assert (record.reached[record.source == CONTROL] != NEVER).any()
        first.close()
        second.close()


def test_hidden_negatives_are_not_forgotten() -> None:
    pool, truth = make_pool()
    campaign = Campaign(pool, explore=10, seed=3, certify=CONTROL_RULE)
    work(campaign, truth, 40)
    hidden = {ask.id for ask in campaign.journal.ledger.asks.values() if ask.hidden}
    assert hidden
    assert not hidden & set(campaign.eraser.status(0).final)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"certify": "0.95"}, "0.95@0.95"),
        ({"certify": "1.5@0.95"}, "target 1.5"),
        ({"random_share": 0.0}, "share of the asks"),
        ({"random_share": 1.5}, "share of the asks"),
        ({"random_share": "much"}, "share of the asks"),
    ],
)
def test_promises_that_are_none(settings, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=words):
        Campaign(make_pool()[0], **settings)


def test_another_promise_than_the_log_has_is_refused() -> None:
    pool, _ = make_pool()
    log = MemoryLog()
    Campaign(pool, log=log, certify="0.9@0.95")
    assert Campaign(pool, log=log).guarantee.blind
    with pytest.raises(InputError, match="was made with certify"):
        Campaign(pool, log=log, certify="0.8@0.95")


def test_insurance_finds_a_component_that_the_learner_would_reach_last() -> None:
    """Reduced; ``benchmarks/insurance.py`` makes 400 runs of it."""
    component, share, runs = 20, 0.2, 40
    random = np.random.default_rng(0)
    vectors = np.concatenate([random.normal(size=(380, 2)), random.normal(size=(component, 2)) * 0.1 + [1000.0, 0.0]])
    pool = Pool(vectors)
    far = set(pool.ids[380:])
    costs = []
    for seed in range(runs):
        campaign = Campaign(pool, "explore-commit", explore=0, known=["0"], seed=seed, random_share=share)
        count, hit = 0, False
        while not hit:
            (item,) = campaign.ask()
            hit = item.id in far
            campaign.tell(item.id, hit)
            count += 1
        costs.append(count)
    plain = Campaign(pool, "explore-commit", explore=0, known=["0"])
    assert not any(item.id in far for item in plain.ask(379))
    predicted = labels_to_hit(component, len(pool) - 1, share)
    error = np.std(costs) / np.sqrt(runs)
    assert abs(np.mean(costs) - predicted) < 3.5 * error
