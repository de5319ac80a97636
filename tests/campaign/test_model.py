"""A campaign in a database against a naive model: what people hold and said, in plain dictionaries."""

import os
import shutil
import tempfile
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from activecover import Campaign, InputError, Pool
from activecover.pool import Duplicates
from activecover.store import MemoryLog, SqlStore

PEOPLE = st.sampled_from(["ann", "bob", "cy"])
#: The full count can be run in parts: with other numbers of examples, and other seeds.
EXAMPLES = int(
    os.environ.get("ACTIVECOVER_EXAMPLES") or (2000 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 100)
)


@dataclass
class Thing:
    """All that the model knows of an item that was ever asked for."""

    number: int
    holder: str | None = None
    until: float = 0.0
    aside: tuple[str, str] | None = None
    said: dict[str, bool] = field(default_factory=dict)
    judged: tuple[str, bool] | None = None
    also: dict[str, float] = field(default_factory=dict)
    declined: set[str] = field(default_factory=set)

    def state(self, overlap):
        if self.judged:
            return "positive" if self.judged[1] else "negative"
        if len(self.said) >= overlap:
            return (
                "conflict"
                if len(set(self.said.values())) > 1
                else "positive"
                if any(self.said.values())
                else "negative"
            )
        if self.said:
            return "waiting"
        if self.holder:
            return "leased"
        return self.aside[0] if self.aside else "open"


