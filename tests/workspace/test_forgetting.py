"""What is forgotten, what is not and why, and a check that sees what is left anywhere in the home."""

import gzip
import shutil
import zipfile

import numpy as np
import pytest

from activecover import Campaign, InputError, Pool
from activecover.campaign import UNDO_WINDOW
from activecover.cli import main
from activecover.workspace import Workspace, archive, privacy_check

ROWS, POSITIVE = 30, 5


def pool_of():
    points = np.random.default_rng(0).normal(size=(ROWS, 3)) + 5 * (np.arange(ROWS) >= POSITIVE)[:, None]
    texts = [f"secret {row:04d} of ours" if row >= POSITIVE else f"wanted {row}" for row in range(ROWS)]
    return Pool(points, ids=[f"r{row}" for row in range(ROWS)], contents={"text": texts})


def secrets(items):
    return [f"secret {int(item[1:]):04d} of ours".encode() for item in items]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with Workspace(tmp_path / "home") as made:
        yield made


def begin(home, name="one", **settings):
    return home.new(name, pool_of(), explore=0, known=["r0"], forget_negatives=True, **settings)


def answer_all(campaign, by="me"):
    while items := campaign.ask(5, by=by):
        campaign.tell([item.id for item in items], [int(item.id[1:]) < POSITIVE for item in items], by=by)


def test_what_is_final_and_not_forgotten_makes_the_check_fail(home, capsys):
    with begin(home) as campaign:
        campaign.tell([f"r{row}" for row in range(5, 5 + UNDO_WINDOW + 7)], [False] * (UNDO_WINDOW + 7))
        report = privacy_check(home, "one")
        assert (report.forgotten, report.negatives, len(report.due), report.clean) == (0, UNDO_WINDOW + 7, 7, False)
        assert main(["privacy-check", "one", "--home", str(home.folder)]) == 1
        said = capsys.readouterr().out
        assert "7 are final and not forgotten: activecover forget one" in said
        assert "10 kept, among the last 10 decisions, which can be undone" in said
    # Closing forgets what is final; the last ten are said, and can be forgotten.
    assert main(["privacy-check", "one", "--home", str(home.folder)]) == 0
    said = capsys.readouterr().out
    assert "7 of 17 negatives are forgotten" in said
    assert "activecover forget one --now" in said
    assert main(["forget", "one", "--now", "--home", str(home.folder)]) == 0
    assert "10 negatives forgotten" in capsys.readouterr().out
    report = privacy_check(home, "one", secrets(f"r{row}" for row in range(5, 22)))
    assert (report.forgotten, report.negatives, report.found, report.kept) == (17, 17, [], {})
    with home.open("one") as campaign, pytest.raises(InputError, match=r"was forgotten.*can no longer be undone"):
        campaign.undo()


def test_to_look_is_not_to_forget(home):
    with begin(home) as campaign:
        campaign.tell([f"r{row}" for row in range(5, 20)], [False] * 15)
        campaign.close(window=None)
    for _ in range(2):
        assert len(privacy_check(home, "one").due) == 5


def test_closing_forgets_everything_if_wished(home):
    campaign = begin(home)
    answer_all(campaign)
    campaign.close(window=0)
    report = privacy_check(home, "one", secrets(f"r{row}" for row in range(POSITIVE, ROWS)))
    assert (report.forgotten, report.negatives, report.clean) == (ROWS - POSITIVE, ROWS - POSITIVE, True)


