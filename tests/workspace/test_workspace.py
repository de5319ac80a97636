"""A home of campaigns: everything a team does with one, on files and in both databases."""

import csv
import json
import zipfile

import numpy as np
import pytest

from activecover.cli import main
from activecover.errors import InputError, StoreError
from activecover.workspace import Workspace, archive, export_labels, privacy_check, read_answers, restore

TEXTS = [
    "cheap pills for sale, order now", "meeting moved to four o'clock", "win a prize, order now",
    "lunch at the usual place", "cheap watches for sale, win", "the report is attached",
    "order pills, cheap and quick", "see you at the station", "prize draw, win now", "notes of the meeting",
]  # fmt: skip
SPAM = {0, 2, 4, 6, 8}


@pytest.fixture(params=["sqlite", "postgres"])
def home(request, tmp_path):
    store = None if request.param == "sqlite" else request.getfixturevalue("postgres")()
    with Workspace(tmp_path / "home", store) as place:
        yield place


@pytest.fixture
def mails(tmp_path):
    return write(tmp_path / "mails.csv", [(f"m{row}", text) for row, text in enumerate(TEXTS)])


def write(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "text"), *rows])
    return path


def begin(home, mails, **more):
    return home.new("mail", mails, embed="text:text", id_column="id", explore=3, seed=1, **more)


def label_all(campaign, limit=None):
    asked = []
    while (items := campaign.ask()) and (limit is None or len(asked) < limit):
        asked.append(items[0].id)
        campaign.tell(items[0].id, int(items[0].id[1:]) in SPAM)
    return asked


def test_a_campaign_goes_on_where_it_was(home, mails):
    with begin(home, mails) as campaign:
        first = label_all(campaign, 4)
    with home.open("mail") as campaign:
        assert list(campaign.labels()) == first
        rest = label_all(campaign)
        assert campaign.status().positives == len(SPAM)
    assert sorted([*first, *rest]) == sorted(f"m{row}" for row in range(len(TEXTS)))


def test_pools_are_stored_once_and_shared(home, mails):
    begin(home, mails).close()
    home.new("again", mails, embed="text:text", id_column="id").close()
    assert len(list((home.folder / "pools").iterdir())) == 1
    home.remove("mail")
    with home.open("again") as campaign:
        assert len(campaign.pool) == len(TEXTS)
    home.remove("again")
    assert not list((home.folder / "pools").iterdir())


def test_rows_are_added_while_people_label(home, mails, tmp_path):
    with begin(home, mails) as campaign:
        label_all(campaign, 3)
        more = write(tmp_path / "more.csv", [("n1", "order cheap pills now"), ("n2", "minutes of the meeting")])
        assert home.add_rows("mail", more) == 2
        assert campaign.status().rows == len(TEXTS) + 2
        assert campaign.pool.content(len(TEXTS))["text"] == "order cheap pills now"
    with home.open("mail") as campaign:
        assert campaign.status().rows == len(TEXTS) + 2


def test_export_says_who_when_and_why_and_comes_in_again(home, mails, tmp_path):
    with begin(home, mails) as campaign:
        label_all(campaign, 6)
        labels = campaign.labels()
        for name in ("a.csv", "a.jsonl", "a.parquet"):
            assert export_labels(campaign, tmp_path / name) == 6
        assert export_labels(campaign, tmp_path / "yes.csv", "positive") == sum(labels.values())
        assert export_labels(campaign, tmp_path / "all.csv", "all") == len(TEXTS)
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert {row["by"] for row in rows} == {"me"}
    assert all(float(row["at"]) > 0 for row in rows)
    assert rows[-1]["why"] in labels
    assert dict(read_answers(tmp_path / "a.jsonl")) == dict(read_answers(tmp_path / "a.csv")) == labels
    with home.new("second", mails, embed="text:text", id_column="id", explore=0) as other:
        answers = read_answers(tmp_path / "a.csv")
        other.tell([name for name, _ in answers], [yes for _, yes in answers], by="import")
        assert other.labels() == labels


