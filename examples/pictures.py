"""Makes the pictures of the page in docs/images: every view, light and dark, on a desk and on a phone.

Needs the extras ``web`` and ``images``, playwright, and Chromium::

    python examples/pictures.py docs/images
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from PIL import Image, ImageDraw
from playwright.sync_api import sync_playwright

from activecover.web import Client, RemoteCampaign
from activecover.web._access import Door
from activecover.web._app import make_app
from activecover.web.server import listen
from activecover.workspace import Workspace

WANTED = [
    "Congratulations! Your number has been drawn for a {prize}. Call {code} now to claim it before midnight.",
    "You have won a {prize}! To claim, text WIN to {code}. Charges apply, over 18 only.",
    "Final notice: your {prize} has not been claimed yet. Call the claims line on {code} today.",
]
OTHERS = [
    "Are you still coming to {place} on {day}? I can pick you up around {code} if you like.",
    "The meeting at {place} has been moved to {day}, please bring the signed papers along.",
    "I left my umbrella at {place} again. Could you have a look when you are there on {day}?",
    "Thanks for dinner on {day}! The walk back from {place} was longer than we thought.",
    "Call me when you have left {place}, the train at {code} is not running on {day}.",
]
PRIZES = ["weekend in Rome", "gift card of 500 pounds", "new mobile phone", "holiday for two", "cash prize"]
PLACES = ["the station", "your sister's", "the office", "the library", "Tom's new flat", "the garden centre"]
CHATTER = [
    "weather",
    "football",
    "breakfast",
    "garden",
    "concert",
    "painting",
    "kitchen",
    "holiday",
    "exam",
    "parcel",
    "bicycle",
    "doctor",
    "cinema",
    "neighbour",
    "laptop",
    "coffee",
    "market",
    "river",
    "mountain",
    "birthday",
    "cousin",
    "guitar",
    "homework",
    "lunch",
    "museum",
    "passport",
    "puppy",
    "recipe",
    "snow",
    "taxi",
]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
SMILES = ["CC(=O)Oc1ccccc1C(=O)O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "c1ccc2c(c1)cccc2O",
          "COc1cc2c(cc1OC)CCN=C2", "CC(=O)Nc1ccc(O)cc1", "OC(=O)c1ccccc1O", "Cn1cnc2c1c(=O)[nH]c(=O)n2C"]  # fmt: skip
SIZES = {"desk": {"width": 1200, "height": 760}, "phone": {"width": 390, "height": 780}}


def messages(path: Path, rows: int = 900) -> dict[str, bool]:
    """Write messages; which of them are of the kind that is looked for."""
    random = np.random.default_rng(5)
    lines, truth = [], {}
    for number in range(rows):
        name = f"message-{number:03d}"
        truth[name] = bool(random.random() < 0.12)
        text = str(random.choice(WANTED if truth[name] else OTHERS)).format(
            prize=random.choice(PRIZES), place=random.choice(PLACES), day=random.choice(DAYS),
            code=random.integers(8000, 9000),
        )  # fmt: skip
        extra = " ".join(random.choice(CHATTER, 4)).capitalize()
        text += f" {extra}."
        lines.append(f'{name},"{text}",{"unknown sender" if random.random() < 0.4 else "private"}')
    path.write_text("id,text,sender\n" + "\n".join(lines), encoding="utf-8")
    return truth


def molecules(path: Path) -> None:
    """Write molecules."""
    rows = [f"mol-{number},{smiles}" for number, smiles in enumerate(SMILES)]
    path.write_text("id,smiles\n" + "\n".join(rows), encoding="utf-8")


def shapes(path: Path, count: int = 40) -> None:
    """Draw round and square things, one image each, into a zip file."""
    import zipfile

    random = np.random.default_rng(1)
    with zipfile.ZipFile(path, "w") as packed:
        for number in range(count):
            picture = Image.new("RGB", (320, 240), tuple(random.integers(200, 256, 3).tolist()))
            left, top, size = random.integers(20, 120, 3).tolist()
            draw = ImageDraw.Draw(picture)
            shape = draw.ellipse if number % 4 == 0 else draw.rectangle
            shape((left, top, left + size, top + size), fill=tuple(random.integers(20, 160, 3).tolist()))
            data = io.BytesIO()
            picture.save(data, "PNG")
            packed.writestr(f"part-{number:02d}.png", data.getvalue())


def label(campaign: RemoteCampaign, truth: dict[str, bool], count: int, by: str) -> None:
    """Label truthfully, with a slip now and then where two people look at an item."""
    for number in range(count):
        items = campaign.ask(by=by)
        if not items:
            return
        slip = by == "bob" and number % 9 == 8
        campaign.tell(items[0].id, truth[items[0].id] != slip, by=by)


def fill(client: Client, folder: Path) -> dict[str, bool]:
    """Campaigns in which something has happened."""
    truth = messages(folder / "messages.csv")
    how: dict[str, Any] = {"id_column": "id", "columns": ["text"], "embed": "text", "seed": 2}
    first = client.new("messages", folder / "messages.csv", explore=40, **how)
    label(first, truth, 130, "ann")
    second = client.new("messages-twice", folder / "messages.csv", explore=10, overlap=2, **how)
    label(second, truth, 30, "ann")
    label(second, truth, 34, "bob")
    done = client.new("messages-certified", folder / "messages.csv", explore=20, certify="0.9@0.95", **how)
    label(done, truth, len(truth), "ann")
    molecules(folder / "molecules.csv")
    chemistry = client.new("molecules", folder / "molecules.csv", id_column="id", explore=0, known=["mol-0"])
    chemistry.tell("mol-6", True)
    shapes(folder / "parts.zip")
    client.new("parts", folder / "parts.zip", explore=0, known=["part-00.png"])
    return truth


def ready(selector: str, then: Callable[[Any], None] = lambda _: None) -> Callable[[Any], None]:
    """Wait for something on a page, then do something."""

    def look(page: Any) -> None:
        page.wait_for_selector(selector)
        page.wait_for_timeout(700)
        then(page)

    return look


def choose_file(file: Path) -> Callable[[Any], None]:
    """Choose a file to set up."""

    def act(page: Any) -> None:
        page.set_input_files("#file", str(file))
        page.wait_for_selector("#new-name")
        page.wait_for_timeout(300)

    return act


def ten(page: Any) -> None:
    """Go to the list, and answer three."""
    page.keyboard.press("l")
    page.wait_for_selector("ol.ten li button")
    for key in "yyy":
        page.keyboard.press(key)
    page.wait_for_timeout(300)


def photograph(url: str, folder: Path, target: Path) -> None:
    """Every view in every way."""
    item, rows = "article.item[data-id]", "tbody tr"
    views: dict[str, tuple[str, Callable[[Any], None]]] = {
        "label": ("label/messages", ready(item)),
        "list": ("label/messages", ready(item, ten)),
        "progress": ("progress/messages", ready("svg.chart")),
        "certified": ("progress/messages-certified", ready("#stopped")),
        "map": ("map/messages", ready("canvas[data-points]")),
        "history": ("history/messages-twice", ready(rows)),
        "setup": ("setup/", ready(".drop", choose_file(folder / "messages.csv"))),
        "campaigns": ("campaigns/", ready(rows)),
        "molecule": ("label/molecules", ready(item)),
        "image": ("label/parts", ready(item)),
    }
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        for device, size in SIZES.items():
            for scheme in ("light", "dark"):
                context = browser.new_context(viewport=size, color_scheme=scheme)
                for name, (address, look) in views.items():
                    page = context.new_page()
                    page.goto(f"{url}/#/{address}")
                    look(page)
                    whole = name not in ("label", "list", "molecule", "image", "map")
                    keep(page.screenshot(full_page=whole), target / f"{name}-{device}-{scheme}.png")
                    page.evaluate("sessionStorage.clear()")
                    page.close()
                context.close()
        browser.close()


def keep(data: bytes, path: Path) -> None:
    """Store a picture with few colours: it is a page, not a photograph."""
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    tall = min(picture.height, (2 if picture.width > 500 else 4) * picture.width)
    picture.crop((0, 0, picture.width, tall)).quantize(192, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path)


def main(target: str) -> None:
    """Make all of them."""
    Path(target).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        listener = listen("127.0.0.1", 0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = uvicorn.Server(
            uvicorn.Config(make_app(Workspace(folder / "home"), door=Door(open_since=time.time())), log_level="warning")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with Client(url) as client:
                fill(client, folder)
                photograph(url, folder, Path(target))
        finally:
            server.should_exit = True
            thread.join()


if __name__ == "__main__":
    main(sys.argv[1])
