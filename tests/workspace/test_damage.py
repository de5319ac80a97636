"""Bits that flip and labels that change in what is stored: found on opening, in one line, never used."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from activecover import Campaign
from activecover.errors import InputError, StoreError
from activecover.pool import Pool
from activecover.store import JsonlLog
from activecover.workspace import Workspace

TIMES = pytest.mark.parametrize("times", [40, pytest.param(300, marks=pytest.mark.deep)])
Events = list[dict[str, Any]]
#: What an SQLite store leaves behind when the machine stops: its index of the log is made anew.
SQLITE = ("store.sqlite", "store.sqlite-wal", "store.sqlite.heads")


def table(path: Path) -> Path:
    path.write_text("id,weight,doors\n" + "".join(f"car{n},{900 + n * 7 % 400},{n % 5}\n" for n in range(60)))
    return path


def label(campaign: Campaign, count: int) -> None:
    for _ in range(count):
        (item,) = campaign.ask(by="ann")
        campaign.tell(item.id, int(item.id[3:]) % 3 == 0, by="ann", note="seen")


def fill(home: Workspace, file: Path) -> None:
    """A campaign with some 60 events."""
    with home.new("cars", file, learner="explore-commit", explore=5, known=["car0"], id_column="id") as campaign:
        label(campaign, 30)


def read_home(folder: Path, store: str | None = None) -> Events:
    """The events of a home's campaign as it opens them, still so after one more label."""
    with Workspace(folder, store) as home, home.open("cars") as campaign:
        events = list(campaign.log.read())
        asked = [event["id"] for event in events if event["event"] == "asked"]
        (item,) = campaign.ask(by="bob")
        assert item.id not in asked
        campaign.tell(item.id, False, by="bob")
        assert list(campaign.log.read())[: len(events)] == events
        return events


def found(read: Callable[[], Events], truth: Events) -> bool:
    """Whether damage was found; where it was not, the events must be what they were."""
    try:
        events = read()
    except (StoreError, InputError) as wrong:
        said = str(wrong)
    else:
        assert events == truth
        return False
    assert len(said.splitlines()) == 1
    return True


def flip(path: Path, chance: random.Random) -> None:
    """Flip one to three bits of a file."""
    data = bytearray(path.read_bytes())
    for _ in range(chance.randint(1, 3)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Callable[[bool], tuple[Path, Events]]]:
    """Makes a home with a campaign, closed properly or as a crash leaves it; its folder and events."""
    opened = []

    def make(crashed: bool) -> tuple[Path, Events]:
        live, left = tmp_path / "live", tmp_path / "left"
        opened.append(Workspace(live))
        # SQLite empties its log when the last of its connections is closed.
        with opened[0].store._engine.connect() as connection:
            connection.execute(sa.text("SELECT count(*) FROM events")).all()
            fill(opened[0], table(tmp_path / "cars.csv"))
            with opened[0].open("cars") as campaign:
                events = list(campaign.log.read())
            if not crashed:
                connection.close()
                opened[0].close()
            shutil.copytree(live, left, ignore=shutil.ignore_patterns("*-shm"))
        assert (left / "store.sqlite-wal").exists() == crashed
        return left, events

    yield make
    for one in opened:
        one.close()


def restore(files: dict[Path, bytes]) -> None:
    for path in files:
        for beside in path.parent.glob("store.sqlite*"):
            beside.unlink()
    for path, data in files.items():
        path.write_bytes(data)


@TIMES
@pytest.mark.parametrize("part", ["store.sqlite", "store.sqlite-wal"])
def test_flipped_bits_in_sqlite(home: Any, part: str, times: int) -> None:
    folder, truth = home(part.endswith("-wal"))
    files = {folder / name: (folder / name).read_bytes() for name in SQLITE if (folder / name).exists()}
    assert not found(lambda: read_home(folder), truth)
    caught = 0
    for seed in range(times):
        restore(files)
        flip(folder / part, random.Random(f"{part} {seed}"))
        caught += found(lambda: read_home(folder), truth)
    assert caught > times / 20


@pytest.mark.parametrize("name", ["campaigns", "events", "ready"])
def test_the_name_of_a_table_that_is_no_text_any_more(home: Any, name: str) -> None:
    """SQLite says which table is damaged, in bytes that Python cannot read."""
    folder, truth = home(False)
    data = (folder / "store.sqlite").read_bytes()
    for old, new in ((f"CREATE TABLE {name}", f"CREATE TABLF {name}"), (f"{name}{name}", f"{name[:-1]}\xd4{name}")):
        assert old.encode() in data
        data = data.replace(old.encode(), new.encode("latin-1"))
    (folder / "store.sqlite").write_bytes(data)
    assert found(lambda: read_home(folder), truth)


@TIMES
def test_flipped_bits_in_a_file_of_events(tmp_path: Path, times: int) -> None:
    path = tmp_path / "events.jsonl"

    def campaign() -> Campaign:
        pool = Pool([[float(n * 7 % 40), float(n % 5)] for n in range(60)], ids=[f"car{n}" for n in range(60)])
        return Campaign(pool, learner="explore-commit", explore=5, known=["car0"], log=path)

    def read() -> Events:
        with campaign() as opened:
            return list(opened.log.read())

    def read_log() -> Events:
        with JsonlLog(path) as log:
            return list(log.read())

    with campaign() as opened:
        label(opened, 30)
    truth, data = read(), path.read_bytes()
    places = [random.Random(f"jsonl {seed}") for seed in range(times)]
    caught = 0
    for chance in places:
        path.write_bytes(data)
        flip(path, chance)
        caught += found(read, truth)
    assert caught > times / 2
    # The last line is special: a crash may cut it short.
    for place, bits in product(range(len(data) - data[:-1].rfind(b"\n")), range(256)):
        if bits.bit_count() in ((1, 2) if place < 3 else (1,)):
            flipped = bytearray(data)
            flipped[-1 - place] ^= bits
            path.write_bytes(flipped)
            found(read_log, truth)


