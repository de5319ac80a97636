"""The page of evidence says what the results say, figure by figure."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import durability  # noqa: E402
import evidence  # noqa: E402

COUNTED = [step for step in evidence.STEPS if step.part]


def section(title: str) -> str:
    """What the page says under a title."""
    page = evidence.PAGE.read_text(encoding="utf-8")
    return page.partition(f"## {title}\n")[2].partition("\n## ")[0]


def figures(text: str) -> set[float]:
    return {float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text)}


def test_the_page_is_the_one_that_its_results_give():
    assert evidence.PAGE.read_text(encoding="utf-8") == evidence.page(evidence.load())


@pytest.mark.parametrize("step", COUNTED, ids=lambda step: step.part)
def test_the_page_shows_the_counts_of_what_campaigns_survived(step):
    counts = json.loads(durability.KEPT.read_text(encoding="utf-8"))[step.part]
    (said,) = re.findall(r"```text\n(.*)\n```", section(step.title))
    full = durability.FULL[step.part]
    assert figures(said.partition(f"{step.part}: ")[2]) == {*counts.values(), *([full[1]] if "not yet" in said else [])}
    assert said.startswith("holds: ") == (counts[full[0]] >= full[1])


def test_the_page_shows_what_each_command_printed():
    for title, result in evidence.load().items():
        kept = [line for line in result.output.splitlines() if line.strip()]
        step = next((step for step in evidence.STEPS if step.title == title), None)
        if step is not None and not step.part:
            assert all(line in section(title) for line in kept), title


def test_every_part_that_is_counted_is_on_the_page():
    assert {step.part for step in COUNTED} == set(durability.FULL)
    assert set(json.loads(durability.KEPT.read_text(encoding="utf-8"))) <= set(durability.FULL)


def test_a_count_that_is_not_reached_is_said(tmp_path, monkeypatch):
    kept = tmp_path / "durability.json"
    kept.write_text(json.dumps({"model": {"examples": 1100}, "sqlite": {"cycles": 500, "labels": 9, "kills": 1500}}))
    monkeypatch.setattr(evidence, "Record", lambda: durability.Record(kept))
    result = evidence.Result(0, "holds: model: 2,000 examples", 1.0, "today")
    shown = {step.part: evidence.shown(step, result) for step in COUNTED}
    assert shown["model"] == "so far: model: 1,100 examples; not yet 2,000 examples"
    assert shown["sqlite"] == "holds: sqlite: 500 cycles, 9 labels, 1,500 kills"
    assert shown["server"] == "so far: server: nothing yet; not yet 500 cycles"


def test_parts_that_run_at_the_same_time_lose_no_count(tmp_path):
    kept = tmp_path / "kept.json"
    code = (
        "import sys; from pathlib import Path; from durability import Record\n"
        "for count in range(1, 201): Record(Path(sys.argv[1])).keep(sys.argv[2], {'examples': count})"
    )
    parts = list(durability.FULL)
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(kept), part], cwd=ROOT / "benchmarks") for part in parts
    ]
    assert [child.wait(120) for child in children] == [0] * len(parts)
    assert json.loads(kept.read_text()) == {part: {"examples": 200} for part in parts}


def test_fewer_cycles_run_and_are_kept_elsewhere(tmp_path):
    command = [sys.executable, "benchmarks/durability.py", "--only", "sqlite", "--cycles", "1"]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert refused.returncode == 2
    assert "--kept FILE" in refused.stderr
    kept = tmp_path / "kept.json"
    done = subprocess.run([*command, "--kept", str(kept)], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(kept.read_text())["sqlite"]["cycles"] == 1
