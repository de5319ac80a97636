"""Files of every kind that can be dropped in."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def pools_dir(data_dir: Path) -> Path:
    """The folder with the example pools, beside the data sets."""
    folder = data_dir / "pools"
    if not folder.is_dir():
        pytest.skip(f"{folder}: there is no such folder with the example pools")
    return folder
