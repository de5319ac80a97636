"""A server and a browser that the tests of a module share."""

from __future__ import annotations

from collections.abc import Callable, Generator
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


@pytest.fixture(scope="module")
def driver() -> Generator[Any, None, None]:
    from browsing import playwright

    with playwright.sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(driver: Any) -> Generator[Any, None, None]:
    from browsing import launch

    opened = launch(driver)
    yield opened
    opened.close()


@pytest.fixture
def visit(browser: Any) -> Generator[Callable[..., Any], None, None]:
    """Lets someone come to a server with a browser of their own."""
    from browsing import Visitor

    visitors: list[Any] = []

    def come(url: str, **settings: Any) -> Any:
        visitors.append(Visitor(browser, url, **settings))
        return visitors[-1]

    yield come
    for visitor in visitors:
        visitor.close()
