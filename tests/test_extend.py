"""docs/extend.md, followed word by word by somebody who has nothing but the page: one new file per part."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "extend.md"
SOURCE = Path(__file__).resolve().parents[1] / "src"
SECTIONS = re.findall(r"^## (Add .*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: The file that a block is to be written to is named in the last words before it.
NAMED = re.compile(r"Write `(\w+\.py)`:\s*\Z")


class Stranger:
    """Somebody in an empty folder, who writes files and runs what the page shows."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.parts, self.written = folder, "", []
        commands = folder.parent / "bin"
        commands.mkdir()
        for name, run in (("activecover", f'"{sys.executable}" -m activecover'), ("python", f'"{sys.executable}"')):
            (commands / name).write_text(f'#!/bin/sh\nexec {run} "$@"\n')
            (commands / name).chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(SOURCE),
            "COLUMNS": "200",
            "ACTIVECOVER_HOME": str(folder / "home"),
        }

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")
        self.written.append(name)

    def run(self, command: list[str], **more: str) -> str:
        ran = subprocess.run(
            command, cwd=self.folder, env={**self.environment, "ACTIVECOVER_PARTS": self.parts}, text=True,
            capture_output=True, timeout=300, **more,
        )  # fmt: skip
        assert ran.returncode == 0, f"{command}: {ran.stderr}{ran.stdout}"
        return ran.stdout

    def console(self, text: str) -> None:
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            if command.startswith("export ACTIVECOVER_PARTS="):
                self.parts = command.partition("=")[2]
                continue
            shown = self.run(["bash", "-o", "pipefail", "-c", command])
            assert [line.rstrip() for line in shown.splitlines()] == expected.splitlines(), command


@pytest.mark.parametrize(("title", "section"), SECTIONS, ids=[title for title, _ in SECTIONS])
def test_a_stranger_follows_the_page(title: str, section: str, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    stranger = Stranger(folder)
    for block in BLOCK.finditer(section):
        language, text = block.groups()
        named = NAMED.search(section[: block.start()])
        if named:
            stranger.write(named[1], text)
            stranger.parts = named[1]
        elif language == "python":
            stranger.run([sys.executable, "-"], input=text)
        else:
            stranger.console(text)
    assert len(stranger.written) == 1, "one file and no other"
    shown = {block[1] for block in BLOCK.findall(section)}
    assert any("export ACTIVECOVER_PARTS" in text for text in shown)


def test_all_four_parts_are_on_the_page() -> None:
    assert [title for title, _ in SECTIONS] == [
        "Add a learner", "Add a stopping rule", "Add a data set", "Add an embedding",
    ]  # fmt: skip
