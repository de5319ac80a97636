"""``activecover plan certify`` and ``activecover stopping``: for people, for programs, and one line for bad input."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from activecover.cli import main
from activecover.pool import Pool
from activecover.stopping import draws_to_exclude
from activecover.trace import Trace, write_traces
from activecover.workspace import Workspace, archive

DOCS = Path(__file__).resolve().parents[2] / "docs" / "stopping.md"
GUIDE = "plan certify --rows 20000 --prevalence 0.05 --target 0.9"


def run(capsys: pytest.CaptureFixture[str], command: str) -> tuple[int, str, str]:
    code = main(shlex.split(command))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    clock = np.arange(600)
    run = Trace(clock, clock < 60, clock // 10, clock < 10, 600, 60, learner="EC")
    write_traces("one.csv", [run])
    write_traces("two.jsonl", [run, Trace(clock, clock % 10 == 0, clock, clock < 10, 600, 60, learner="EC", run=1)])
    return tmp_path


def test_plan_certify(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, GUIDE)
    assert code == 0
    lines = [re.sub(r"\s{2,}", "|", line.strip()) for line in text.splitlines()]
    assert lines[0] == "rule|valid|labels|of the pool|what for"
    assert lines[1].startswith("qbcb|yes|618|3.09 %|580 control rows for 29 positives")
    assert "Cheapest: qbcb." in text


def test_docs_show_the_true_plan(capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.search(rf"\$ activecover {re.escape(GUIDE)}\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    _, text, _ = run(capsys, GUIDE)
    assert [line.rstrip() for line in text.splitlines()] == shown[1].splitlines()


def test_docs_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    block = re.search(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    exec(compile(block[1], str(DOCS), "exec"), {})
    assert capsys.readouterr().out.startswith("False 0.048")


def test_plan_certify_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, f"{GUIDE} --reached 1 --json")
    plan = json.loads(text)
    assert code == 0
    assert plan["reached"] == 1
    assert {cost["rule"] for cost in plan["costs"]} >= {"qbcb", "two-phase", "confidence-sequence", "weighted-betting"}


def test_rules(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, "stopping rules")
    assert code == 0
    assert "weighted-betting" in text
    assert "knee: the curve of finds has one knee" in text
    _, text, _ = run(capsys, "stopping rules --json")
    assert [rule["name"] for rule in json.loads(text) if rule["valid"]] == [
        "qbcb", "target", "two-phase", "confidence-sequence", "weighted-betting",
    ]  # fmt: skip


def test_replay_of_one_run(capsys: pytest.CaptureFixture[str], traces: Path) -> None:
    code, text, _ = run(capsys, "stopping replay one.csv --target 0.8 --rule qbcb,two-phase --rule knee")
    assert code == 0
    assert "60 positives among 600 rows; target 0.8; the ranking alone reached it after 48 labels" in text
    assert [line.split()[0] for line in text.splitlines()[-3:]] == ["qbcb", "two-phase", "knee"]


def test_replay_of_several_runs(capsys: pytest.CaptureFixture[str], traces: Path) -> None:
    code, text, _ = run(capsys, "stopping replay two.jsonl --target 0.8")
    assert code == 0
    assert text.startswith("2 runs; 60 positives among 600 rows")
    _, text, _ = run(capsys, "stopping replay two.jsonl --target 0.8 --rows 700 --json")
    found = json.loads(text)
    assert [result["run"] for result in found] == ["EC, run 0", "EC, run 1"]
    assert found[0]["rows"] == 700


def test_replay_as_a_picture(capsys: pytest.CaptureFixture[str], traces: Path) -> None:
    pytest.importorskip("matplotlib")
    code, text, _ = run(capsys, "stopping replay one.csv --target 0.8 --plot stops.png")
    assert code == 0
    assert "picture: stops.png" in text
    assert (traces / "stops.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("plan certify --rows 100 --prevalence 0", "prevalence 0.0"),
        ("plan certify --rows 100 --prevalence 0.1 --target 1", "target 1.0"),
        ("plan certify --rows 0 --prevalence 0.1", "rows 0"),
        ("plan certify --rows 100", "--prevalence"),
        ("stopping replay nothing.csv", "nothing.csv: no such file"),
        ("stopping replay one.csv --rule nonsense", "unknown stopping rule 'nonsense'"),
        ("stopping replay one.csv --rows 5", "has no row 599"),
        ("stopping replay one.csv --target 2", "target 2.0"),
        ("stopping replay one.csv --plot stops.txt", "save pictures as"),
        ("stopping replay one.txt", "traces are written to"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], traces: Path, command: str, says: str) -> None:
    code, text, said = run(capsys, command)
    assert (code, text) == (2, "")
    assert said.startswith("activecover: ")
    assert said.count("\n") == 1
    assert says in said


def test_replay_of_a_live_campaign(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pool = Pool(np.random.default_rng(0).normal(size=(200, 2)))
    with Workspace(tmp_path / "home") as home:
        with home.new("one", pool, explore=20, certify="0.6@0.6", rule="target") as campaign:
            while items := campaign.ask(5):
                campaign.tell([item.id for item in items], [int(item.id) < 40 for item in items])
            labels, found = campaign.status().labelled, campaign.status().positives
        archive(home, "one", tmp_path / "one.zip")
    at = f"--home {tmp_path / 'home'}"
    code, text, _ = run(
        capsys, f"stopping replay --campaign one --target 0.6 --confidence 0.6 --plot {tmp_path}/one.png --json {at}"
    )
    assert code == 0
    assert (tmp_path / "one.png").stat().st_size > 1000
    (said,) = json.loads(text)
    assert (said["run"], said["positives"]) == ("one", found)
    stops = {stop["rule"]: stop for stop in said["stops"]}
    assert 0 < stops["target"]["labels"] <= labels
    assert stops["target"]["recall_lower"] >= 0.6
    code, text, _ = run(capsys, f"stopping replay {tmp_path / 'one.zip'} --target 0.6 --confidence 0.6 --json")
    assert code == 0
    assert json.loads(text)[0]["stops"] == said["stops"]
    code, text, _ = run(capsys, f"stopping replay --campaign one {at}")
    assert "consecutive-negatives" in text
    for command in ("stopping replay", f"stopping replay --campaign one --rows 7 {at}"):
        code, _, wrong = run(capsys, command)
        assert code == 2
        assert len(wrong.splitlines()) == 1


def test_plan_insure(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, "plan insure --rows 9999 --component 99 --share 1")
    assert code == 0
    assert "found after 100 labels on average" in text
    code, text, _ = run(capsys, "plan insure --rows 10000 --component 100 --share 0.1 --json")
    assert json.loads(text)["draws_to_exclude"] == draws_to_exclude(100, 10_000)
    code, _, wrong = run(capsys, "plan insure --rows 10 --component 0")
    assert (code, len(wrong.splitlines())) == (2, 1)