def test_an_archive_is_the_campaign(home, mails, tmp_path):
    with begin(home, mails) as campaign:
        label_all(campaign, 5)
        labels, upcoming = campaign.labels(), [item.id for item in campaign.ask()]
        events = list(campaign.log.read())
    archive(home, "mail", tmp_path / "mail.zip")
    with Workspace(tmp_path / "elsewhere") as other:
        assert restore(other, tmp_path / "mail.zip") == "mail"
        with other.open("mail") as campaign:
            assert campaign.labels() == labels
            assert [item.id for item in campaign.ask()] == upcoming
            assert list(campaign.log.read()) == events
        with pytest.raises(InputError, match="already"):
            restore(other, tmp_path / "mail.zip")


@pytest.mark.parametrize("damage", ["cut", "changed", "other"])
def test_a_damaged_archive_leaves_nothing_behind(home, mails, tmp_path, damage):
    begin(home, mails).close()
    path = tmp_path / "mail.zip"
    archive(home, "mail", path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-200])
    elif damage == "other":
        path.write_text("not an archive")
    else:
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "new.zip", "w") as new:
            for name in old.namelist():
                data = old.read(name)
                new.writestr(name, data.replace(b"pills", b"wills") if name.endswith("contents.bin") else data)
        (tmp_path / "new.zip").replace(path)
    with Workspace(tmp_path / "elsewhere") as other:
        with pytest.raises(StoreError, match=r"damaged|not a whole archive"):
            restore(other, path)
        assert other.names() == []
        assert not [left for left in other.folder.rglob("*") if left.is_file() and "store" not in left.name]


def test_what_is_withdrawn_is_gone_everywhere(home, mails):
    with begin(home, mails) as campaign:
        label_all(campaign, 3)
    home.withdraw("mail", ["m9"])
    with home.open("mail") as campaign:
        assert campaign.pool.content(9) == {"id": None, "text": None} or not any(campaign.pool.content(9).values())
        assert "m9" not in label_all(campaign)
    raw = b"".join(path.read_bytes() for path in home.pool_folder("mail").files())
    assert b"notes of the meeting" not in raw


@pytest.mark.usefixtures("own_temporary")
def test_negatives_are_forgotten_and_it_can_be_proved(home, mails):
    markers = [text.encode() for row, text in enumerate(TEXTS) if row not in SPAM]
    with begin(home, mails, forget_negatives=True) as campaign:
        label_all(campaign)
    before = privacy_check(home, "mail", markers)
    assert len({line.split(": ")[1] for line in before.found}) == len(markers), "the planted markers are not seen"
    gone = home.forget("mail", window=0)
    assert sorted(gone) == sorted(f"m{row}" for row in range(len(TEXTS)) if row not in SPAM)
    after = privacy_check(home, "mail", markers)
    assert after.clean, after.found
    assert (after.forgotten, after.negatives) == (5, 5)
    with home.open("mail") as campaign:
        assert campaign.status().positives == len(SPAM)
        with pytest.raises(InputError, match="forgotten"):
            campaign.undo(10)
        with pytest.raises(InputError, match="erased"):
            campaign.tell(gone[0], True, change=True)
        assert not any("nearest" in event for event in campaign.log.read())


def test_forgetting_changes_nothing_in_what_is_asked(home, mails, tmp_path):
    orders = []
    for forget in (False, True):
        with Workspace(tmp_path / f"forget-{forget}") as place:
            begin(place, mails, forget_negatives=forget, learner="explore-commit").close()
            order = []
            for _ in TEXTS:
                with place.open("mail") as campaign:
                    order += label_all(campaign, 1)
                if forget:
                    place.forget("mail", window=0)
            orders.append(order)
    assert orders[0] == orders[1]


