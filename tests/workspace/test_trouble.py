"""What can go wrong around a campaign: one clear line each, and nothing lost."""

import contextlib
import shutil
import sqlite3
import subprocess
import zipfile

import numpy as np
import pytest

from activecover import ActiveCoverError, Campaign, Pool, StoreError
from activecover.cli import main
from activecover.store import SqlStore
from activecover.workspace import Workspace, archive, restore

ROWS = 40


def pool():
    points = np.random.default_rng(0).normal(size=(ROWS, 3))
    return Pool(
        points, ids=[f"r{row}" for row in range(ROWS)], contents={"text": [f"text {row}" for row in range(ROWS)]}
    )


def said(capsys, *words, code=2):
    """What a command says: one line."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == code
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    assert "Traceback" not in lines[0]
    return lines[0]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own, which can be full or not to be written to."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here: it takes one to see a full disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill_up(filler, campaign, told):
    """Label while ever less room is left, until a label does not fit any more."""
    with filler.open("wb", buffering=0) as file:
        while True:
            with contextlib.suppress(OSError):
                file.write(bytes(50_000))
            name = f"r{1 + len(told)}"
            campaign.tell(name, False, note="x" * 3000)
            told.append(name)


def test_a_full_disk(small_disk, capsys):
    with Workspace(small_disk) as home:
        with home.new("one", pool(), explore=5) as campaign:
            campaign.tell("r1", True)
            filler, told = small_disk / "filler", ["r1"]
            with pytest.raises(StoreError) as wrong:
                fill_up(filler, campaign, told)
            assert "full" in str(wrong.value)
            assert "safe" in str(wrong.value)
            assert "\n" not in str(wrong.value)
        assert "full" in said(capsys, "label", "one", "r39=yes", "--note", "y" * 9000, "--home", small_disk)
        filler.unlink()
        # With room again everything goes on; what was acknowledged is there, and nothing else.
        with home.open("one") as campaign:
            assert list(campaign.labels()) == told
            campaign.tell("r30", True)
            assert list(campaign.labels()) == [*told, "r30"]


def test_a_full_disk_while_a_campaign_begins_leaves_nothing(small_disk):
    large = Pool(np.zeros((20_000, 16), np.float32))
    with Workspace(small_disk) as home:
        with pytest.raises(ActiveCoverError, match="full"):
            home.new("one", large)
        assert home.names() == []
        assert not list(small_disk.rglob("*.npy"))
        home.new("two", pool(), explore=5).close()


def test_a_folder_that_may_not_be_written_to(small_disk, capsys):
    with Workspace(small_disk) as home, home.new("one", pool(), explore=5) as campaign:
        campaign.tell("r1", True)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    line = said(capsys, "label", "one", "r2=yes", "--home", small_disk)
    assert "read-only" in line.lower() or "cannot" in line
    said(capsys, "new", "two", "--pool", small_disk / "store.sqlite", "--home", small_disk)
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    with Workspace(small_disk) as home, home.open("one") as campaign:
        assert list(campaign.labels()) == ["r1"]


def test_a_clock_that_goes_backwards(tmp_path):
    now = [1000.0]
    with SqlStore(tmp_path / "store.sqlite") as store:
        with Campaign(pool(), log=store.create("one"), explore=5, lease=60, clock=lambda: now[0]) as campaign:
            first = campaign.ask(by="ann")[0].id
            now[0] = 100.0
            # The lease is not over, nor does it last for a quarter of an hour more once the clock is right.
            assert campaign.ask(by="ann")[0].id == first
            assert campaign.ask(by="bob")[0].id != first
            campaign.tell(first, True, by="ann")
            campaign.undo()
            now[0] = 1061.0
            assert first in [item.id for item in campaign.ask(3, by="bob")]
            times = [event["at"] for event in campaign.history()]
            assert times == sorted(times)
        with Campaign(pool(), log=store.open("one"), lease=60, clock=lambda: 5.0) as campaign:
            campaign.tell("r30", True)
            times = [event["at"] for event in campaign.history()]
            assert times == sorted(times)


@pytest.mark.parametrize("file", ["vectors.npy", "contents.bin", "ids.jsonl", "pool.json"])
def test_a_half_written_file_of_the_pool(tmp_path, capsys, file):
    with Workspace(tmp_path / "home") as home:
        with home.new("one", pool(), explore=5) as campaign:
            campaign.tell("r1", True)
        path = home.pool_folder("one").folder / file
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert file in said(capsys, "next", "one", "--home", tmp_path / "home")
    path.write_bytes(whole)
    with Workspace(tmp_path / "home") as home, home.open("one") as campaign:
        assert list(campaign.labels()) == ["r1"]


def test_a_half_written_database(tmp_path, capsys):
    with Workspace(tmp_path / "home") as home, home.new("one", pool(), explore=5) as campaign:
        campaign.tell("r1", True)
        # Pages of the write-ahead log that did not get to the disk whole were never acknowledged.
        shutil.copytree(
            tmp_path / "home", tmp_path / "copy", ignore=shutil.ignore_patterns("*-shm", "*.turn", "*.brain")
        )
    log = tmp_path / "copy" / "store.sqlite-wal"
    assert log.stat().st_size > 4096
    log.write_bytes(log.read_bytes()[:-100])
    # The file that says how far the campaign had come is only written once they are.
    assert "of 3 events are gone, which had been acknowledged" in said(
        capsys, "next", "one", "--home", tmp_path / "copy"
    )
    (tmp_path / "copy" / "store.sqlite.heads").unlink()
    with Workspace(tmp_path / "copy") as home, home.open("one") as campaign:
        assert list(campaign.labels()) in ([], ["r1"])
        campaign.tell("r2", True)
    path = tmp_path / "home" / "store.sqlite"
    path.write_bytes(path.read_bytes()[:5000])
    assert "store.sqlite" in said(capsys, "next", "one", "--home", tmp_path / "home")


@pytest.mark.parametrize("part", [0, 1, 100, 0.3, 0.5, 0.9, -1])
def test_an_archive_cut_short_anywhere(tmp_path, capsys, part):
    with Workspace(tmp_path / "home") as home:
        with home.new("one", pool(), explore=5) as campaign:
            campaign.tell("r1", True)
        archive(home, "one", tmp_path / "one.zip")
    whole = (tmp_path / "one.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: int(part * len(whole)) if 0 < part < 1 else part])
    line = said(capsys, "restore", tmp_path / "cut.zip", "--home", tmp_path / "other")
    assert "cut.zip" in line
    with Workspace(tmp_path / "other") as other:
        assert other.names() == []
        assert not (tmp_path / "other" / "pools").exists()
        assert restore(other, tmp_path / "one.zip") == "one"


def test_an_archive_of_a_newer_version(tmp_path, capsys):
    with Workspace(tmp_path / "home") as home:
        home.new("one", pool(), explore=5).close()
        archive(home, "one", tmp_path / "one.zip")
    with zipfile.ZipFile(tmp_path / "one.zip") as old, zipfile.ZipFile(tmp_path / "new.zip", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'"format": 2, "hashes"', b'"format": 99, "hashes"'))
    assert "upgrade" in said(capsys, "restore", tmp_path / "new.zip", "--home", tmp_path / "other")


def test_a_store_of_a_newer_version(tmp_path, capsys):
    with Workspace(tmp_path / "home") as home, home.new("one", pool(), explore=5) as campaign:
        campaign.tell("r1", True)
    with sqlite3.connect(tmp_path / "home" / "store.sqlite") as connection:
        (version,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    assert "upgrade activecover" in said(capsys, "next", "one", "--home", tmp_path / "home")
    with sqlite3.connect(tmp_path / "home" / "store.sqlite") as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", [version])
    with Workspace(tmp_path / "home") as home, home.open("one") as campaign:
        assert list(campaign.labels()) == ["r1"]


def test_a_log_with_events_of_a_newer_version(tmp_path, capsys):
    with Workspace(tmp_path / "home") as home:
        home.new("one", pool(), explore=5).close()
        home.store.open("one").append([{"event": "dreamt", "id": "r1"}])
    assert "newer version" in said(capsys, "next", "one", "--home", tmp_path / "home")
