"""Cells made again: what is the same, what may differ, and what is found."""

import csv
import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from activecover.cli import main
from activecover.lab.grid import Cell, Grid, Result, compare_cells, make_plan, run_plan
from activecover.lab.grid import _verify as verifying
from activecover.lab.grid._provenance import causes, code_hash, made_with, parts_of

CELLS = Path(__file__).parents[3] / "results" / "cells.csv.gz"
MADE = "seed=0 commit=abc code=1 cpu=This numpy=2.4.6"
CELL = Result(Cell("letters", "A", "EC", 0), (50.0, 100.0), None, 1.0, MADE)


def test_a_few_committed_cells_are_made_again(capsys):
    chosen = ["--datasets", "letters", "--methods", "O,EC,O-LS,A-LS,O-RS"]
    assert main(["bench", "verify", str(CELLS), "--sample", "5", "--jobs", "2", *chosen]) == 0
    assert "5 cells recomputed" in capsys.readouterr().out


def test_a_changed_figure_is_found(tmp_path, capsys):
    run_plan(make_plan(["letters"], labels=["A", "B"], methods=["O"], runs=1), tmp_path / "grid")
    exported, changed = tmp_path / "cells.csv.gz", tmp_path / "changed.csv.gz"
    with Grid(tmp_path / "grid") as grid:
        grid.export(exported)
    with gzip.open(exported, "rt") as source, gzip.open(changed, "wt") as target:
        records = list(csv.DictReader(source))
        curve = json.loads(records[1]["curve"])
        records[1]["curve"] = json.dumps([*curve[:-1], curve[-1] - 0.000001])
        writer = csv.DictWriter(target, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    assert main(["bench", "verify", str(exported), "--sample", "2"]) == 0
    assert "2 the same to the last digit" in capsys.readouterr().out
    assert main(["bench", "verify", str(changed), "--sample", "2", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["differ"] == 1
    assert {one["label"]: one["verdict"] for one in report["cells"]} == {"A": "same", "B": "differs"}


@pytest.mark.parametrize(
    ("curve", "made", "verdict"),
    [
        ((50.0, 100.0), MADE, "same"),
        ((50.0, 100.0), MADE.replace("This", "Other"), "same"),
        ((50.0, 99.999999), MADE, "differs"),
        ((50.0, 99.999999), MADE.replace("commit=abc", "commit=def"), "differs"),
        ((50.0, 99.92), MADE.replace("This", "Other"), "close"),
        ((50.0, 99.88), MADE.replace("This", "Other"), "differs"),
        ((50.0, 99.92), MADE.replace("code=1", "code=2"), "close"),
        (None, MADE.replace("This", "Other"), "differs"),
    ],
)
def test_a_copy_may_differ_a_little_where_something_else_does(curve, made, verdict):
    now = replace(CELL, curve=curve, made_with=made, reason=None if curve else "no fit")
    assert compare_cells(CELL, now).verdict == verdict


def test_cells_without_a_result_agree_in_their_reason():
    none = replace(CELL, curve=None, reason="1 positive in the sample")
    assert compare_cells(none, none).verdict == "same"
    assert compare_cells(none, replace(none, reason="another")).verdict == "differs"


def test_every_method_has_its_turn():
    cells = [replace(CELL, cell=Cell("letters", "A", "EC", run)) for run in range(500)]
    cells += [replace(CELL, cell=Cell("letters", "A", method, 0)) for method in ("O", "A-IF", "A-RC")]
    chosen = verifying.choose(cells, 6, seed=1)
    assert Counter(one.cell.method for one in chosen) == {"EC": 3, "O": 1, "A-IF": 1, "A-RC": 1}
    assert verifying.choose(cells, 6, seed=1) == chosen
    assert verifying.choose(cells, 6, seed=2) != chosen
    assert len(verifying.choose(cells, 10_000, seed=1)) == len(cells)


def test_without_its_data_nothing_can_be_made_again(tmp_path, capsys):
    chosen = ["--datasets", "mnist", "--data-dir", str(tmp_path)]
    assert main(["bench", "verify", str(CELLS), *chosen]) == 2
    assert "data sets are missing" in capsys.readouterr().err
    assert main(["bench", "verify", str(CELLS), "--methods", "XX"]) == 2
    assert main(["bench", "verify", str(tmp_path / "none.csv.gz")]) == 2


def test_a_cell_says_what_it_was_made_with():
    parts = parts_of(made_with(7))
    assert parts["seed"] == "7"
    assert parts["code"] == code_hash()
    assert {"commit", "cpu", "blas", "python", "numpy", "scipy", "scikit-learn"} <= set(parts)
    assert all(parts.values())
    assert causes(made_with(7), made_with(7)) == []
    assert causes(MADE, MADE.replace("abc", "def")) == []
    assert causes("seed=0 numpy=2.4.6", MADE) == ["code unknown -> 1", "cpu unknown -> This"]
