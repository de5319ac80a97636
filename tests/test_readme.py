"""What the README shows works as shown: its Python blocks and its commands, in the order of the page."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from activecover.cli import main

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_OURS = ("make", "git", "pip", "cd")


def steps() -> list[tuple[str, str]]:
    """Python blocks and command lines, as (kind, text)."""
    found: list[tuple[str, str]] = []
    for kind, text in BLOCK.findall(README.read_text(encoding="utf-8")):
        if kind == "python":
            found.append(("python", text))
        elif kind in ("console", "bash"):
            lines = text.replace("\\\n", " ").splitlines()
            found += [("command", line[2:]) for line in lines if line.startswith("$ ")]
    return found


def test_readme_shows_something() -> None:
    kinds = [kind for kind, _ in steps()]
    assert kinds.count("python") >= 2
    assert kinds.count("command") >= 4


def test_readme_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", README.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (README.parent / target).exists()]
    assert targets
    assert not missing


def test_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "readme"}
    for kind, text in steps():
        if kind == "python":
            exec(compile(text, "README.md", "exec"), namespace)
            continue
        words = shlex.split(text, comments=True)
        if words[0] in NOT_OURS:
            continue
        assert words[0] == "activecover", f"README shows a command that no test knows: {text}"
        # A person would press keys; here the input ends at once, which means quit.
        monkeypatch.setattr("sys.stdin", io.StringIO(""))
        code = main(words[1:])
        assert code == 0, f"{text}\nexit code {code}\n{capsys.readouterr().err}"
