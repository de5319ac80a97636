"""``activecover plan``: sizes for people and for programs, and one line for what cannot be planned."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from activecover.cli import main

GUIDE = "plan explore --prevalence 0.02 --components 5 --smallest 0.05 --confidence 0.95 --rows 1000000"
DOCS = Path(__file__).resolve().parents[2] / "docs" / "theory.md"


def run(capsys: pytest.CaptureFixture[str], command: str) -> tuple[int, str, str]:
    code = main(shlex.split(command))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [15.0, 0.0], [0.0, 0.0]], [40, 20, 540], axis=0)
    points = centres + random.normal(size=(600, 2))
    lines = [f"n{row},{x:.4f},{y:.4f},{'bad' if row < 60 else 'good'}" for row, (x, y) in enumerate(points)]
    (tmp_path / "sample.csv").write_text("\n".join(["name,x,y,kind", *lines]) + "\n")
    np.save(tmp_path / "sample.npy", points)
    np.save(tmp_path / "labels.npy", np.arange(600) < 60)
    return tmp_path


def test_explore_shows_the_three_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, GUIDE)
    assert code == 0
    lines = text.splitlines()
    assert [re.sub(r"\s{2,}", "|", line.strip()) for line in lines[:4]] == [
        "rule|rows to label|of the pool",
        "union bound (take this)|4,603|0.46 %",
        "the paper's Lemma 1|18,445|1.84 %",
        "the paper's Theorem 4|21,911|2.19 %",
    ]
    assert lines[4].startswith("Label 4,603 random rows")


def test_explore_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, f"{GUIDE} --json")
    assert code == 0
    plan = json.loads(text)
    assert (plan["size"], plan["lemma1"], plan["theorem4"]) == (4603, 18445, 21911)
    assert plan["pool"]["exceeds"] is False
    assert plan["half"]["needed"] == 9209
    assert len(plan["sentences"]) == 4


def test_equal_shares_are_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    _, text, _ = run(capsys, "plan explore --prevalence 0.01 --components 5 --json")
    plan = json.loads(text)
    assert (plan["size"], plan["lemma1"], plan["smallest"], plan["pool"]) == (2301, 73778, 0.2, None)


def test_more_than_the_pool(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, "plan explore --prevalence 0.02 --components 5 --rows 1000")
    assert code == 0
    assert text.count("more than all") == 3
    assert "settle for less" in text


def test_docs_show_the_true_output(capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.search(rf"\$ activecover {re.escape(GUIDE)}\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    _, text, _ = run(capsys, GUIDE)
    assert [line.rstrip() for line in text.splitlines()] == shown[1].splitlines()


@pytest.mark.parametrize(
    "source",
    ["sample.csv --label-col kind --positive bad --columns x,y --id-col name", "sample.npy --labels labels.npy"],
)
def test_from_a_sample(capsys: pytest.CaptureFixture[str], sample: Path, source: str) -> None:
    code, text, _ = run(capsys, f"plan explore --from-sample {source} --rows 100000")
    assert code == 0
    assert "60 of 600 rows are positive: 10 % (95 % interval 7.718 % to 12.68 %)." in text
    assert "2 components, the smallest with 33.33 %" in text
    assert "At the low ends of the intervals, it takes" in text
    _, text, _ = run(capsys, f"plan explore --from-sample {source} --components 4 --json")
    found = json.loads(text)
    assert found["estimate"]["components"] == 2
    assert (found["plan"]["components"], found["plan"]["smallest"]) == (4, 0.25)
    assert found["careful_plan"]["size"] > found["plan"]["size"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("", "give --prevalence and --components"),
        ("--prevalence 0.1", "give --prevalence and --components"),
        ("--prevalence 0 --components 5", "prevalence 0:"),
        ("--prevalence 1 --components 5", "prevalence 1:"),
        ("--prevalence 1.5 --components 5", "prevalence 1.5"),
        ("--prevalence nan --components 5", "prevalence nan"),
        ("--prevalence inf --components 5", "prevalence inf"),
        ("--prevalence 0.1 --components 0", "components 0"),
        ("--prevalence 0.1 --components -3", "components -3"),
        ("--prevalence 0.1 --components 2.5", "--components"),
        ("--prevalence 0.1 --components 5 --smallest 0.3", "at most 0.2"),
        ("--prevalence 0.1 --components 5 --smallest nan", "smallest nan"),
        ("--prevalence 0.1 --components 5 --confidence 0", "confidence 0"),
        ("--prevalence 0.1 --components 5 --confidence 1", "confidence 1"),
        ("--prevalence 0.1 --components 5 --confidence nan", "confidence nan"),
        ("--prevalence 0.1 --components 5 --rows 0", "rows 0"),
        ("--prevalence 0.1 --components 5 --label-col kind", "--label-col describes a sample"),
        ("--prevalence 1e-200 --components 5", "can be counted"),
        ("--prevalence 0.1 --components 99999999999999", "components 99,999,999,999,999"),
        ("--from-sample nothing.csv --label-col kind", "nothing.csv: no such file"),
        ("--from-sample sample.csv", "--label-col"),
        ("--from-sample sample.csv --label-col kind --columns x,y", "sample.csv: row 0: label 'bad'"),
        ("--from-sample sample.csv --label-col kind --columns x,y --positive worse", "no label equals 'worse'"),
        ("--from-sample sample.csv --label-col name --columns x,y --positive n3", "1 distinct ones"),
    ],
)
def test_what_cannot_be_planned_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str], sample: Path, options: str, says: str
) -> None:
    code, text, said = run(capsys, f"plan explore {options}")
    assert (code, text) == (2, "")
    assert said.startswith("activecover: ")
    assert said.count("\n") == 1
    assert says in said
