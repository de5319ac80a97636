"""A log that was changed behind the back of the program is found out, wherever it is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from activecover.errors import InputError, StoreError
from activecover.store import START, JsonlLog, MemoryLog, SqlStore, first_break, head_of, heads
from activecover.store._schema import upgrade

EVENTS = [{"event": "told", "id": name, "label": 1, "at": 0.1} for name in ("a", "bé", "c\nd", 'e"f', "g")]
NUMBERED = [{"seq": place, **event} for place, event in enumerate(EVENTS)]
Lines = list[dict[str, Any]]


def changed(lines: Lines) -> None:
    lines[2]["label"] = 0


def dropped(lines: Lines) -> None:
    del lines[1]
    renumber(lines)


def dropped_at_the_start(lines: Lines) -> None:
    del lines[0]
    renumber(lines)


def swapped(lines: Lines) -> None:
    lines[1], lines[2] = lines[2], lines[1]
    renumber(lines)


def appended(lines: Lines) -> None:
    lines.append({"seq": len(lines), "event": "told", "id": "z", "label": 1})


def appended_with_a_hash(lines: Lines) -> None:
    lines.append({**lines[-1], "seq": len(lines)})


def last_one_changed(lines: Lines) -> None:
    lines[-1]["id"] = "other"


def one_hash_removed(lines: Lines) -> None:
    lines[3]["chain"] = ""


def renumber(lines: Lines) -> None:
    for place, line in enumerate(lines):
        line["seq"] = place


TAMPERING = [
    changed, dropped, dropped_at_the_start, swapped, appended, appended_with_a_hash, last_one_changed, one_hash_removed,
]  # fmt: skip


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path):
    place = str(tmp_path / "store.sqlite") if request.param == "sqlite" else request.getfixturevalue("postgres")()
    with SqlStore(place) as opened:
        yield opened


@pytest.mark.parametrize("tamper", TAMPERING)
def test_a_file_that_was_tampered_with(tmp_path: Path, tamper: Callable[[Lines], None]) -> None:
    path = tmp_path / "log.jsonl"
    with JsonlLog(path) as log:
        log.append(EVENTS)
        assert log.verify() == head_of(NUMBERED)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    tamper(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(StoreError, match=r"line \d+: does not fit its hash"):
        JsonlLog(path)


@pytest.mark.parametrize("tamper", TAMPERING)
def test_a_database_that_was_tampered_with(store: SqlStore, tamper: Callable[[Lines], None]) -> None:
    log = store.create("one")
    log.append(EVENTS)
    assert log.verify() == log.head() == head_of(NUMBERED)
    with store._engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT body, chain FROM events ORDER BY seq"))
        lines = [{**json.loads(row.body), "chain": row.chain} for row in rows]
        connection.rollback()
    tamper(lines)
    with store._engine.connect() as connection:
        connection.execute(sa.text("DELETE FROM events"))
        for line in lines:
            chain = line.pop("chain", "")
            connection.execute(
                sa.text("INSERT INTO events (campaign, seq, body, chain) VALUES (1, :seq, :body, :chain)"),
                {"seq": line["seq"], "body": json.dumps(line), "chain": chain},
            )
        connection.commit()
    for read in (log.verify, log.read, store.open("one").read):
        with pytest.raises(StoreError, match=r"event \d+ does not fit its hash|events are missing|last event is not"):
            read()


def test_events_of_an_earlier_version_are_chained_by_the_migration(store: SqlStore) -> None:
    with store._engine.begin() as connection:
        for table in ("sessions", "rights", "people", "wanted", "ready", "events", "campaigns", "alembic_version"):
            connection.execute(sa.text(f"DROP TABLE {table}"))
    with store._engine.connect() as connection:
        upgrade(connection, "0002")
    with store._engine.begin() as connection:
        for number, name in ((1, "old"), (2, "older")):
            connection.execute(
                sa.text("INSERT INTO campaigns (id, name, about, created) VALUES (:number, :name, '{}', 0)"),
                {"number": number, "name": name},
            )
            for event in NUMBERED:
                connection.execute(
                    sa.text("INSERT INTO events (campaign, seq, body) VALUES (:number, :seq, :body)"),
                    {"number": number, "seq": event["seq"], "body": json.dumps(event)},
                )
    with SqlStore(store.url) as opened:
        for name in ("old", "older"):
            log = opened.open(name)
            assert log.verify() == head_of(NUMBERED)
            more = log.append([{"event": "told", "id": "new"}])
            assert log.verify() == head_of([*NUMBERED, *more])


def test_a_file_of_an_earlier_version_is_sealed_by_the_next_event(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in NUMBERED))
    with JsonlLog(path) as log:
        assert log.head() == log.verify() == head_of(NUMBERED)
        log.append([{"event": "told", "id": "new"}])
    path.write_text(path.read_text().replace('"a"', '"b"'))
    with pytest.raises(StoreError, match="line 6: does not fit its hash"):
        JsonlLog(path)


def test_a_chain_has_the_head_whatever_the_log() -> None:
    log = MemoryLog()
    assert log.head() == START
    log.append(EVENTS[:2])
    log.append(EVENTS[2:])
    assert log.verify() == head_of(NUMBERED)
    log._events[1]["id"] = "other"
    with pytest.raises(StoreError, match="changed"):
        log.verify()


def test_an_event_cannot_bring_its_own_hash() -> None:
    with pytest.raises(InputError, match="the name of the hash"):
        MemoryLog().append([{"event": "told", "chain": "x"}])


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=100)
@given(parts=st.lists(_values, min_size=2, max_size=5), at=st.integers(0, 10), value=_values)
def test_any_change_breaks_the_chain_and_json_does_not(parts: list[Any], at: int, value: Any) -> None:
    events = [{"seq": place, "event": "x", "value": part} for place, part in enumerate(parts)]
    try:
        kept = list(heads(events))
    except UnicodeEncodeError:
        return  # no log takes such an event
    again = json.loads(json.dumps(events))
    assert first_break(again, kept) is None
    place = at % len(events)
    if json.dumps(again[place]["value"]) != json.dumps(value):
        again[place]["value"] = value
        try:
            broken = first_break(again, kept)
        except UnicodeEncodeError:
            return
        # 1 and 1.0 are different texts; the same text with its keys in another order is the same event.
        assert broken == place or json.dumps(value, sort_keys=True) == json.dumps(parts[place], sort_keys=True)
