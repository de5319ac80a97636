"""Fixtures of the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_input import (
    GOOD,
    made_log,
)


@pytest.fixture(scope="session")
def log() -> bytes:
    return made_log()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, content in GOOD.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path
