"""A server that the tests of a module share."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from serving import ThreadServer, make_home, scene


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[ThreadServer, None, None]:
    folder = tmp_path_factory.mktemp("home")
    pool, _ = scene()
    make_home(folder, pool)
    make_home(folder, pool, "pair", overlap=2, explore=0, known=["m/0"])
    running = ThreadServer(folder)
    yield running
    running.stop()
