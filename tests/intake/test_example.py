"""The example runs on the real pools, and the documentation's code runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / "pools.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_the_example_prints_a_line_per_pool(pools_dir: Path) -> None:
    done = run(str(pools_dir), "--limit", "400", "--explore", "50")
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.split()[0] == "pool"
    names = ["sms_spam", "hate_speech", "hiv", "german_credit", "mammography", "systematic_review"]
    assert [one.split()[0] for one in lines] == names
    assert len({len(one) for one in [head, *lines]}) == 1


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    assert "unknown pool 'x'" in run(str(tmp_path), "--only", "x").stderr
    done = run(str(tmp_path), "--only", "hiv")
    assert done.returncode == 2
    assert done.stderr == f"hiv: {tmp_path / 'hiv.csv'}: no such file\n"


def test_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "intake.md").read_text("utf-8"), re.DOTALL)
    assert len(code) >= 3
    exec("\n".join(code), {})
