"""Files of every kind that can be dropped in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def pools_dir() -> Path:
    """The folder with the example pools."""
    folder = os.environ.get("ACTIVECOVER_POOLS")
    if not folder or not Path(folder).is_dir():
        pytest.skip("ACTIVECOVER_POOLS names no folder: it holds the example pools")
    return Path(folder)
