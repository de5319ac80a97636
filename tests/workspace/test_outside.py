"""Known positives from outside the pool, and references in and out of a campaign."""

import numpy as np
import pytest
from scipy import sparse

from activecover import InputError, Pool
from activecover.campaign._journal import Journal
from activecover.cli import main
from activecover.intake import read_references
from activecover.pool import PackedBits
from activecover.store import SqlStore
from activecover.workspace import Workspace, archive, export_labels, restore

TEXTS = ["bees and honey", "the moon landing", "honey of wild bees", "rockets to the moon", "a history of tea"]


@pytest.fixture
def home(tmp_path):
    with Workspace(tmp_path / "home") as place:
        yield place


def table(path, texts, first="t"):
    path.write_text("\n".join(["id,text", *(f"{first}{row},{text}" for row, text in enumerate(texts))]))
    return path


def begin(home, tmp_path, **settings):
    file = table(tmp_path / "texts.csv", TEXTS)
    return home.new("one", file, embed="text:text", id_column="id", explore=0, learner="explore-commit", **settings)


def order(campaign):
    found = []
    while items := campaign.ask():
        found.append(items[0].id)
        campaign.tell(found[-1], False)
    return found


def test_a_file_of_positives_from_outside_leads_the_search(home, tmp_path):
    known = table(tmp_path / "known.csv", ["moon rockets"], "k")
    with begin(home, tmp_path, external_positives=known) as campaign:
        assert campaign.ask()[0].id in ("t1", "t3")
        assert "from outside" in campaign.ask()[0].reason
    with home.open("one") as campaign:
        assert set(order(campaign)[:2]) == {"t1", "t3"}


def test_more_of_them_come_in_later(home, tmp_path):
    with begin(home, tmp_path, known=["t0"]) as campaign:
        assert campaign.ask()[0].id == "t2"
        campaign.release()
    assert home.add_outside("one", table(tmp_path / "known.csv", ["moon rockets", "moon landing"], "k")) == 2
    with home.open("one") as campaign:
        before = [item.id for item in campaign.ask(4)]
        assert {"t1", "t3"} <= set(before[:3])
        campaign.release()
    assert home.add_outside("one", table(tmp_path / "tea.csv", ["history of tea"], "k")) == 1
    with home.open("one") as campaign:
        assert "t4" in [item.id for item in campaign.ask(3)]
        campaign.release()
    archive(home, "one", tmp_path / "one.zip")
    with Workspace(tmp_path / "elsewhere") as other:
        restore(other, tmp_path / "one.zip", "two")
        with other.open("two") as copy, home.open("one") as campaign:
            assert order(copy) == order(campaign)
        other.remove("two")
        assert not list((tmp_path / "elsewhere" / "outside").iterdir())


@pytest.mark.parametrize("when", ["before", "between", "after"])
def test_adding_them_is_done_or_not_at_all(home, tmp_path, monkeypatch, when):
    """A crash before it is written down, one right after, and one at the very end."""
    begin(home, tmp_path, external_positives=table(tmp_path / "known.csv", ["moon rockets"], "k")).close()
    tea, written = table(tmp_path / "tea.csv", ["history of tea"], "k"), Journal.record_external

    class Crash(BaseException):
        pass

    def crash(*given):
        if when == "between":
            written(*given)
        raise Crash

    monkeypatch.setattr(*((SqlStore, "set_about") if when == "after" else (Journal, "record_external")), crash)
    with pytest.raises(Crash):
        home.add_outside("one", tea)
    monkeypatch.undo()
    with home.open("one") as campaign:
        assert sum(event["event"] == "outside" for event in campaign.history()) == (when != "before")
        assert len(campaign.external_positives) == 1 + (when != "before")


