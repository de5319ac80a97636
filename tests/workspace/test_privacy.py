"""Negatives are forgotten by themselves, everywhere, and what is left says nothing of them."""

import sqlite3
import zipfile
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from scipy import sparse

from activecover import InputError, Pool
from activecover.campaign import UNDO_WINDOW
from activecover.cli import main
from activecover.pool import Duplicates, PackedBits, PoolFolder
from activecover.store import _sql, events
from activecover.workspace import Workspace, archive, export_labels, privacy_check

pytestmark = pytest.mark.usefixtures("own_temporary")

ROWS, POSITIVE = 60, 12


@pytest.fixture(params=["sqlite", "postgres"])
def make_home(request, tmp_path):
    """Homes of one kind of store, closed at the end."""
    homes = []

    def make(name):
        store = None if request.param == "sqlite" else request.getfixturevalue("postgres")()
        homes.append(Workspace(tmp_path / name, store))
        return homes[-1]

    yield make
    for home in homes:
        home.close()


def points(seed=0):
    """Positives first, in a cluster; the others are somewhere else."""
    random = np.random.default_rng(seed)
    near = np.random.default_rng(1).normal(scale=0.2, size=(POSITIVE, 4))
    return np.concatenate([near, random.uniform(3, 9, size=(ROWS - POSITIVE, 4))]).astype(np.float32)


def texts(secret):
    return [f"wanted {row}" if row < POSITIVE else f"{secret} of number {row}" for row in range(ROWS)]


def pool_of(kind="dense", seed=0, secret="secret"):
    vectors = points(seed)
    if kind == "sparse":
        vectors = sparse.csr_array(vectors)
    if kind == "bits":
        bits = np.random.default_rng(seed).random((ROWS, 256)) < 0.4
        bits[:POSITIVE] = np.random.default_rng(1).random((POSITIVE, 256)) < 0.1
        vectors = PackedBits(np.packbits(bits, axis=1), 256)
    metric = "jaccard" if kind == "bits" else "euclidean"
    names = [f"r{row}" for row in range(ROWS)]
    return Pool(vectors, ids=names, metric=metric, contents={"text": texts(secret)})


def markers_of(pool):
    """What the files hold of each negative: its text, and its vector as it is stored."""
    found = {}
    for row in range(POSITIVE, ROWS):
        stored = pool.take([row])
        values = stored.data if pool.kind == "sparse" else stored
        found[row] = [pool.content(row)["text"].encode(), np.ascontiguousarray(values).tobytes()]
    return found


def label(campaign, count):
    for _ in range(count):
        (item,) = campaign.ask()
        campaign.tell(item.id, int(item.id[1:]) < POSITIVE)


def server_files(home):
    """The files of the database server, where there is one: its write-ahead log is among them."""
    if home.store.path is not None:
        return []
    with home.store._engine.connect() as connection:
        connection.exec_driver_sql("COMMIT")
        connection.execute(sa.text("CHECKPOINT"))
        return [Path(connection.scalar(sa.text("SHOW data_directory")))]


def test_what_is_final_is_forgotten_while_people_label(make_home):
    home = make_home("home")
    with home.new("one", pool_of(), explore=0, known=["r0"], forget_negatives=True) as campaign:
        label(campaign, POSITIVE - 1)
        assert campaign.eraser.status().forgotten == []
        label(campaign, 2 * UNDO_WINDOW)
        gone = campaign.eraser.status().forgotten
        assert len(gone) == UNDO_WINDOW
        assert campaign.pool.withdrawn[campaign.pool.rows(gone)].all()
        assert PoolFolder(home.folder / "own" / "one").load().withdrawn.sum() == len(gone)
        # What can be undone still has its vector; what cannot is refused in one line.
        assert len(campaign.undo(UNDO_WINDOW)) == UNDO_WINDOW
        with pytest.raises(InputError, match="forgotten"):
            campaign.undo()
        campaign.release()
        label(campaign, 18)
    with home.open("one") as campaign:
        negatives = [name for name, yes in campaign.labels().items() if not yes]
        assert len(negatives) - len(campaign.eraser.status().forgotten) == UNDO_WINDOW
        label(campaign, len(campaign.pool) - 1 - campaign.status().labelled)
        assert campaign.status().positives == POSITIVE - 1


@pytest.mark.parametrize("kind", ["dense", "sparse", "bits"])
def test_every_planted_marker_is_seen_before_and_none_after(make_home, tmp_path, kind):
    home, pool = make_home("home"), pool_of(kind)
    markers = markers_of(pool)
    everything = [marker for each in markers.values() for marker in each]
    home.new("one", pool, explore=0, known=["r0"], forget_negatives=True).close()
    archive(home, "one", tmp_path / "before.zip")
    also = [tmp_path / "before.zip", *server_files(home)]
    seen = privacy_check(home, "one", everything, also)
    for row, each in markers.items():
        for marker in each:
            assert sum(line.endswith(f": {marker!r}") for line in seen.found) >= 2, row
    (tmp_path / "before.zip").unlink()
    with home.open("one") as campaign:
        label(campaign, ROWS - 1)
    home.forget("one", window=0)
    with home.open("one") as campaign:
        export_labels(campaign, tmp_path / "out.csv", "all")
    archive(home, "one", tmp_path / "after.zip")
    report = privacy_check(home, "one", everything, [tmp_path / "out.csv", tmp_path / "after.zip", *server_files(home)])
    assert report.found == []
    assert report.forgotten == report.negatives == ROWS - POSITIVE
    assert report.files > 5


