"""RIS and nbib: read tolerantly, written again with all tags."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activecover.errors import InputError
from activecover.intake import Reference, make_pool, read_references, read_table, write_references

RIS = """Provider: Some data base

TY  - JOUR
TI  - A trial of something
      that goes on
AU  - Ann, A.
AU  - Bob, B.
PY  - 2019/05/01
JO  - The Journal
DO  - 10.1000/xyz
KW  - trial
AB  - First paragraph.

Second - not a tag - paragraph.
UR  -
ER  -

TY  - BOOK
T1  - No end to this one
N2  - Its abstract
TY  - JOUR
TI  - The last
KW  - ASReview_relevant
ER  - """

NBIB = """
PMID- 123
OWN - NLM
TI  - A title that runs
      over lines
LID - 10.1000/abc [doi]
AB  - Words of it.
FAU - Ann, Anna
AU  - Ann A
FAU - Bob, Bobby
DP  - 2001 May
JT  - Journal of things
MH  - Humans

PMID- 456
TI  - Second
OT  - activecover_excluded
"""


def saved(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def test_ris(tmp_path: Path) -> None:
    first, second, third = read_references(saved(tmp_path / "a.ris", RIS))
    assert first.all("AU") == ["Ann, A.", "Bob, B."]
    assert dict(first.fields)["AB"] == "First paragraph.\n\nSecond - not a tag - paragraph."
    assert first.parts() == {
        "title": "A trial of something that goes on",
        "abstract": "First paragraph. Second - not a tag - paragraph.",
        "authors": "Ann, A.; Bob, B.",
        "year": "2019",
        "journal": "The Journal",
        "doi": "10.1000/xyz",
        "keywords": "trial",
    }
    assert (second.parts()["title"], second.parts()["abstract"]) == ("No end to this one", "Its abstract")
    assert [one.decision for one in (first, second, third)] == ["", "", "1"]


def test_nbib(tmp_path: Path) -> None:
    first, second = read_references(saved(tmp_path / "a.nbib", NBIB))
    assert first.number == "123"
    assert first.parts() == {
        "title": "A title that runs over lines",
        "abstract": "Words of it.",
        "authors": "Ann, Anna; Bob, Bobby",
        "year": "2001",
        "journal": "Journal of things",
        "doi": "10.1000/abc",
        "keywords": "Humans",
    }
    assert second.decision == "0"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_encodings_and_ends_of_lines(tmp_path: Path, encoding: str, ends: str) -> None:
    text = "TY  - JOUR\nTI  - Größe über alles\nER  - \n".replace("\n", ends)
    (found,) = read_references(saved(tmp_path / "a.ris", text, encoding))
    assert found.parts()["title"] == "Größe über alles"


lines = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20).map(str.strip)
values = st.lists(lines, min_size=1, max_size=3).map("\n".join).map(str.strip)
fields = st.lists(st.tuples(st.sampled_from(["TI", "AU", "AB", "N1", "C3", "KW"]), values), max_size=5)


@pytest.mark.parametrize("kind", [".ris", ".nbib"])
@given(records=st.lists(fields, min_size=1, max_size=4), data=st.data())
def test_what_is_written_reads_the_same(
    tmp_path_factory: pytest.TempPathFactory, kind: str, records: list[list[tuple[str, str]]], data: st.DataObject
) -> None:
    first = ("TY", "JOUR") if kind == ".ris" else ("PMID", "7")
    wanted = [
        Reference((first, *((tag if kind == ".ris" or tag != "C3" else "PT", value) for tag, value in record)), kind)
        for record in records
    ]
    path = tmp_path_factory.mktemp("references") / f"a{kind}"
    write_references(path, wanted)
    assert read_references(path) == wanted
    labels = data.draw(st.lists(st.sampled_from([True, False, None]), min_size=len(wanted), max_size=len(wanted)))
    write_references(path, wanted, labels)
    again = read_references(path)
    assert [one.decision for one in again] == [{True: "1", False: "0", None: ""}[label] for label in labels]
    assert [one.with_decision(None) for one in again] == [one.with_decision(None) for one in wanted]
    # A decision that is changed replaces the one before.
    assert [one.with_decision(True).with_decision(False).decision for one in again] == ["0"] * len(again)


@pytest.mark.parametrize(("name", "text"), [("a.ris", RIS), ("a.nbib", NBIB)])
def test_a_real_file_goes_round_with_all_its_tags(tmp_path: Path, name: str, text: str) -> None:
    first = read_references(saved(tmp_path / name, text))
    write_references(tmp_path / f"again-{name}", first)
    assert read_references(tmp_path / f"again-{name}") == first


def test_another_reader_finds_the_same_in_what_is_written(tmp_path: Path) -> None:
    rispy = pytest.importorskip("rispy", reason="rispy is not installed")
    ours = read_references(saved(tmp_path / "a.ris", RIS))
    write_references(tmp_path / "b.ris", ours, [True, False, None])
    theirs = rispy.loads((tmp_path / "b.ris").read_text("utf-8"))
    assert len(theirs) == len(ours) == 3
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.parts()["title"] == (other.get("title") or other["primary_title"])
        assert mine.all("AU") == other.get("authors", [])
    assert [other.get("keywords", [])[-1:] for other in theirs] == [
        ["activecover_included"], ["activecover_excluded"], ["ASReview_relevant"]
    ]  # fmt: skip


def test_references_become_a_pool(tmp_path: Path) -> None:
    table = read_table(saved(tmp_path / "a.nbib", NBIB))
    made = make_pool(table, label_column="decision")
    assert made.pool.ids == ["123", "456"]
    assert made.recipe.embedding.used_ == ["title", "abstract"]
    assert made.pool.content(0)["authors"] == "Ann, Anna; Bob, Bobby"
    assert made.labels is not None
    assert made.labels.tolist() == ["", "0"]
    assert "decision" not in made.pool.contents


def test_bad_references(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a.ris: contains no references"):
        read_references(saved(tmp_path / "a.ris", "hello\n"))
    with pytest.raises(InputError, match=r"references come from .ris and .nbib files"):
        write_references(tmp_path / "a.txt", [])
    with pytest.raises(InputError, match=r"reference 0 came from a .nbib file"):
        write_references(tmp_path / "a.ris", read_references(saved(tmp_path / "a.nbib", NBIB)))
    with pytest.raises(InputError, match=r"there is no folder .*; create it first"):
        write_references(tmp_path / "no" / "a.ris", [])