@pytest.mark.parametrize("kind", ["dense", "sparse", "bits"])
def test_vectors_of_any_kind(home, kind):
    bits = np.random.default_rng(0).random((20, 64)) < 0.4
    vectors = {"dense": bits.astype(float), "sparse": sparse.csr_array(bits.astype(float))}.get(kind)
    some = {"dense": lambda rows: bits[rows].astype(float), "sparse": lambda rows: sparse.csr_array(bits[rows] * 1.0)}
    packed = lambda rows: PackedBits(np.packbits(bits[rows], axis=1), 64)  # noqa: E731
    take = some.get(kind, packed)
    metric = "jaccard" if kind == "bits" else "euclidean"
    pool = Pool(vectors if vectors is not None else packed(slice(None)), metric=metric)
    home.new("one", pool, explore=0, external_positives=take(slice(3, 4)), learner="explore-commit").close()
    assert home.add_outside("one", take(slice(7, 9))) == 2
    with home.open("one") as campaign:
        assert sorted(item.id for item in campaign.ask(3)) == ["3", "7", "8"]


def test_what_does_not_fit_is_refused(home, tmp_path):
    with pytest.raises(InputError, match="known positives from outside: vectors have 2 columns"):
        home.new("one", Pool([[0.0], [1.0]]), external_positives=[[1.0, 2.0]])
    assert home.names() == []
    with pytest.raises(InputError, match="give vectors, not a file"):
        home.new("one", Pool([[0.0], [1.0]]), external_positives=tmp_path / "x.csv")
    home.new("one", Pool([[0.0], [1.0]])).close()
    with pytest.raises(InputError, match="give vectors, not a file"):
        home.add_outside("one", tmp_path / "x.csv")


RIS = """TY  - JOUR
TI  - On bees
AB  - Of honey and bees.
AU  - Ann, A.
AU  - Bob, B.
PY  - 1999/05//
M3  - kept only in the file
AN  - 11
ER  -

TY  - JOUR
TI  - On the moon
AB  - Of rockets and the moon.
PY  - 2001
AN  - 12
ER  -
"""


@pytest.mark.parametrize("ending", ["ris", "nbib"])
def test_references_go_out_with_their_labels(home, tmp_path, ending):
    (tmp_path / "in.ris").write_text(RIS)
    with home.new("review", tmp_path / "in.ris", explore=2) as campaign:
        campaign.tell(["11", "12"], [True, False])
        assert export_labels(campaign, tmp_path / f"out.{ending}") == 2
    first, second = read_references(tmp_path / f"out.{ending}")
    assert (first.number, first.decision, second.decision) == ("11", "1", "0")
    parts = first.parts()
    assert (parts["title"], parts["authors"], parts["year"]) == ("On bees", "Ann, A.; Bob, B.", "1999")


def test_originals_go_out_in_full(home, tmp_path):
    (tmp_path / "in.ris").write_text(RIS)
    with home.new("review", tmp_path / "in.ris", explore=2) as campaign:
        campaign.tell("11", True)
        assert export_labels(campaign, tmp_path / "out.ris", "positive", tmp_path / "in.ris") == 1
        (tmp_path / "other.ris").write_text(RIS.replace("AN  - 11", "AN  - 13"))
        with pytest.raises(InputError, match="no reference '11'"):
            export_labels(campaign, tmp_path / "out.ris", "positive", tmp_path / "other.ris")
    assert ("M3", "kept only in the file") in read_references(tmp_path / "out.ris")[0].fields


def test_the_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ACTIVECOVER_HOME", str(tmp_path / "home"))
    file, known = table(tmp_path / "texts.csv", TEXTS), table(tmp_path / "known.csv", ["moon rockets"], "k")
    new = ["new", "one", "--pool", file, "--embed", "text:text", "--id-col", "id", "--explore", "0"]

    def run(*words, code=0):
        assert main([str(word) for word in words]) == code
        return capsys.readouterr()

    run(*new, "--outside", known)
    assert "from outside" in run("next", "one", "--json").out
    assert "1 known positives" in run("import", "one", known, "--outside").out
    run("label", "one", "t1=yes")
    assert run("suspicious", "one").out.strip() != ""
    run("confirm", "one", "t1")
    for words, line in [
        (("export", "one", tmp_path / "out.ris"), "no titles"),
        (("confirm", "one", "t2"), "nothing to confirm"),
        (("ungroup", "one", "t2"), "stands for itself"),
        (("import", "one", tmp_path / "missing.csv", "--outside"), "missing.csv"),
    ]:
        said = run(*words, code=2).err
        assert line in said, said
        assert len(said.strip().splitlines()) == 1
