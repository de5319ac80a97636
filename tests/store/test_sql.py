"""Events in a database: the log's contract, turns, the brain, earlier schemas, bad input."""

import json
import sqlite3

import pytest
import sqlalchemy as sa

from activecover.errors import InputError, StoreError
from activecover.store import START, Ready, SqlStore
from activecover.store._chain import link
from activecover.store._local import check_local, file_system
from activecover.store._schema import REVISIONS, upgrade
from activecover.store._sealed import seal_of
from activecover.testing import check_log


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite")
    return request.getfixturevalue("postgres")()


@pytest.fixture
def store(url):
    with SqlStore(url) as opened:
        yield opened


def test_contract(store):
    check_log(lambda: store.create("one"), reopen=lambda: store.open("one"))


def test_durable_settings(store):
    assert store.durable in ("journal_mode=wal, synchronous=2", "synchronous_commit=on")


def test_campaigns_keep_apart(store):
    first, second = store.create("first", {"pool": "p"}), store.create("second")
    first.append([{"event": "told", "id": "a"}])
    assert (len(first), len(second)) == (1, 0)
    assert store.names() == ["first", "second"]
    assert store.about("first") == {"pool": "p"}
    store.remove("first")
    assert store.names() == ["second"]


@pytest.mark.parametrize("name", ["", "a/b", ".hidden", "a\nb"])
def test_a_name_that_is_none(store, name):
    with pytest.raises(InputError, match="no name for a campaign"):
        store.create(name)


def test_names_are_unique_and_unknown_ones_named(store):
    store.create("one")
    with pytest.raises(InputError, match="already"):
        store.create("one")
    with pytest.raises(InputError, match=r"no campaign 'two' \(there are: one\)"):
        store.open("two")


def test_a_turn_is_kept_whole_or_not_at_all(store):
    log = store.create("one")

    def fail_in_a_turn():
        with log.turn():
            log.append([{"event": "told", "id": "a"}])
            assert len(log) == 1
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_in_a_turn()
    assert len(log) == 0
    with log.turn():
        log.append([{"event": "told", "id": "a"}])
        log.append([{"event": "told", "id": "b"}])
    assert [event["id"] for event in store.open("one").read()] == ["a", "b"]


def test_one_brain_at_a_time(store):
    store.create("one")
    first, second = store.open("one"), store.open("one")
    assert first.try_brain()
    assert first.try_brain()
    assert not second.try_brain()
    first.close()
    assert second.try_brain()


def test_proposals_are_taken_once_and_not_when_they_are_old(store):
    log = store.create("one")
    log.put_ready([Ready("a", "learner", 3, 1.0, "x"), Ready("b", "explore", 5, 0.1, None)])
    log.want("ann", 2)
    assert log.demand() == (2, 2)
    assert [one.id for one in log.take_ready(5, oldest=4)] == ["b"]
    assert log.take_ready(1, oldest=0) == [Ready("a", "learner", 3, 1.0, "x")]
    assert log.take_ready(1, oldest=0) == []
    log.put_ready([])
    assert log.demand() == (0, 0)


def insert(connection, table, row):
    """Add a row to a table that may have other columns than it has today."""
    connection.execute(sa.table(table, *map(sa.column, row)).insert().values(row))


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_earlier_schema_is_opened(url, revision):
    with SqlStore(url) as store:
        engine = store._engine
        with engine.begin() as connection:
            for table in ("sessions", "rights", "people", "wanted", "ready", "events", "campaigns", "alembic_version"):
                connection.execute(sa.text(f"DROP TABLE {table}"))
        with engine.connect() as connection:
            upgrade(connection, revision)
        event = {"seq": 0, "event": "told", "id": "a"}
        campaign = {"id": 1, "name": "old", "about": "{}", "created": 0}
        row = {"campaign": 1, "seq": 0, "body": json.dumps(event)}
        if revision >= "0003":
            row["chain"] = link(START, event)
        if revision >= "0004":
            campaign |= {"length": 1, "head": row["chain"], "seal": seal_of("old", "{}")}
        with engine.begin() as connection:
            insert(connection, "campaigns", campaign)
            insert(connection, "events", row)
    with SqlStore(url) as store:
        log = store.open("old")
        assert [event["id"] for event in log.read()] == ["a"]
        log.put_ready([Ready("b", "learner", 0, 1.0, None)])
        assert log.append([{"event": "told", "id": "c"}])[0]["seq"] == 1


def test_a_newer_schema_is_refused(url):
    with SqlStore(url) as store, store._engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match=r"schema 9999.*newer version.*upgrade"):
        SqlStore(url)


def test_a_closed_log_says_so(store):
    log = store.create("one")
    log.close()
    with pytest.raises(StoreError, match="closed"):
        log.append([{"event": "told"}])


@pytest.mark.parametrize(
    ("path", "words"),
    [("missing/store.sqlite", "no folder"), (".", "is a folder")],
)
def test_bad_places(tmp_path, path, words):
    with pytest.raises(InputError, match=words):
        SqlStore(tmp_path / path)


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "store.sqlite").write_bytes(b"not a database at all, but long enough to be looked at" * 20)
    with pytest.raises(StoreError, match="not a database"):
        SqlStore(tmp_path / "store.sqlite")


def test_a_read_only_file(tmp_path):
    path = tmp_path / "store.sqlite"
    SqlStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    with pytest.raises(InputError, match="no store"):
        SqlStore("mysql+nothing://x")


def test_network_file_systems_are_refused(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/home {tmp_path} nfs4 rw 0 0\n")
    assert file_system(tmp_path / "store.sqlite", mounts) == "nfs4"
    with pytest.raises(InputError, match=r"network file system \(nfs4\).*PostgreSQL"):
        check_local(tmp_path / "store.sqlite", mounts)
    mounts.write_text("/dev/sda1 / ext4 rw 0 0\n")
    check_local(tmp_path / "store.sqlite", mounts)