def test_it_is_said_what_waits_for_a_second_label_and_for_the_learner():
    campaign = Campaign(pool_of(), "explore-commit", explore=0, forget_negatives=True, overlap=2, known=["r0"])
    item = campaign.ask(by="ann")[0].id
    campaign.tell(item, False, by="ann")
    assert campaign.eraser.status().kept == {"waiting for another label": [item]}
    campaign = Campaign(pool_of(), "explore-commit", explore=0, forget_negatives=True, certify="0.8@0.9", known=["r0"])
    seen = {}
    while campaign.status().unlabelled > 5 and (items := campaign.ask()):
        campaign.tell(items[0].id, int(items[0].id[1:]) < POSITIVE)
        seen |= campaign.eraser.status(0).kept
    assert list(seen) == ["a control item that the learner has not reached"]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (".uploads/0123456789abcdef0123456789abcdef.csv", "an upload of this home is left: .uploads/0123"),
        (".uploads/.out-1/made.csv", "a file made to be sent is left"),
        (".intake-live/vectors.npy", "a temporary file of taking in a file is left"),
        ("own/gone/contents.bin", "a pool of no campaign is left: own/gone/contents.bin"),
        ("own/one/contents.bin.old", "no part of a campaign: own/one/contents.bin.old"),
        ("backup.zip", "no part of a campaign: backup.zip"),
        ("../temporary/activecover-x/data", "a temporary file is left"),
    ],
)
def test_files_that_belong_to_no_campaign_are_found_without_a_marker(home, where, said):
    with begin(home) as campaign:
        answer_all(campaign)
        campaign.close(window=0)
    assert privacy_check(home, "one").clean
    place = home.folder / where
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"secret 0007 of ours")
    report = privacy_check(home, "one")
    assert len(report.found) == 1
    assert report.found[0].startswith(said)
    assert not report.clean
    assert len(privacy_check(home, "one", [b"secret 0007 of ours"]).found) == 2


def test_another_campaign_on_the_same_data_is_named(home):
    with begin(home) as campaign:
        answer_all(campaign)
        campaign.close(window=0)
    home.new("two", pool_of(), explore=0, known=["r0"]).close()
    (line,) = privacy_check(home, "one").found
    assert line.startswith("campaign two: still has 25 of the forgotten items (r")


def test_packed_files_are_looked_into(home, tmp_path):
    begin(home).close()
    archive(home, "one", tmp_path / "one.zip")
    marker = b"secret 0007 of ours"
    places = [tmp_path / "one.zip"]
    places.append(tmp_path / "text.csv.gz")
    with gzip.open(places[-1], "wb") as file:
        file.write(bytes(9 << 20) + marker)
    places.append(tmp_path / "nested.zip")
    with zipfile.ZipFile(places[-1], "w", zipfile.ZIP_DEFLATED) as file:
        file.write(places[1], "text.csv.gz")
    places.append(tmp_path / "arrays.npz")
    np.savez_compressed(places[-1], texts=np.array([marker]))
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    places.append(tmp_path / "table.parquet")
    parquet.write_table(arrow.table({"a": [marker.decode()] * 9}), places[-1], compression="zstd")
    (tmp_path / "cut.zip").write_bytes(places[0].read_bytes()[:-40])
    found = privacy_check(home, "one", [marker], [*places, tmp_path / "cut.zip"]).found
    assert [line for line in found if not line.startswith("own/")] == [f"{place.name}: {marker!r}" for place in places]


def test_markers_are_found_however_a_file_writes_them(home, tmp_path):
    begin(home).close()
    marker = 'he said "ü"\nand left'
    for name, text in (("a.json", '"he said \\"\\u00fc\\"\\nand left"'), ("b.csv", '"he said ""ü""\nand left"')):
        (tmp_path / name).write_text(text)
    (tmp_path / "c.txt").write_text(marker, "utf-16")
    report = privacy_check(home, "one", [marker.encode()], [tmp_path / name for name in ("a.json", "b.csv", "c.txt")])
    assert [line.partition(":")[0] for line in report.found] == ["a.json", "b.csv", "c.txt"]


def test_a_note_that_names_what_was_forgotten_is_found(home):
    with begin(home) as campaign:
        campaign.tell("r7", False, note="n" * 9000 + "secret 0007 of ours" + "n" * 9000)
    assert "the store: b'secret 0007 of ours'" in privacy_check(home, "one", [b"secret 0007 of ours"]).found


def test_a_hash_of_what_is_to_be_forgotten_is_nowhere(home, tmp_path):
    table = tmp_path / "f.csv"
    table.write_text("id,x,text\n" + "".join(f"r{row},{row},secret {row}\n" for row in range(9)))
    home.new("one", table, embed="columns:x", id_column="id", forget_negatives=True, explore=2).close()
    more = tmp_path / "more.csv"
    more.write_text("id,x,text\nn1,3,secret n\n")
    home.add_rows("one", more)
    with home.open("one") as campaign:
        marks = [event["pool"] for event in campaign.history() if "pool" in event]
    assert [(each["vectors"], each["contents"]) for each in marks] == [("not kept", "not kept")] * 2
    assert home.pool_folder("one").contents_hash is None
    shutil.rmtree(home.folder)
