"""Text in CSV files: a spreadsheet computes none of it, and it comes back as it was."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activecover import Trace
from activecover.spreadsheet import GuardedReader, GuardedWriter, guard, unguard
from activecover.trace import read_traces, write_traces

FORMULAS = [
    "=1+1", "+1", "-1", "@SUM(A1)", "\tplain", "\rplain", "  =1", "\u00a0=1", "\u3000＝1", "＝1", "＋1", "－1", "＠x",
    "﹦1", "−1", "\u200b=1", "\ufeff=1", "\x00=1", '"=1"', "' =1", "-", "=", '=HYPERLINK("http://example.org/?"&A1,"see")',
    "=cmd|' /C calc'!A0", "-5", "+49 30 1234",
]  # fmt: skip
HARMLESS = ["", "plain", "a=b", "a-b", "a@example.org", "'tis", "''", "1-2", "x, -5", "ü", "«=»", "(-1)"]
texts = st.text(st.sampled_from("=+-@＝ \t\r\n;,'\"a1\u200b\u3000\x00"), max_size=8) | st.text(max_size=8)


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_gets_an_apostrophe(text):
    assert guard(text) == f"'{text}"
    assert unguard(guard(text)) == text


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays_as_it_is(text):
    assert guard(text) == text == unguard(text)


@pytest.mark.parametrize("value", [-1, -1.5, 0, True, None, float("-inf")])
def test_numbers_stay_as_they_are(value):
    assert guard(value) is value


def test_a_cell_that_begins_within_a_text_is_guarded_too():
    assert guard("x;=1;y") == "x;'=1;y"
    assert guard("\t=1") == "'\t'=1"
    assert guard("x\t@1\r\n-2") == "x\t'@1\r\n'-2"


@given(st.lists(texts, min_size=1, max_size=4), st.sampled_from([";", "\t", ","]))
def test_no_way_of_splitting_a_file_gives_a_formula(row, delimiter):
    file = io.StringIO(newline="")
    GuardedWriter(file).write(["id", *row])
    if delimiter == ",":
        lines = csv.reader(io.StringIO(file.getvalue(), newline=""))
        cells = [cell for line in lines for cell in line]
    else:
        # As a program does that knows of no quotes at all.
        cells = file.getvalue().replace("\r", "\n").replace("\n", delimiter).split(delimiter)
    blanks = ' "\u3000\u200b\x00\t\r\n'
    assert not [cell for cell in cells if cell.lstrip(blanks)[:1] in tuple("=+-@＝")]
    assert delimiter != "," or not [cell for cell in cells if cell[:1] in tuple("\t\r\n")]


@given(texts)
def test_guarding_is_undone_exactly(text):
    assert unguard(guard(text)) == text
    assert unguard(guard(guard(text))) == guard(text)


@given(st.dictionaries(texts, texts.filter(lambda text: "\x00" not in text), min_size=1, max_size=3))
def test_what_is_written_is_read(record):
    record = {name.replace("\x00", ""): value for name, value in record.items()}
    file = io.StringIO(newline="")
    writer = GuardedWriter(file)
    writer.write(["number", *record])
    writer.write([-1, *record.values()])
    (found,) = GuardedReader(io.StringIO(file.getvalue(), newline=""))
    assert found == {"number": "-1"} | record
    raw = io.StringIO(newline="")
    GuardedWriter(raw, raw=True).write(record.values())
    assert next(csv.reader(io.StringIO(raw.getvalue(), newline=""))) == list(record.values())


def test_ids_in_traces_are_guarded_and_their_figures_are_not(tmp_path):
    figures = {"positive": [True, False], "batch": [0, 1], "explored": [True, False]}
    trace = Trace([1, 0], **figures, pool_rows=2, learner="=EC", seed=-7)  # type: ignore[arg-type]
    write_traces(tmp_path / "t.csv", [trace], ["=1+1", "-2"])
    rows = list(csv.DictReader((tmp_path / "t.csv").open()))
    assert [row["id"] for row in rows] == ["'-2", "'=1+1"]
    assert {row["seed"] for row in rows} == {"-7"}
    (found,) = read_traces(tmp_path / "t.csv")
    assert (found.learner, found.seed, found.rows.tolist()) == ("=EC", -7, [1, 0])
