"""A live campaign: nothing asked twice, nothing lost, everything replayable."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from activecover import Campaign, ExploreCommit, InputError, Pool
from activecover.simulate import simulate_one
from activecover.store import MemoryLog


def scene(rows=60, seed=0):
    random = np.random.default_rng(seed)
    positive = random.random(rows) < 0.3
    points = random.normal(size=(rows, 3)) + 2.0 * positive[:, None]
    return Pool(points, ids=[f"item {row}" for row in range(rows)]), positive


def drive(campaign, positive, batch, most=10**9):
    """Answer truthfully until nothing more is asked; the ids in order."""
    asked = []
    while len(asked) < most and (items := campaign.ask(batch)):
        names = [item.id for item in items]
        campaign.tell(names, positive[campaign.pool.rows(names)])
        asked += names
    return asked


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("learner", ["explore-commit", "offline", "passive"])
def test_a_campaign_asks_in_the_order_of_the_simulation(learner, batch):
    pool, positive = scene()
    with Campaign(pool, learner, seed=3, explore=14) as campaign:
        asked = drive(campaign, positive, batch)
    from activecover.learners import make_learner

    trace = simulate_one(pool, positive, make_learner(learner, explore=14), batch=batch, seed=3, to_the_end=True)
    assert asked == [pool.id(row) for row in trace.rows]
    assert campaign.status().stopped == "every item is labelled"
    assert campaign.trace().rows.tolist() == trace.rows.tolist()


@pytest.mark.parametrize("learner", ["explore-commit", "offline", "passive"])
def test_negatives_are_never_needed_again(learner):
    """After each batch: rebuilt from the log, on a pool from which every told negative is gone."""
    pool, positive = scene(120)
    with Campaign(pool, learner, seed=1, explore=15) as whole:
        expected = drive(whole, positive, 6)
    log, asked = MemoryLog(), []
    while True:
        negatives = [row for name in asked for row in pool.rows([name]) if not positive[row]]
        poor = pool.without(np.array(negatives, np.int64))
        assert np.isnan(poor.vectors[negatives]).all()
        campaign = Campaign(
            poor, learner if not asked else None, log=log, **({} if asked else {"seed": 1, "explore": 15})
        )
        items = campaign.ask(6)
        if not items:
            break
        names = [item.id for item in items]
        campaign.tell(names, positive[pool.rows(names)])
        asked += names
    assert asked == expected


def test_asking_again_returns_the_same_until_told():
    pool, _positive = scene()
    campaign = Campaign(pool, explore=5)
    first = [item.id for item in campaign.ask(4)]
    assert [item.id for item in campaign.ask(4)] == first
    assert [item.id for item in campaign.ask(2)] == first[:2]
    campaign.tell(first[1], True)
    again = [item.id for item in campaign.ask(4)]
    assert again[:3] == [first[0], first[2], first[3]]
    assert again[3] not in first


def test_two_people_never_get_the_same_item():
    pool, positive = scene()
    campaign = Campaign(pool, explore=5)
    seen = []
    for _ in range(10):
        batch = {by: [item.id for item in campaign.ask(3, by=by)] for by in ("ann", "bob")}
        assert not set(batch["ann"]) & set(batch["bob"])
        for by, names in batch.items():
            campaign.tell(names, positive[pool.rows(names)], by=by)
            seen += names
    assert len(seen) == len(set(seen)) == 60


def test_labels_in_parts_and_out_of_order_give_the_same_next_item():
    pool, positive = scene()
    one, other = Campaign(pool, explore=20, seed=2), Campaign(pool, explore=20, seed=2)
    names = [item.id for item in one.ask(30)]
    assert [item.id for item in other.ask(30)] == names
    one.tell(names, positive[pool.rows(names)])
    for name in reversed(names):
        other.tell(name, bool(positive[pool.rows([name])[0]]))
    assert [item.id for item in one.ask(5)] == [item.id for item in other.ask(5)]


def test_undo_is_as_if_never_told_and_shows_the_item_again():
    pool, positive = scene()
    campaign, never = Campaign(pool, explore=10), Campaign(pool, explore=10)
    for each in (campaign, never):
        drive(each, positive, 1, most=25)
        each.ask()
    item = campaign.ask()[0]
    campaign.tell(item.id, True)
    campaign.ask()
    assert campaign.undo() == [item.id]
    assert item.id in [each.id for each in campaign.ask(5)]
    assert campaign.status().labelled == never.status().labelled
    assert campaign.proposals.learner.propose(10, campaign._rows.held()).rows.tolist()[:5]
    campaign.tell(item.id, False)
    never.tell(item.id, False)
    campaign.release()
    never.release()
    assert [each.id for each in campaign.ask(5)] == [each.id for each in never.ask(5)]
    assert Campaign(pool).undo() == []


def test_skipped_and_unsure_items_come_back_when_nothing_else_is_left():
    pool, positive = scene(10)
    campaign = Campaign(pool, explore=3)
    skipped, unsure = (item.id for item in campaign.ask(2))
    campaign.skip(skipped)
    campaign.mark_unsure(unsure)
    assert campaign.status().skipped == campaign.status().unsure == 1
    asked = drive(campaign, positive, 1, most=8)
    assert skipped not in asked
    assert unsure not in asked
    assert [item.id for item in campaign.ask(5)] == [skipped, unsure]
    campaign.tell([skipped, unsure], [0, 1])
    assert campaign.ask() == []
    assert campaign.status().unlabelled == 0


def test_release_gives_items_back_and_leases_expire():
    pool, _ = scene(10)
    now = [1000.0]
    campaign = Campaign(pool, explore=3, lease=60, clock=lambda: now[0])
    first = campaign.ask(2, by="ann")
    campaign.release([first[0].id], by="ann")
    assert campaign.ask(1, by="bob")[0].id == first[0].id
    now[0] += 61
    assert [item.id for item in campaign.ask(2, by="cy")] == [item.id for item in first]
    campaign.tell(first[1].id, True, by="ann")  # late, and welcome all the same
    assert campaign.status().positives == 1


def test_budget_and_target_end_it():
    pool, positive = scene()
    campaign = Campaign(pool, explore=5, budget=12)
    assert len(drive(campaign, positive, 5)) == 12
    assert campaign.status().stopped == "budget spent: 12 labels"
    campaign = Campaign(pool, explore=5, target=3)
    drive(campaign, positive, 1)
    assert campaign.status().positives == 3
    assert campaign.status().stopped == "target reached: 3 positives found"


def test_k_larger_than_the_pool_gives_all_of_it():
    pool, _ = scene(9)
    assert len(Campaign(pool).ask(10**6)) == 9


def test_known_positives_inside_and_outside_need_no_exploration():
    pool = Pool(np.arange(10.0)[:, None], contents={"text": list("abcdefghij")})
    campaign = Campaign(pool, "explore-commit", explore=0, known=["3"], external_positives=[[8.6]])
    items = campaign.ask(3)
    assert [item.id for item in items] == ["9", "8", "2"]
    assert items[0].nearest == 1
    assert items[0].reason.startswith("nearest to known positive 1 from outside")
    assert items[2].reason == "nearest to 3 (distance 1)"
    assert items[2].content == {"text": "c"}
    assert campaign.status().known == 1
    campaign.tell("3", True)
    with pytest.raises(InputError, match="known to be positive"):
        campaign.tell("3", False)
    with pytest.raises(InputError, match="not in the pool"):
        Campaign(pool, known=["99"])


@pytest.mark.parametrize("frontier", ["exact", "tree"])
def test_a_row_erased_meanwhile_is_not_asked_for(frontier):
    pool, positive = scene(30)
    campaign = Campaign(pool, ExploreCommit(5, frontier), seed=2)
    drive(campaign, positive, 1, most=12)
    upcoming = campaign.proposals.learner.propose(3).rows
    pool.withdraw(upcoming[:2])
    assert campaign.ask()[0].id == pool.id(upcoming[2])
    asked = drive(campaign, positive, 1)
    assert not set(asked) & {pool.id(row) for row in upcoming[:2]}
    assert campaign.status().stopped == "every item is labelled"


def test_the_log_says_how_rows_were_drawn():
    pool, _positive = scene(12)
    for learner, explore, expected in [
        ("explore-commit", [3, 4], [None, None, 1.0]),
        ("explore-commit", 2, [1 / 12, 1 / 11, 1.0]),
        ("passive", 2, [1 / 12, 1 / 11, 1 / 10]),
    ]:
        with Campaign(pool, learner, explore=explore) as campaign:
            campaign.ask(2)
            campaign.tell([item.id for item in campaign.ask(2)], [True, True])
            campaign.ask()
            chances = [event["probability"] for event in campaign.log.read() if event["event"] == "asked"]
        assert chances == pytest.approx(expected) if None not in expected else chances == expected


def test_an_item_nobody_asked_for_can_be_told():
    pool, _ = scene()
    campaign = Campaign(pool, explore=0)
    campaign.tell(["item 7", "item 9"], [True, False])
    assert campaign.status().positives == 1
    assert campaign.ask()[0].nearest == "item 7"


@pytest.mark.parametrize(
    ("ids", "labels", "message"),
    [
        (["item 0"], [2], "neither yes nor no"),
        (["item 0"], ["yes"], "neither yes nor no"),
        (["item 0"], [None], "neither yes nor no"),
        (["item 0"], [float("nan")], "neither yes nor no"),
        (["item 0", "item 1"], [True], "1 labels for 2 ids"),
        (["item 0", "item 0"], [True, True], "twice"),
        (["nobody"], [True], "not in the pool"),
        ([0], [True], "not a string"),
        (["item 0"], True, "sequence"),
        (["item 0"], "y", "sequence"),
    ],
)
def test_bad_labels_are_refused_whole(ids, labels, message):
    pool, _ = scene()
    log = MemoryLog()
    campaign = Campaign(pool, log=log)
    before = len(log)
    with pytest.raises(InputError, match=message):
        campaign.tell(ids, labels)
    assert len(log) == before
    assert campaign.status().labelled == 0


def test_telling_again_changes_nothing_and_contradiction_is_refused():
    pool, _ = scene()
    campaign = Campaign(pool)
    name = campaign.ask()[0].id
    campaign.tell(name, True)
    events = len(campaign.log)
    campaign.tell(name, True)
    assert len(campaign.log) == events
    with pytest.raises(InputError, match="undo that first"):
        campaign.tell(name, False)


def test_bad_asks_are_refused():
    campaign = Campaign(scene()[0])
    for k in (0, -1, 1.5, "1", None):
        with pytest.raises(InputError, match="number of items"):
            campaign.ask(k)
    with pytest.raises(InputError, match="not asked for"):
        campaign.skip("item 1")
    with pytest.raises(InputError, match="nothing to release"):
        campaign.release(["item 1"])


class CampaignMachine(RuleBasedStateMachine):
    """Against a naive model: a dictionary of answers, and a learner built anew after every step."""

    def __init__(self):
        super().__init__()
        self.pool, self.positive = scene(25, seed=7)
        self.log = MemoryLog()
        self.campaign = Campaign(self.pool, log=self.log, explore=4, seed=1)
        self.leased: dict[str, list[str]] = {"ann": [], "bob": []}
        self.answers: dict[str, bool] = {}
        self.aside: set[str] = set()
        self.decisions: list[str] = []

    @rule(by=st.sampled_from(["ann", "bob"]), k=st.integers(1, 4))
    def ask(self, by, k):
        names = [item.id for item in self.campaign.ask(k, by=by)]
        assert names[: len(self.leased[by])] == self.leased[by][:k]
        new = [name for name in names if name not in self.leased[by]]
        assert not set(new) & (set(self.answers) | set(self.leased["ann"]) | set(self.leased["bob"]))
        self.leased[by] += new
        self.aside -= set(new)

    @precondition(lambda self: any(self.leased.values()))
    @rule(data=st.data(), label=st.booleans())
    def tell(self, data, label):
        by = data.draw(st.sampled_from([by for by, names in self.leased.items() if names]))
        name = data.draw(st.sampled_from(self.leased[by]))
        self.campaign.tell(name, label, by=by)
        self.leased[by].remove(name)
        self.answers[name] = label
        self.decisions.append(name)

    @precondition(lambda self: self.leased["ann"])
    @rule(data=st.data(), kind=st.sampled_from(["skip", "unsure"]))
    def set_aside(self, data, kind):
        name = data.draw(st.sampled_from(self.leased["ann"]))
        (self.campaign.skip if kind == "skip" else self.campaign.mark_unsure)(name, by="ann")
        self.leased["ann"].remove(name)
        self.aside.add(name)
        self.decisions.append(name)

    @rule()
    def undo(self):
        # Items that were set aside and asked again are no longer a decision to take back.
        pending = [n for n in self.decisions if n in self.answers or n in self.aside]
        undone = self.campaign.undo()
        if not undone:
            assert not pending
            return
        (name,) = undone
        assert name == pending[-1]
        self.decisions.remove(name)
        self.answers.pop(name, None)
        self.aside.discard(name)
        by = self.campaign.journal.ledger.asks[name].by
        self.leased[by].append(name)
        self.leased[by].sort(key=lambda n: self.campaign.journal.ledger.asks[n].number)

    @rule()
    def reopen(self):
        self.campaign = Campaign(self.pool, log=self.log)

    @invariant()
    def same_as_the_model(self):
        assert dict(sorted(self.campaign.labels().items())) == dict(sorted(self.answers.items()))
        status = self.campaign.status()
        assert status.leased == len(self.leased["ann"]) + len(self.leased["bob"])
        assert status.skipped + status.unsure == len(self.aside)
        replayed = Campaign(self.pool, log=self.log)
        held = self.campaign._rows.held()
        assert (
            replayed.proposals.learner.propose(5, held).rows.tolist()
            == self.campaign.proposals.learner.propose(5, held).rows.tolist()
        )


CampaignMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestCampaignMachine = CampaignMachine.TestCase


def test_a_pool_that_grows_under_a_campaign_is_taken_in():
    pool, _ = scene(10)
    campaign = Campaign(pool, explore=2)
    campaign.tell([item.id for item in campaign.ask(2)], [True, True])
    added = pool.extend(pool.vectors[:3] + 0.5, ids=["x", "y", "z"])
    campaign.tell("y", True)
    assert campaign.status().unlabelled == 10 - 2 + len(added) - 1
    assert {"x", "z"} <= {item.id for item in campaign.ask(20)}


def test_an_empty_answer_is_explained():
    pool, _ = scene(4)
    campaign = Campaign(pool, budget=2)
    campaign.ask(2, by="ann")
    assert campaign.ask(by="bob") == []
    assert campaign.status().stopped == "waiting: all that may still be asked for is leased (2)"


def test_a_row_that_comes_back_was_not_drawn_again():
    pool, _ = scene(10)
    campaign = Campaign(pool)
    for _ in range(2):
        campaign.ask()
        campaign.release()
    chances = [event["probability"] for event in campaign.log.read() if event["event"] == "asked"]
    assert chances == [pytest.approx(0.1), None]


def test_numpy_numbers_are_numbers_and_a_string_is_not_a_list_of_ids():
    pool, _ = scene(30)
    campaign = Campaign(pool, seed=np.int64(3), explore=np.int64(4), known=["item 2"])
    assert [i.id for i in campaign.ask(4)] == [i.id for i in Campaign(pool, seed=3, explore=4, known=["item 2"]).ask(4)]
    with pytest.raises(InputError, match="list of ids"):
        Campaign(pool, known="12")
    for count in (0, -1, 1.5):
        with pytest.raises(InputError, match="undo"):
            campaign.undo(count)


def test_a_live_trace_counts_batches_as_a_simulated_one():
    pool, positive = scene(30)
    campaign = Campaign(pool, explore=5, seed=1)
    drive(campaign, positive, 1, most=5)
    drive(campaign, positive, 4, most=12)
    trace = campaign.trace()
    assert trace.batch[trace.explored].tolist() == [0] * int(trace.explored.sum())
    assert trace.batch[~trace.explored].tolist()[:6] == [1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize("think_ahead", [False, True])
def test_an_item_says_which_rule_chose_it_and_what_it_is_near_to(think_ahead):
    pool, positive = scene(60)
    with Campaign(pool, "auto", explore=20, seed=1, think_ahead=think_ahead) as campaign:
        drive(campaign, positive, 1, most=25)
        (item,) = campaign.ask()
        (following,) = campaign.answer(item.id, bool(positive[pool.rows([item.id])[0]]))
        for one in (item, following):
            assert "rank" in one.because or "looking around" in one.because
            assert one.reason.startswith(f"{one.because}; nearest to {one.nearest}")
            assert positive[pool.rows([one.nearest])[0]]