def test_learners_that_need_negatives_cannot_forget_them(home, mails):
    with pytest.raises(InputError, match="learns from negatives"):
        begin(home, mails, forget_negatives=True, learner="active-linear-svm")
    assert home.names() == []
    begin(home, mails).close()
    with pytest.raises(InputError, match="forget_negatives"):
        home.forget("mail")


def test_a_campaign_that_cannot_begin_leaves_nothing(home, mails):
    with pytest.raises(InputError, match="not in the pool"):
        begin(home, mails, known=["nobody"])
    assert home.names() == []
    with pytest.raises(InputError, match="no campaign 'mail'"):
        home.open("mail")


def test_vectors_of_ones_own(home):
    random = np.random.default_rng(0)
    from activecover import Pool

    with home.new("points", Pool(random.normal(size=(50, 3))), explore=5) as campaign:
        campaign.tell(campaign.ask()[0].id, True)
    with pytest.raises(InputError, match="given as vectors"):
        home.add_rows("points", "more.csv")
    with home.open("points") as campaign:
        assert campaign.status().positives == 1


def test_the_commands(tmp_path, mails, monkeypatch, capsys):
    monkeypatch.setenv("ACTIVECOVER_HOME", str(tmp_path / "home"))

    def run(*words, code=0):
        assert main([str(word) for word in words]) == code
        return capsys.readouterr()

    run("new", "mail", "--pool", mails, "--embed", "text:text", "--id-col", "id", "--explore", "2", "--overlap", "2")
    item = json.loads(run("next", "mail", "--json", "--by", "ann").out)[0]["id"]
    run("label", "mail", f"{item}=yes", "--by", "ann", "--note", "sure")
    assert json.loads(run("next", "mail", "--json", "--by", "bob").out)[0]["id"] == item
    run("label", "mail", f"{item}=no", "--by", "bob")
    assert item in run("conflicts", "mail").out
    run("adjudicate", "mail", f"{item}=yes", "--by", "eve")
    assert json.loads(run("status", "mail", "--json").out)["positives"] == 1
    assert "sure" in run("history", "mail", "--id", item).out
    run("export", "mail", tmp_path / "out.csv")
    run("archive", "mail", tmp_path / "mail.zip")
    run("restore", tmp_path / "mail.zip", "--as", "copy")
    assert {row["name"] for row in json.loads(run("campaigns", "--json").out)} == {"mail", "copy"}
    run("undo", "mail")
    other = next(f"m{row}" for row in range(10) if f"m{row}" != item)
    run("withdraw", "mail", other)
    for words, line in [
        (("next", "nobody"), "no campaign 'nobody'"),
        (("label", "mail", "m1"), "say ID=yes or ID=no"),
        (("label", "mail", "zz=yes"), "not in the pool"),
        (("new", "mail", "--pool", mails), "already"),
        (("new", "x", "--pool", tmp_path / "missing.csv"), "missing.csv"),
        (("export", "mail", tmp_path / "out.xlsx"), ".parquet, .csv or .jsonl"),
        (("import", "mail", tmp_path / "missing.csv"), "no such file"),
        (("restore", tmp_path / "missing.zip"), "no such file"),
        (("privacy-check", "mail"), "nothing to prove"),
    ]:
        said = run(*words, code=2).err
        assert line in said, said
        assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, "sparse"),
        ({"learner": "linear"}, "sparse"),
        ({"learner": "explore-commit"}, "dense"),
        ({"forget_negatives": True}, "dense"),
        ({"learner": "explore-commit", "embed": "tfidf"}, "sparse"),
    ],
)
def test_texts_stay_words_for_learners_that_use_all_labels(home, tmp_path, settings, kind):
    file = tmp_path / "long.csv"
    rows = [(f"m{row}", f"a rather long message about subject {row % 7} and {row % 5}") for row in range(40)]
    with file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([("id", "message"), *rows])
    with home.new("long", file, id_column="id", explore=3, **settings) as campaign:
        assert campaign.pool.kind == kind
        assert len(campaign.ask(3)) == 3