class SharedCampaign(RuleBasedStateMachine):
    """Everything that people can do, in any order, checked after every step."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        random = np.random.default_rng(7)
        vectors = random.normal(size=(12, 3))
        # Duplicates, if they are looked for: 1, 5 and 8; 2 and 9.
        vectors[[5, 8]], vectors[9] = vectors[1], vectors[2]
        self.pool = Pool(vectors, ids=[f"item {row}" for row in range(12)])
        self.now = 1000.0
        self.things: dict[str, Thing] = {}
        self.decisions: list[tuple[str, str]] = []
        self.number = 0
        #: Who stands for an item that is not asked for itself.
        self.first: dict[str, str] = {}

    @initialize(overlap=st.sampled_from([1, 2]), grouped=st.booleans(), ahead=st.booleans())
    def create(self, overlap, grouped, ahead):
        self.overlap, self.grouped, self.ahead = overlap, grouped, ahead
        self.store = SqlStore(f"{self.folder}/store.sqlite")
        self.log = self.store.create("one")
        rule = Duplicates() if grouped else None
        self.campaign = self.opened(explore=3, seed=1, overlap=overlap, duplicates=rule)
        self.find_duplicates(0)

    def opened(self, **settings):
        return Campaign(self.pool, log=self.log, lease=60, clock=lambda: self.now, think_ahead=self.ahead, **settings)

    def find_duplicates(self, since):
        """By comparing every new row with all before it."""
        for row in range(since, len(self.pool) if self.grouped else 0):
            for other in range(row):
                if (self.pool.vectors[row] == self.pool.vectors[other]).all():
                    name = self.pool.id(other)
                    self.first[self.pool.id(row)] = self.first.get(name, name)
                    break

    def teardown(self):
        self.campaign.close()
        self.store.close()
        shutil.rmtree(self.folder)

    # -- the model -------------------------------------------------------------------------------

    def those(self, *states):
        """Names in some states, in the order asked."""
        chosen = [name for name, thing in self.things.items() if thing.state(self.overlap) in states]
        return sorted(chosen, key=lambda name: self.things[name].number)

    def on_the_table(self, by):
        leased = [name for name in self.those("leased") if self.things[name].holder == by]
        return leased + [name for name in self.those("waiting", "conflict") if by in self.things[name].also]

    def needing(self, by):
        found = []
        for name in self.those("waiting"):
            thing = self.things[name]
            if by not in thing.said and by not in thing.also and len(thing.said) + len(thing.also) < self.overlap:
                found.append(name)
        return found

    def lease(self, name, by):
        self.decisions = [pair for pair in self.decisions if pair[0] != name]
        self.things[name] = Thing(self.number, holder=by, until=self.now + 60)
        self.number += 1

    def let_go(self, name, by):
        thing = self.things[name]
        if by in thing.also:
            del thing.also[by]
            return
        self.decisions = [pair for pair in self.decisions if pair[0] != name]
        thing.holder = thing.aside = None

    def expire(self):
        for name in self.those("leased"):
            if self.things[name].until <= self.now:
                self.let_go(name, self.things[name].holder)
        for name in self.those("waiting", "conflict"):
            thing = self.things[name]
            thing.also = {who: end for who, end in thing.also.items() if end > self.now}

    def unjudge(self, name):
        thing = self.things[name]
        if thing.judged:
            judge, thing.judged = thing.judged[0], None
            self.decisions.remove((name, judge))
            if judge in thing.said:
                self.decisions.append((name, judge))

    def decide(self, name, by):
        thing = self.things[name]
        old = {(name, by)} | ({(name, thing.aside[1])} if thing.aside else set())
        if self.overlap == 1:
            old |= {pair for pair in self.decisions if pair[0] == name}
        self.decisions = [pair for pair in self.decisions if pair not in old] + [(name, by)]
        thing.holder = thing.aside = None
        thing.also.pop(by, None)

    def members(self, name):
        return [name, *(other for other, first in self.first.items() if first == name)]

    def replay(self):
        copy = MemoryLog()
        copy.append([{k: v for k, v in event.items() if k != "seq"} for event in self.campaign.history()])
        return Campaign(self.pool, log=copy, clock=lambda: self.now)

    def held(self):
        held = self.those("leased", "skipped", "unsure", "waiting", "conflict")
        return self.pool.rows([*held, *self.first])

    # -- what people do --------------------------------------------------------------------------

    @rule(by=PEOPLE, k=st.integers(1, 4))
    def ask(self, by, k):
        self.expire()
        expected = self.on_the_table(by)[:k]
        missing = k - len(expected)
        more = [name for name in self.needing(by) if by not in self.things[name].declined][:missing]
        for name in more:
            self.things[name].also[by] = self.now + 60
        missing -= len(more)
        new = (
            [self.pool.id(row) for row in self.replay().proposals.learner.propose(missing, self.held()).rows]
            if missing
            else []
        )
        if len(new) < missing:
            new += [*self.those("skipped"), *self.those("unsure")][: missing - len(new)]
        for name in new:
            self.lease(name, by)
        declined = self.needing(by)[: missing - len(new)] if missing > len(new) else []
        for name in declined:
            self.things[name].also[by] = self.now + 60
        assert [item.id for item in self.campaign.ask(k, by=by)] == [*expected, *more, *new, *declined]

    @rule(by=PEOPLE, data=st.data(), label=st.booleans(), change=st.booleans())
    def tell(self, by, data, label, change):
        told = data.draw(
            st.sampled_from([*self.on_the_table(by), *self.things, *self.first, *self.pool.ids[:3], self.pool.ids[-1]])
        )
        name = self.first.get(told, told)
        thing = self.things.get(name, Thing(self.number))
        state = thing.state(self.overlap)
        settled = state in ("positive", "negative")
        before = thing.said.get(by) if self.overlap > 1 else (state == "positive" if settled else None)
        refused = (before is not None and before != label and not change) or (
            before is None and (settled or state == "conflict")
        )
        # What was adjudicated is changed by adjudicating it again, and in no other way.
        refused = refused or (thing.judged is not None and before != label)
        try:
            self.campaign.tell(told, label, by=by, change=change)
        except InputError:
            assert refused
            return
        assert not refused
        if before == label:
            return
        if name not in self.things:
            self.lease(name, by)
            thing = self.things[name]
        self.unjudge(name)
        self.decide(name, by)
        thing.said = {**(thing.said if self.overlap > 1 else {}), by: label}

    @precondition(lambda self: self.those("leased"))
    @rule(data=st.data(), label=st.booleans())
    def answer(self, data, label):
        """Telling and asking in one go gives what both give."""
        name = data.draw(st.sampled_from(self.those("leased")))
        by = self.things[name].holder
        got = self.campaign.answer(name, label, by=by)
        self.decide(name, by)
        self.things[name].said[by] = label
        self.expire()
        for item in got:
            thing = self.things.get(item.id)
            if item.id in self.on_the_table(by):
                continue
            if thing is not None and thing.state(self.overlap) == "waiting":
                thing.also[by] = self.now + 60
            else:
                assert thing is None or thing.state(self.overlap) in ("open", "skipped", "unsure")
                self.lease(item.id, by)

    @precondition(lambda self: self.things)
    @rule(by=PEOPLE, data=st.data(), kind=st.sampled_from(["skipped", "unsure", "released"]))
    def put_away(self, by, data, kind):
        name = data.draw(st.sampled_from(sorted(self.things)))
        thing = self.things[name]
        said = data.draw(st.sampled_from(self.members(name)))
        action = {
            "skipped": self.campaign.skip,
            "unsure": self.campaign.mark_unsure,
            "released": self.campaign.release,
        }[kind]
        allowed = by in thing.also or thing.state(self.overlap) in ("leased", "skipped", "unsure")
        try:
            action(said, by=by)
        except InputError:
            assert not allowed
            return
        assert allowed
        if kind == "released":
            self.let_go(name, by)
        elif by in thing.also:
            del thing.also[by]
            thing.declined.add(by)
        else:
            self.decide(name, by)
            thing.aside = (kind, by)

    @rule(by=st.none() | PEOPLE)
    def undo(self, by):
        mine = [pair for pair in self.decisions if by in (None, pair[1])]
        if mine:
            name, who = mine[-1]
            if self.things[name].judged and self.things[name].judged[0] != who:
                with pytest.raises(InputError, match="was adjudicated"):
                    self.campaign.undo(by=by)
                return
        undone = self.campaign.undo(by=by)
        assert undone == [name for name, _ in mine[-1:]]
        if not mine:
            return
        name, who = mine[-1]
        thing = self.things[name]
        if thing.judged and thing.judged[0] == who:
            self.unjudge(name)
            return
        self.unjudge(name)
        self.decisions.remove((name, who))
        thing.said.pop(who, None)
        thing.aside = None
        if thing.said:
            thing.also[who] = self.now + 60
        else:
            thing.holder, thing.until = who, self.now + 60

    def disputed(self):
        return self.those("conflict") + [name for name, thing in self.things.items() if thing.judged]

    @precondition(lambda self: self.disputed())
    @rule(by=PEOPLE, data=st.data(), label=st.booleans())
    def adjudicate(self, by, data, label):
        name = data.draw(st.sampled_from(self.disputed()))
        self.campaign.adjudicate(name, label, by=by)
        self.unjudge(name)
        self.decide(name, by)
        self.things[name].judged = (by, label)

    @rule(seconds=st.sampled_from([1.0, 30.0, 61.0, -5.0]))
    def time_passes(self, seconds):
        self.now += seconds

    @precondition(lambda self: len(self.pool) < 18)
    @rule(like=st.none() | st.integers(0, 11))
    def add_rows(self, like):
        """Two rows, one of which may be one that is there already."""
        size = len(self.pool)
        vectors = np.random.default_rng(size).normal(size=(2, 3))
        if like is not None:
            vectors[1] = self.pool.vectors[like]
        self.pool.extend(vectors, ids=[f"item {size}", f"item {size + 1}"])
        self.find_duplicates(size)
        with self.campaign.together():
            pass  # reading alone writes nothing

    @precondition(lambda self: self.first)
    @rule(by=PEOPLE, data=st.data())
    def ungroup(self, by, data):
        name = data.draw(st.sampled_from(sorted(self.first)))
        self.campaign.ungroup(name, by=by)
        del self.first[name]

    @rule()
    def reopen(self):
        self.campaign.close()
        self.log = self.store.open("one")
        self.campaign = self.opened()

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def same_as_the_model(self):
        states = {name: thing.state(self.overlap) for name, thing in self.things.items()}
        status, ledger = self.campaign.status(), self.campaign.journal.ledger
        assert {name: ask.state for name, ask in ledger.asks.items()} == states
        settled = self.those("positive", "negative")
        labels = {each: states[name] == "positive" for name in settled for each in self.members(name)}
        assert list(self.campaign.labels().items()) == list(labels.items())
        for name, thing in self.things.items():
            assert ledger.asks[name].opinions == thing.said
            assert ledger.asks[name].also == thing.also
            assert states[name] != "leased" or ledger.asks[name].by == thing.holder
        assert {item.id: said for item, said in self.campaign.conflicts()} == {
            name: self.things[name].said for name in self.those("conflict")
        }
        assert status.unlabelled == len(self.pool) - len(self.first) - len(settled)
        assert (status.labelled, status.positives) == (len(labels), sum(labels.values()))
        assert status.duplicates == len(labels) - len(settled)
        exported = {
            record["id"]: bool(record["label"]) for record in self.campaign.records() if record["label"] is not None
        }
        assert exported == labels
        replayed = self.replay()
        assert replayed.labels() == labels
        for campaign in (replayed, self.campaign):
            assert campaign._rows.held().tolist() == self.held().tolist()
        here, there = self.campaign.proposals.learner, replayed.proposals.learner
        assert here.propose(4, self.held()).rows.tolist() == there.propose(4, self.held()).rows.tolist()


SharedCampaign.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=15, deadline=None)
TestSharedCampaign = SharedCampaign.TestCase
