"""How an item is shown: its text with what links it to a positive, a molecule, an image, or a template."""

from __future__ import annotations

import html
import importlib
import io
import math
import re
import secrets
import threading
from collections import OrderedDict
from typing import Any

from activecover.campaign import Campaign, Item
from activecover.errors import InputError
from activecover.extras import require
from activecover.intake import ImageFiles
from activecover.pool import Pool

_WORD = re.compile(r"[^\W\d_][\w'-]{2,}")
_FIELD = re.compile(r"\{\{\s*(.+?)\s*\}\}")
_LONG = 60
_SAMPLED = 200
_MOST_TERMS = 40
_MOST_FRAMES = 2000
LARGEST_TEMPLATE = 1 << 18


class Frames:
    """Rendered templates that wait to be fetched, under names that cannot be guessed.

    A frame of the page cannot send a token along, so that the name has to do.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: OrderedDict[str, str] = OrderedDict()

    def keep(self, page: str) -> str:
        """Keep a page and give its name; the oldest go when there are too many."""
        name = secrets.token_urlsafe(18)
        with self._lock:
            self._pages[name] = page
            while len(self._pages) > _MOST_FRAMES:
                self._pages.popitem(last=False)
        return name

    def get(self, name: str) -> str | None:
        """A page by its name."""
        with self._lock:
            return self._pages.get(name)


class Showcase:
    """Shows the items of one campaign.

    Parameters
    ----------
    campaign : Campaign
        Whose items.
    template : str or None
        HTML with ``{{ column }}`` for what stands in a column; shown in a frame that runs nothing.
    images : ImageFiles or None
        Where the rows are images, and the file is kept.
    frames : Frames
        Where rendered templates go.
    """

    def __init__(self, campaign: Campaign, template: str | None, images: ImageFiles | None, frames: Frames) -> None:
        self.campaign = campaign
        self.template = template
        self._images = images
        self._image_rows = {} if images is None else {name: row for row, name in enumerate(images.names)}
        self._frames = frames
        self.texts = _text_columns(campaign.pool)
        self.smiles = next((name for name in campaign.pool.contents if name.casefold() == "smiles"), None)

    def item(self, item: Item) -> dict[str, Any]:
        """An item with all that the page needs to show it, and its nearest positive beside it."""
        beside = self._beside(item.nearest)
        shown: dict[str, Any] = {
            "id": item.id,
            "content": plain(item.content),
            "source": item.source,
            "distance": item.distance,
            "nearest": item.nearest,
            "reason": item.reason,
            "view": self._view(item.content),
            "beside": None if beside is None else {**beside, "view": self._view(beside["content"])},
        }
        if beside is not None:
            shown["view"]["terms"] = self._shared_terms(item.content, beside["content"])
        return shown

    def any_item(self, row: int) -> dict[str, Any]:
        """Any row of the pool, without a reason."""
        content = self.campaign.pool.content(row)
        return {"id": self.campaign.pool.id(row), "content": plain(content), "view": self._view(content)}

    def image(self, row: int) -> tuple[bytes, str]:
        """The image of a row, and what kind it is."""
        name = str(self.campaign.pool.content(row).get("file", ""))
        if self._images is None or name not in self._image_rows:
            raise InputError(f"id {self.campaign.pool.id(row)!r} has no image here")
        data = self._images.read(self._image_rows[name])
        return _as_png(data)

    def _beside(self, nearest: str | None) -> dict[str, Any] | None:
        if nearest is None:
            return None
        try:
            row = int(self.campaign.pool.rows([nearest])[0])
        except InputError:
            return None  # from outside the pool: there is nothing to show
        if self.campaign.pool.withdrawn[row]:
            return None
        return {"id": nearest, "content": plain(self.campaign.pool.content(row))}

    def _view(self, content: dict[str, Any]) -> dict[str, Any]:
        molecule = None if self.smiles is None else draw_molecule(str(content.get(self.smiles) or ""))
        frame = None
        if self.template is not None:
            frame = "/frame/" + self._frames.keep(render(self.template, content))
        image = str(content.get("file", "")) in self._image_rows
        return {"texts": self.texts, "molecule": molecule, "image": image, "frame": frame, "terms": []}

    def _shared_terms(self, content: dict[str, Any], other: dict[str, Any]) -> list[str]:
        names = self.texts or [name for name in content if name not in (self.smiles, "file")]
        return shared_terms(*(" ".join(str(part.get(name) or "") for name in names) for part in (content, other)))


def shared_terms(text: str, other: str) -> list[str]:
    """Words that two texts share, common ones left out, in the order of the first.

    Examples
    --------
    >>> shared_terms("You have won a FREE prize!", "A free holiday prize for you")
    ['free', 'prize']
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    there = {word.casefold() for word in _WORD.findall(other)} - ENGLISH_STOP_WORDS
    shared = dict.fromkeys(word.casefold() for word in _WORD.findall(text) if word.casefold() in there)
    return list(shared)[:_MOST_TERMS]


def render(template: str, content: dict[str, Any]) -> str:
    """A template with what stands in the columns, escaped; the rest of it is the user's own.

    Examples
    --------
    >>> render("<b>{{ title }}</b>", {"title": "<script>"})
    '<b>&lt;script&gt;</b>'
    """
    return _FIELD.sub(lambda match: html.escape(str(content.get(match[1], "") or "")), template)


def draw_molecule(smiles: str) -> str | None:
    """A molecule as SVG, if it is one and RDKit is there."""
    if not smiles:
        return None
    try:
        chem: Any = importlib.import_module("rdkit.Chem")
        draw: Any = importlib.import_module("rdkit.Chem.Draw.rdMolDraw2D")
        logger: Any = importlib.import_module("rdkit.RDLogger")
    except ImportError:
        return None
    logger.DisableLog("rdApp.*")
    molecule = chem.MolFromSmiles(smiles)
    if molecule is None or molecule.GetNumAtoms() > 300:
        return None
    drawing = draw.MolDraw2DSVG(420, 300)
    drawing.drawOptions().clearBackground = False
    draw.PrepareAndDrawMolecule(drawing, molecule)
    drawing.FinishDrawing()
    return str(drawing.GetDrawingText())


def plain(content: dict[str, Any]) -> dict[str, Any]:
    """Contents as JSON can hold them."""
    return {str(name): _plain(value) for name, value in content.items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def _text_columns(pool: Pool) -> list[str]:
    """Columns that are read rather than looked up: long on average."""
    step = max(1, len(pool) // _SAMPLED)
    found = []
    for name, values in pool.contents.items():
        sample = [str(values[row]) for row in range(0, len(pool), step) if isinstance(values[row], str)]
        if sample and sum(map(len, sample)) / len(sample) >= _LONG and name.casefold() != "smiles":
            found.append(name)
    return found


def _as_png(data: bytes) -> tuple[bytes, str]:
    """An image made anew, so that a file that is something else besides is shown as an image or not at all."""
    image: Any = require("PIL.Image", extra="images", purpose="images")
    try:
        with image.open(io.BytesIO(data)) as opened:
            opened.thumbnail((1024, 1024))
            made = io.BytesIO()
            opened.convert("RGB").save(made, "PNG")
    except Exception as wrong:
        raise InputError("this is no readable image") from wrong
    return made.getvalue(), "image/png"