def test_a_line_feed_that_became_a_zero_is_put_back(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with JsonlLog(path) as log:
        log.append([{"event": "told", "id": "a"}])
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    with JsonlLog(path) as log:
        log.append([{"event": "told", "id": "b"}])
    with JsonlLog(path) as log:
        assert [event["id"] for event in log.read()] == ["a", "b"]


def change_a_label(connection: sa.Connection, chance: random.Random) -> None:
    """Turn around one label, as somebody with access to the database would."""
    rows = connection.execute(sa.text("""SELECT seq, body FROM events WHERE body LIKE '%"told"%'""")).all()
    row = chance.choice(list(rows))
    event = json.loads(row.body)
    event["label"] = 1 - event["label"]
    text = json.dumps(event, sort_keys=True, separators=(",", ":"))
    connection.execute(sa.text("UPDATE events SET body = :text WHERE seq = :seq"), {"text": text, "seq": row.seq})


@TIMES
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_changed_labels_in_a_database(tmp_path: Path, request: pytest.FixtureRequest, kind: str, times: int) -> None:
    url = None if kind == "sqlite" else request.getfixturevalue("postgres")()
    with Workspace(tmp_path / "home", url) as home:
        fill(home, table(tmp_path / "cars.csv"))
        engine = home.store._engine
        for seed in range(times):
            with engine.connect() as connection:
                if kind == "sqlite":
                    connection.exec_driver_sql("BEGIN")
                before = connection.execute(sa.text("SELECT seq, body FROM events")).all()
                change_a_label(connection, random.Random(f"label {seed}"))
                if kind == "sqlite":
                    connection.exec_driver_sql("COMMIT")
                connection.commit()
            with pytest.raises(StoreError, match=r"event \d+ does not fit its hash") as wrong:
                home.open("cars")
            assert len(str(wrong.value).splitlines()) == 1
            with engine.begin() as connection:
                for row in before:
                    connection.execute(
                        sa.text("UPDATE events SET body = :body WHERE seq = :seq"), {"seq": row.seq, "body": row.body}
                    )
        home.open("cars").close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize(
    ("setting", "value"),
    [("pool", "../victim"), ("pool", "pools/../../victim"), ("pool", "own/.."), ("pool", "absolute"), ("pool", None),
     ("outside", "../victim/letter.txt"), ("outside", "outside/other.npz")],
)  # fmt: skip
def test_places_in_a_database_do_not_lead_out_of_the_home(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, setting: str, value: str | None
) -> None:
    """Seals have no key: somebody who may write to the database alone has no business with the server's files."""
    url = None if kind == "sqlite" else request.getfixturevalue("postgres")()
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "letter.txt").write_text("dear diary")
    with Workspace(tmp_path / "home", url) as home:
        fill(home, table(tmp_path / "cars.csv"))
        about = home.store.about("cars") | {setting: str(victim) if value == "absolute" else value}
        home.store.set_about("cars", about)
        for use in (home.open, home.remove, home.pool_folder, lambda name: home.withdraw(name, ["car3"])):
            with pytest.raises(StoreError, match="its settings cannot be") as wrong:
                use("cars")
            assert len(str(wrong.value).splitlines()) == 1
    assert (victim / "letter.txt").read_text() == "dear diary"


@TIMES
def test_changed_labels_in_a_file_of_events(tmp_path: Path, times: int) -> None:
    path = tmp_path / "events.jsonl"
    with JsonlLog(path) as log:
        log.append([{"event": "told", "id": f"car{n}", "label": n % 2, "by": "ann"} for n in range(30)])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for seed in range(times):
        chance = random.Random(f"label {seed}")
        changed = chance.choice(lines)
        changed["label"] = 1 - changed["label"]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        with pytest.raises(StoreError, match=rf"line {changed['seq'] + 1}: does not fit its hash"):
            JsonlLog(path)
        changed["label"] = 1 - changed["label"]


@pytest.mark.parametrize("times", [5, pytest.param(100, marks=pytest.mark.deep)])
@pytest.mark.parametrize(
    "part", ["withdrawn.npy", "pool.json", "origin.npy", "contents.bin", "offsets.npy", "ids.jsonl", "vectors.npy"]
)
def test_flipped_bits_in_a_pool(tmp_path: Path, part: str, times: int) -> None:
    with Workspace(tmp_path / "home") as home:
        fill(home, table(tmp_path / "cars.csv"))
        path = home.pool_folder("cars").folder / part

    def read() -> Events:
        """The log, and what people would see."""
        with Workspace(tmp_path / "home") as home, home.open("cars") as campaign:
            pool = campaign.pool
            shown = [{"id": pool.id(row), **pool.content(row)} for row in range(len(pool))]
            return [*campaign.log.read(), *shown]

    truth, data = read(), path.read_bytes()
    for seed in range(times):
        path.write_bytes(data)
        flip(path, random.Random(f"{part} {seed}"))
        found(read, truth)
