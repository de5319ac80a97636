"""A pool is its ids, vectors and contents: who shares one, and who must not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from activecover import Campaign, InputError, Pool
from activecover.cli import main
from activecover.errors import StoreError
from activecover.pool import PoolFolder
from activecover.store import MemoryLog
from activecover.workspace import Workspace


def table(path: Path, texts: list[str], column: str = "text") -> Path:
    lines = [f"r{row},{row % 3},{row * 7 % 5},{text}" for row, text in enumerate(texts)]
    path.write_text("\n".join([f"id,x,y,{column}", *lines]) + "\n")
    return path


def begin(home: Workspace, name: str, file: Path, **settings) -> None:
    home.new(name, file, embed="columns:x,y", id_column="id", explore=2, **settings).close()


def text_of(home: Workspace, name: str, item: str) -> str | None:
    with home.open(name) as campaign:
        content = campaign.pool.content(campaign.pool.row(item))
        return content.get("text", content.get("words"))


@pytest.fixture
def home(tmp_path):
    with Workspace(tmp_path / "home") as made:
        yield made


def old_scheme(home: Workspace, name: str) -> Path:
    """Put a campaign's pool where earlier versions put it: named by ids and vectors, without a mark."""
    folder = home.pool_folder(name)
    marks = folder.load().fingerprint()
    place = home.folder / "pools" / (marks["ids"][:8] + marks["vectors"][:24])
    folder.folder.rename(place)
    about = home.store.about(name)
    home.store.set_about(name, {**about, "pool": place.relative_to(home.folder).as_posix()})
    return place


def test_files_that_differ_in_what_is_shown_are_different_pools(home, tmp_path):
    first = table(tmp_path / "f1.csv", [f"first {row}" for row in range(6)])
    second = table(tmp_path / "f2.csv", [f"second {row}" for row in range(6)])
    begin(home, "a", first)
    begin(home, "b", second)
    begin(home, "c", table(tmp_path / "f3.csv", [f"first {row}" for row in range(6)], column="words"))
    begin(home, "d", first, show=["text"])
    assert (text_of(home, "a", "r3"), text_of(home, "b", "r3")) == ("first 3", "second 3")
    assert text_of(home, "c", "r3") == "first 3"
    assert len({home.store.about(name)["pool"] for name in "abcd"}) == 4
    begin(home, "e", first)
    assert home.store.about("e")["pool"] == home.store.about("a")["pool"]
    home.withdraw("a", ["r3"])
    assert (text_of(home, "a", "r3"), text_of(home, "b", "r3")) == (None, "second 3")


def test_a_pool_of_an_earlier_version_is_shared_by_what_is_the_same_and_by_nothing_else(home, tmp_path):
    first = table(tmp_path / "f1.csv", [f"first {row}" for row in range(6)])
    begin(home, "a", first)
    place = old_scheme(home, "a")
    begin(home, "b", table(tmp_path / "f2.csv", [f"second {row}" for row in range(6)]))
    assert text_of(home, "b", "r3") == "second 3"
    begin(home, "c", first)
    assert home.pool_folder("c").folder == place
    assert text_of(home, "a", "r3") == "first 3"


def test_a_pool_that_has_grown_or_lost_rows_is_another_pool(home, tmp_path):
    file = table(tmp_path / "f.csv", [f"first {row}" for row in range(6)])
    begin(home, "a", file)
    home.withdraw("a", ["r3"])
    begin(home, "b", file)
    assert (text_of(home, "a", "r3"), text_of(home, "b", "r3")) == (None, "first 3")
    more = tmp_path / "more.csv"
    more.write_text("id,x,y,text\nn1,0,0,new\n")
    home.add_rows("b", more)
    begin(home, "c", file)
    assert home.pool_folder("c").rows == 6
    assert home.pool_folder("b").rows == 7


def test_contents_that_differ_are_found_when_a_campaign_is_opened(home, tmp_path):
    begin(home, "a", table(tmp_path / "f1.csv", [f"first {row}" for row in range(6)]))
    begin(home, "b", table(tmp_path / "f2.csv", [f"second {row}" for row in range(6)]))
    mine, other = home.pool_folder("a").folder, home.pool_folder("b").folder
    shutil.rmtree(mine)
    shutil.copytree(other, mine)
    with pytest.raises(InputError, match="its contents differ"):
        home.open("a")
    # Also when rows are erased, and the hashes of all rows do not hold any more.
    PoolFolder(mine).erase([1])
    with pytest.raises(InputError, match="its contents differ"):
        home.open("a")


@pytest.mark.parametrize("how", ["plain", "withdrawn", "forgets"])
def test_a_changed_letter_is_found_when_a_campaign_is_opened(home, tmp_path, how):
    begin(home, "a", table(tmp_path / "f.csv", ["letter"] * 6), forget_negatives=how == "forgets")
    if how == "withdrawn":
        home.withdraw("a", ["r3"])
    elif how == "forgets":
        with home.open("a") as campaign:
            campaign.tell(["r1", "r2"], [False, False])
        assert home.forget("a", window=0) == ["r1", "r2"]
    home.open("a").close()
    place = home.pool_folder("a").folder / "contents.bin"
    place.write_bytes(place.read_bytes().replace(b"letter", b"lester", 1))
    with pytest.raises((StoreError, InputError), match=r"contents"):
        home.open("a")


def test_a_log_of_an_earlier_version_says_nothing_of_contents_and_still_opens():
    pool, log = Pool([[0.0], [1.0]], ids=["a", "b"], contents={"text": ["x", "y"]}), MemoryLog()
    other = Pool([[0.0], [1.0]], ids=["a", "b"], contents={"text": ["x", "z"]})
    Campaign(pool, "explore-commit", log=log).close()
    with pytest.raises(InputError, match="contents differ"):
        Campaign(other, log=log)
    events = [{key: value for key, value in event.items() if key != "seq"} for event in log.read()]
    assert len(events[0]["pool"].pop("contents")) == 32
    before = MemoryLog()
    before.append(events)
    Campaign(other, log=before).close()