def test_the_write_ahead_log_is_among_what_is_looked_at(tmp_path):
    with Workspace(tmp_path / "home") as home:
        with home.new("one", pool_of(), explore=5, forget_negatives=True) as campaign:
            campaign.tell(campaign.ask()[0].id, False, note="a remark that is no secret")
            assert (tmp_path / "home" / "store.sqlite-wal").stat().st_size
            report = privacy_check(home, "one", [b"a remark that is no secret"])
        assert any(line.startswith("store.sqlite-wal: ") for line in report.found)


def test_files_that_a_database_server_drops_meanwhile_are_passed_over(tmp_path, monkeypatch):
    with Workspace(tmp_path / "home") as home:
        home.new("one", pool_of(), explore=5, forget_negatives=True).close()
        before = privacy_check(home, "one", [b"nowhere"])
        monkeypatch.setattr("activecover.workspace._privacy._inside", lambda places: places)
        for markers in ([b"nowhere"], []):
            report = privacy_check(home, "one", markers, [tmp_path / "pg_internal.init"])
            assert (report.files, report.found) == (before.files, [])


def decoded(home, name, folder):
    """All that a store, its files, an archive and an export say."""
    tables = {}
    with home.store._engine.connect() as connection:
        found = sa.MetaData()
        found.reflect(connection)
        for table in sorted(found.tables):
            order = list(found.tables[table].columns)
            tables[table] = [tuple(row) for row in connection.execute(sa.select(found.tables[table]).order_by(*order))]
    pool = home.pool_folder(name).load()
    with home.open(name) as campaign:
        export_labels(campaign, folder / f"{name}.csv", "all")
        status = campaign.status()
    archive(home, name, folder / f"{name}.zip")
    with zipfile.ZipFile(folder / f"{name}.zip") as file:
        # Each home signs with a key of its own.
        packed = {each: file.read(each) for each in file.namelist() if each != "signature.json"}
    vectors = pool.vectors.toarray() if pool.kind == "sparse" else np.array(pool.vectors)
    return {
        "tables": tables,
        "ids": pool.ids,
        "vectors": vectors.tobytes(),
        "withdrawn": pool.withdrawn.tolist(),
        "contents": [pool.content(row) for row in range(len(pool))],
        "about": home.pool_folder(name).about,
        "files": sorted(path.name for path in home.pool_folder(name).files()),
        "export": (folder / f"{name}.csv").read_text(),
        "archive": packed,
        "status": status,
    }


@pytest.mark.parametrize("kind", ["dense", "sparse", "bits"])
@pytest.mark.parametrize("grouped", [False, True])
def test_two_that_differ_in_their_negatives_only_leave_the_same(make_home, tmp_path, monkeypatch, kind, grouped):
    monkeypatch.setattr(_sql.time, "time", lambda: 1e9)
    said = []
    for seed, secret in ((5, "secret"), (6, "something quite different and longer")):
        home = make_home(f"home{seed}")
        (tmp_path / str(seed)).mkdir()
        # Rows in an order that chance alone decides: else their vectors would, and the order is what is asked.
        settings = {"explore": ROWS, "seed": 3, "clock": lambda: 1e9, "forget_negatives": True}
        if grouped:
            settings |= {"duplicates": True, "same": ["text"]}
        with home.new("one", pool_of(kind, seed, secret), **settings) as campaign:
            label(campaign, ROWS)
        with home.open("one", clock=lambda: 1e9) as campaign:
            campaign.forget(window=0)
        said.append(decoded(home, "one", tmp_path / str(seed)))
    first, second = said
    for what, value in first.items():
        assert value == second[what], what


def test_the_same_before_forgetting_is_not(make_home, tmp_path, monkeypatch):
    """The comparison above can fail."""
    monkeypatch.setattr(_sql.time, "time", lambda: 1e9)
    said = []
    for seed in (5, 6):
        home = make_home(f"home{seed}")
        (tmp_path / str(seed)).mkdir()
        with home.new("one", pool_of(seed=seed), explore=ROWS, seed=3, clock=lambda: 1e9, forget_negatives=True) as one:
            label(one, UNDO_WINDOW)
        said.append(decoded(home, "one", tmp_path / str(seed)))
    assert {what for what, value in said[0].items() if value != said[1][what]} == {"vectors", "archive"}


