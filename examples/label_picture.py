"""Makes docs/img/label.png: a server on a small table of messages, and a real Chromium that looks at it.

Needs the extra ``web``, selenium, and Chromium with its driver::

    python examples/label_picture.py docs/img/label.png
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import uvicorn
from selenium import webdriver

from activecover.home import Home
from activecover.web import Client
from activecover.web._app import make_app
from activecover.web.server import listen

WANTED = [
    "Congratulations! Your number has been drawn for a {prize}. Call {code} now to claim it before midnight.",
    "You have won a {prize}! To claim, text WIN to {code}. Charges apply, over 18 only.",
    "Final notice: your {prize} has not been claimed yet. Call the claims line on {code} today.",
]
OTHERS = [
    "Are you still coming to {place} tonight? I can pick you up around eight if you like.",
    "The meeting at {place} has been moved to Thursday, please bring the signed papers along.",
    "I left my umbrella at {place} again. Could you have a look when you are there tomorrow?",
    "Thanks for dinner yesterday! The walk back from {place} was longer than we thought.",
]
PRIZES = ["weekend in Rome", "gift card of 500 pounds", "new mobile phone", "holiday for two", "cash prize"]
PLACES = ["the station", "your sister's", "the office", "the library", "Tom's new flat", "the garden centre"]


def table(path: Path) -> dict[str, bool]:
    """Write the messages; which of them are of the kind that is looked for."""
    rows, truth = [], {}
    for number in range(90):
        wanted = number % 5 == 0
        lines, words = (WANTED, PRIZES) if wanted else (OTHERS, PLACES)
        code = 8700 + 37 * number % 900
        text = lines[number % len(lines)].format(
            prize=words[number // 5 % len(words)], place=words[number % len(words)], code=code
        )
        name = f"message-{number:03d}"
        rows.append(f'{name},"{text}",{"private" if number % 3 else "unknown sender"}')
        truth[name] = wanted
    path.write_text("id,text,sender\n" + "\n".join(rows), encoding="utf-8")
    return truth


def main(target: str) -> None:
    """Make the picture."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "messages.csv"
        truth = table(file)
        listener = listen("127.0.0.1", 0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(make_app(Home(folder)), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with Client(url) as client:
                campaign = client.new("messages", file, id_column="id", columns=["text"], embed="text", explore=10)
                for _ in range(18):
                    name = campaign.ask()[0].id
                    campaign.tell(name, truth[name])
                photograph(f"{url}/#/label/messages", target)
        finally:
            server.should_exit = True
            thread.join()


def photograph(address: str, target: str) -> None:
    """Look at a page."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1200,700",
    ):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.get(address)
        time.sleep(3)
        browser.save_screenshot(target)
    finally:
        browser.quit()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/img/label.png")
