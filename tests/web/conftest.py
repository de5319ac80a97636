"""A server that the tests of a module share."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Any, None, None]:
    from serving import ThreadServer, make_home, scene

    folder = tmp_path_factory.mktemp("home")
    pool, _ = scene()
    make_home(folder, pool)
    make_home(folder, pool, "pair", overlap=2, explore=0, known=["m/0"])
    running = ThreadServer(folder)
    yield running
    running.stop()
