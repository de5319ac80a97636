"""Fixtures of the tests of pools."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "pools" / "one"


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncs that take no time: a process that dies loses nothing without them, only a machine does."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