@pytest.mark.parametrize("learner", ["explore-commit", "density-commit", "spread-commit", "auto-positives"])
def test_forgetting_does_not_change_what_is_asked(tmp_path, learner):
    """Also where a learner rests on statistics of the whole pool, and is opened anew again and again."""
    orders = []
    for forget in (False, True):
        with Workspace(tmp_path / f"forget-{forget}") as home:
            home.new("one", pool_of(), learner=learner, explore=5, seed=1, forget_negatives=forget).close()
            order = []
            while len(order) < ROWS - 5:
                with home.open("one") as campaign:
                    for _ in range(5):
                        order.append(campaign.ask()[0].id)
                        campaign.tell(order[-1], int(order[-1][1:]) < POSITIVE)
                if forget:
                    home.forget("one", window=0)
            orders.append(order)
    assert orders[0] == orders[1]


def test_statistics_say_nothing_of_what_is_erased(tmp_path):
    with Workspace(tmp_path / "home") as home:
        with home.new("one", pool_of(), learner="density-commit", explore=5, forget_negatives=True) as campaign:
            label(campaign, 40)
        home.forget("one", window=0)
        folder = home.pool_folder("one")
        folder.verify()
        pool = folder.load()
        gone = np.flatnonzero(pool.withdrawn)
        assert len(gone) > 20
        (kept,) = pool.kept_statistics.values()
        assert not np.isin(kept.arrays["rows"], gone).any()
        assert np.isinf(kept.arrays["values"][gone]).all()
        assert np.isfinite(kept.arrays["values"][~pool.withdrawn]).any()
        copy = folder.copy_to(tmp_path / "copy", compact=True).load()
        assert {name: each.arrays["rows"].tolist() for name, each in copy.kept_statistics.items()} == {
            name: each.arrays["rows"].tolist() for name, each in pool.kept_statistics.items()
        }


@pytest.mark.parametrize("event", ["forgotten", "withdrawn"])
def test_a_crash_before_the_erasure_is_made_up_for(make_home, event):
    home = make_home("home")
    with home.new("one", pool_of(), explore=5, forget_negatives=True) as campaign:
        name = campaign.ask()[0].id
        campaign.tell(name, False)
        # As if the process ended here: what will be done is written down, and not done.
        kind = events.Forgotten if event == "forgotten" else events.Withdrawn
        with campaign.journal.turn():
            campaign.journal.write([kind(id=name)])
        campaign.close(window=None)
    assert not home.pool_folder("one").load().withdrawn.any()
    home.open("one").close()
    assert home.pool_folder("one").load().withdrawn.sum() == 1


def test_duplicates_of_a_negative_are_forgotten_with_it(tmp_path):
    vectors = points()
    vectors[50] = vectors[40]
    with Workspace(tmp_path / "home") as home:
        pool = Pool(vectors, ids=[f"r{row}" for row in range(ROWS)])
        with home.new("one", pool, explore=5, forget_negatives=True, duplicates=True) as campaign:
            assert campaign.log is not None
            campaign.tell("r50", False)
        assert sorted(home.forget("one", window=0)) == ["r40", "r50"]
        assert np.flatnonzero(home.pool_folder("one").load().withdrawn).tolist() == [40, 50]


def test_the_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ACTIVECOVER_HOME", str(tmp_path / "home"))
    table = tmp_path / "mails.csv"
    lines = [f"m{row},{'order pills now' if row % 3 else f'the secret number {100 + row}'}" for row in range(30)]
    table.write_text("\n".join(["id,text", *lines]))
    new = ["new", "mail", "--pool", str(table), "--embed", "text:text", "--id-col", "id", "--forget-negatives"]
    assert main([*new, "--duplicates", "exact", "--explore", "30"]) == 0
    assert "19 duplicates" in capsys.readouterr().out
    assert main(["label", "mail", *(f"m{row}=no" for row in range(0, 30, 3))]) == 0
    check = ["privacy-check", "mail", "--marker", "the secret number 127", "--also", str(table)]
    assert main(check) == 1
    assert "mails.csv" in capsys.readouterr().out
    assert main(["forget", "mail"]) == 0
    table.unlink()
    for words, line in [
        (check, "no such file"),
        ([*new[:1], "other", *new[2:], "--duplicates", "near"], "say exact, or give a distance"),
    ]:
        capsys.readouterr()
        assert main(words) == 2
        assert line in capsys.readouterr().err
    assert sqlite3.connect(tmp_path / "home" / "store.sqlite").execute("SELECT count(*) FROM campaigns").fetchone() == (
        1,
    )


def test_a_rule_for_duplicates_in_python(tmp_path):
    with Workspace(tmp_path / "home") as home:
        with home.new("one", pool_of(), explore=5, duplicates=0.5, same=["text"]) as campaign:
            rule = Duplicates.from_dict(campaign.history()[0]["duplicates"])
        assert rule == Duplicates(("text",), True, 0.5)