_INTAKE = """
import sys, time
from activecover.workspace import Workspace, _workspace
real = _workspace.make_pool
def slow(*given, **named):
    made = real(*given, **named)
    print("taken in", flush=True)
    time.sleep(600)
_workspace.make_pool = slow
Workspace(sys.argv[1]).new("a", sys.argv[2], embed="columns:x,y", id_column="id")
"""


def test_what_a_killed_process_took_in_is_swept_when_the_home_is_opened(tmp_path):
    file = table(tmp_path / "f.csv", [f"secret {row}" for row in range(6)])
    Workspace(tmp_path / "home").close()
    command = [sys.executable, "-c", _INTAKE, str(tmp_path / "home"), str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "taken in\n"
    inside = lambda: [path.name for path in (tmp_path / "home").iterdir() if path.name.startswith(".intake-")]  # noqa: E731
    Workspace(tmp_path / "home").close()
    assert len(inside()) == 1, "the files of a live process are its own"
    process.kill()
    process.communicate()
    Workspace(tmp_path / "home").close()
    assert inside() == []


def three(home: Workspace, tmp_path: Path) -> None:
    """Campaigns a and b share a pool; c has the same items with another vector, other contents beside."""
    file = table(tmp_path / "f.csv", [f"letter {row}" for row in range(6)])
    begin(home, "a", file)
    begin(home, "b", file)
    home.new("c", file, embed="columns:x", id_column="id", explore=2).close()
    begin(home, "d", table(tmp_path / "g.csv", ["other"] * 6).rename(tmp_path / "h.csv"), show=["id", "text"])
    assert home.store.about("a")["pool"] == home.store.about("b")["pool"]


def test_withdrawing_erases_where_it_was_asked_and_says_who_holds_the_same(home, tmp_path):
    three(home, tmp_path)
    done = home.withdraw("a", ["r3"])
    assert done.erased == {"a": ["r3"]}
    assert done.held == {"b": ["r3"], "c": ["r3"], "d": ["r3"]}
    assert [text_of(home, name, "r3") for name in "abcd"] == [None, "letter 3", "letter 3", "other"]
    assert b"letter 3" not in (home.pool_folder("a").folder / "contents.bin").read_bytes()
    for name in "abcd":
        home.pool_folder(name).verify()
        with home.open(name) as campaign:
            assert [event["id"] for event in campaign.history() if event["event"] == "withdrawn"] == ["r3"] * (
                name == "a"
            )
    # The folder that they shared is b's alone now, and stays where it is.
    place = home.store.about("b")["pool"]
    assert home.withdraw("b", ["r3"]).held == {"c": ["r3"], "d": ["r3"]}
    assert home.store.about("b")["pool"] == place
    assert text_of(home, "b", "r3") is None


def test_withdrawing_everywhere_copies_nothing_and_leaves_no_byte(home, tmp_path):
    three(home, tmp_path)
    before = {path.name for path in (home.folder / "pools").iterdir()}
    done = home.withdraw("a", ["r3", "r5"], everywhere=True)
    assert {name: sorted(items) for name, items in done.erased.items()} == {key: ["r3", "r5"] for key in "abcd"}
    assert done.held == {}
    assert {path.name for path in (home.folder / "pools").iterdir()} == before
    raw = b"".join(path.read_bytes() for path in home.folder.rglob("*") if path.is_file())
    assert b"letter 3" not in raw
    assert b"letter 2" in raw
    for name in "abcd":
        with home.open(name) as campaign:
            assert campaign.pool.withdrawn[campaign.pool.rows(["r3", "r5"])].all()


def test_a_campaign_that_is_open_elsewhere_follows_its_pool(home, tmp_path):
    three(home, tmp_path)
    more = tmp_path / "more.csv"
    more.write_text("id,x,y,text\nn1,0,0,new\n")
    with Workspace(home.folder) as other, other.open("a") as live, other.open("b") as sharing:
        home.withdraw("a", ["r3"])
        home.add_rows("a", more)
        assert live.status().rows == 7
        assert live.pool.content(3)["text"] is None
        assert live.pool.content(6)["text"] == "new"
        assert live.pool.folder.folder == home.pool_folder("a").folder
        assert sharing.status().rows == 6
        assert sharing.pool.content(3)["text"] == "letter 3"
    home.open("a").close()
    home.open("b").close()


def test_a_crash_while_withdrawing_never_reaches_another_campaign(home, tmp_path, monkeypatch):
    three(home, tmp_path)
    monkeypatch.setattr(PoolFolder, "erase", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        home.withdraw("a", ["r3"])
    monkeypatch.undo()
    assert text_of(home, "b", "r3") == "letter 3"
    home.open("a").close()
    assert [text_of(home, name, "r3") for name in "ab"] == [None, "letter 3"]


def test_the_command_says_what_is_left_to_do(home, tmp_path, capsys):
    three(home, tmp_path)
    home.close()
    assert main(["withdraw", "a", "r3", "--home", str(home.folder)]) == 0
    said = capsys.readouterr().out
    assert "a: 1 erased" in said
    assert "b holds the same: activecover withdraw b r3" in said
    assert main(["withdraw", "a", "r4", "--everywhere", "--home", str(home.folder)]) == 0
    said = capsys.readouterr().out
    assert "b: 1 erased" in said
    assert "holds" not in said
    assert main(["withdraw", "a", "zzz", "--home", str(home.folder)]) == 2
    assert "'zzz' is not in the pool" in capsys.readouterr().err
