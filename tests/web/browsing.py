"""A real Chromium for tests of the page: pages that complain are remembered."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

DESKTOP = {"width": 1200, "height": 850}
PHONE = {"width": 390, "height": 780}


def chromium_path() -> str:
    """Where Chromium is; the tests that need it are skipped where it is not."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no Chromium: apt-get install chromium")
    return found


FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def launch(driver: Any) -> Any:
    return driver.chromium.launch(executable_path=chromium_path(), args=FLAGS)


class Visitor:
    """Someone at a browser of their own."""

    def __init__(self, browser: Any, url: str, **settings: Any) -> None:
        self.url = url
        self.context = browser.new_context(**{"viewport": DESKTOP, "accept_downloads": True, **settings})
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda wrong: self.complaints.append(str(wrong)))
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)

    def go(self, view: str, name: str = "mail") -> None:
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/#/{view}/{name}")

    def sign_in(self, token: str) -> None:
        """Begin a session, as the page does."""
        answer = self.context.request.post(f"{self.url}/api/login", headers={"Authorization": f"Bearer {token}"})
        assert answer.ok, answer.text()

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def until(self, condition: Callable[[], Any], what: str, seconds: float = 30) -> Any:
        """Look until something holds; what it was otherwise."""
        for _ in range(int(50 * seconds)):
            if found := condition():
                return found
            self.page.wait_for_timeout(20)
        raise AssertionError(what)

    def script(self, code: str) -> Any:
        return self.page.evaluate(code)

    def shown(self, other_than: str | None = None) -> str:
        """The id of the item on the screen, once it is another."""
        look = "document.querySelector('article.item')?.dataset.id ?? null"
        self.until(lambda: self.script(look) not in (None, other_than), "no item appeared")
        return str(self.script(look))

    def close(self) -> None:
        self.context.close()
