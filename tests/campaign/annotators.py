"""People of flesh and blood, as processes: they label at full speed and write down what was acknowledged.

They are forked from a process that has loaded everything already, so that many can be started and killed.
"""

import contextlib
import itertools
import json
import multiprocessing
import os
import random
import time

import numpy as np

from activecover import Campaign, Pool, StoreError
from activecover.store import Ledger, MemoryLog, SqlStore

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["activecover", "activecover.store", "alembic.command", "psycopg", "sqlalchemy.dialects.postgresql.psycopg"]
)


def scene(rows):
    points = np.random.default_rng(5).normal(size=(rows, 4))
    return Pool(points, ids=[f"r{row}" for row in range(rows)]), points[:, 0] > 0.8


def create(url, name, rows, **settings):
    pool, _ = scene(rows)
    with SqlStore(url) as store, Campaign(pool, log=store.create(name), explore=10, seed=2, **settings):
        pass


def annotate(url, name, who, path, rows, lease=None, most=10**9, stop=None):
    """Label until nothing is left, until told to stop, or until killed.

    Every call is written down before (``try``) and after (``told``); what went wrong too (``sorry`` for one
    clear line, ``wrong`` for anything else).
    """
    note = _Notes(path)
    pool, positive = scene(rows)
    chance = random.Random(who)
    try:
        with SqlStore(url) as store, Campaign(pool, log=store.open(name), lease=lease) as campaign:
            done, items = 0, []
            while done < most and not (stop is not None and os.path.exists(stop)):
                try:
                    items = items or campaign.ask(by=who)
                    if not items:
                        break
                    items, done = _label(campaign, items[0].id, positive, who, chance, note), done + 1
                except StoreError as wrong:
                    items = []
                    note.write("sorry", str(wrong))
    except StoreError as wrong:
        note.write("sorry", str(wrong))
    except BaseException as wrong:
        note.write("wrong", repr(wrong))
        raise
    note.write("end")


def _label(campaign, name, positive, who, chance, note):
    label = int(positive[campaign.pool.rows([name])[0]])
    note.write("try", name, label)
    if chance.random() < 0.5:
        items = campaign.answer(name, label, by=who)
    else:
        campaign.tell(name, label, by=who)
        items = []
    note.write("told", name, label)
    return items


class _Notes:
    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, *what):
        os.write(self._file, json.dumps([time.time(), *what]).encode() + b"\n")


class Crew:
    """Some annotators on one campaign, and what they have written down."""

    def __init__(self, url, name, folder, rows, **options):
        self.url, self.name, self.folder, self.rows, self.options = url, name, folder, rows, options
        self.processes = {}

    def start(self, names, **options):
        for who in names:
            path = str(self.folder / f"{self.name}-{who}.jsonl")
            args = (self.url, self.name, who, path, self.rows)
            self.processes[who] = CONTEXT.Process(
                target=annotate, args=args, kwargs={**self.options, **options}, daemon=True
            )
            self.processes[who].start()

    def kill(self, names=None):
        for who in list(self.processes) if names is None else names:
            process = self.processes.pop(who)
            process.kill()
            process.join()

    def join(self, seconds):
        """Wait until all have ended by themselves."""
        for who, process in self.processes.items():
            process.join(seconds)
            assert process.exitcode == 0, (who, process.exitcode, self.notes(who)[-1:])
        self.processes.clear()

    def notes(self, who):
        path = self.folder / f"{self.name}-{who}.jsonl"
        return [json.loads(line)[1:] for line in path.read_text().splitlines()] if path.exists() else []

    def told(self, names):
        return sum(note[0] == "told" for who in names for note in self.notes(who))

    def wait_for(self, names, more, seconds=60.0):
        """Wait until so many more labels are acknowledged, or everybody has ended."""
        wanted, deadline = self.told(names) + more, time.monotonic() + seconds
        while self.told(names) < wanted and any(process.is_alive() for process in self.processes.values()):
            assert time.monotonic() < deadline, f"{self.told(names)} labels only"
            time.sleep(0.01)


def check_nothing_lost(url, name, crew, names, rows):
    """What was acknowledged is in the log once, nothing else is, and the log leads to the same proposals."""
    events = events_of(url, name)
    assert [event["seq"] for event in events] == list(range(len(events)))
    told = [(event["id"], event["label"], event["by"]) for event in events if event["event"] == "told"]
    assert len({item for item, _, _ in told}) == len(told), "a label is there twice"
    acknowledged, tried = set(), set()
    for who in names:
        notes = crew.notes(who)
        assert not [note for note in notes if note[0] == "wrong"]
        acknowledged |= {(note[1], note[2], who) for note in notes if note[0] == "told"}
        # Killed, or told of an error, in the middle of that very call: it may have been kept.
        followed = itertools.pairwise([*notes, ["end"]])
        tried |= {(note[1], note[2], who) for note, then in followed if note[0] == "try" and then[0] != "told"}
    assert acknowledged <= set(told), "an acknowledged label is lost"
    assert set(told) <= acknowledged | tried, "a label was invented"
    _check_leases(events)
    _check_replay(url, name, events, rows)
    return len(acknowledged)


def events_of(url, name):
    with SqlStore(url) as store:
        return list(store.open(name).read())


def _check_leases(events):
    """Nobody gets what somebody has, and nobody gets what has a label."""
    ledger = Ledger()
    for event in events:
        if event["event"] == "asked":
            earlier = ledger.asks.get(event["id"])
            assert earlier is None or earlier.state == "open", f"{event['id']} was served twice"
        ledger.apply(event)


def _check_replay(url, name, events, rows):
    copy = MemoryLog()
    copy.append([{key: value for key, value in event.items() if key != "seq"} for event in events])
    with (
        SqlStore(url) as store,
        Campaign(scene(rows)[0], log=store.open(name)) as campaign,
        Campaign(scene(rows)[0], log=copy) as replay,
    ):
        held = replay._held()
        with contextlib.suppress(StoreError):  # someone else runs the learner
            assert campaign.learner.propose(5, held).rows.tolist() == replay.learner.propose(5, held).rows.tolist()
        assert campaign.labels() == replay.labels()


def open_at_once(url, gate, found):
    """Open a store and make a campaign when everybody is there; say what came of it."""
    gate.wait(60)
    try:
        with SqlStore(url) as store:
            store.create("one")
        found.put("created")
    except BaseException as wrong:
        found.put(f"{type(wrong).__name__}: {wrong}")
