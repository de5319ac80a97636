"""How an item is shown: its text with what links it to a positive, a molecule, an image, or a template."""

from __future__ import annotations

import hashlib
import hmac
import html
import importlib
import io
import json
import math
import re
import threading
from typing import Any
from urllib.parse import quote, urlencode

from activecover.campaign import Campaign, Item, named_positive
from activecover.errors import InputError
from activecover.extras import require
from activecover.intake import is_picture, open_picture, picture_bytes
from activecover.pool import Pool

_WORD = re.compile(r"[^\W\d_][\w'-]{2,}")
_FIELD = re.compile(r"\{\{\s*(.+?)\s*\}\}")
_LONG = 60
_SAMPLED = 200
_MOST_TERMS = 40
LARGEST_TEMPLATE = 1 << 18
_SHOWN_SIDE = 1024
#: Decoded in the server itself, so less than intake takes, and not many at the same time.
_LARGEST_PICTURE, _LARGEST_FILE = 32_000_000, 1 << 25
_DECODING = threading.BoundedSemaphore(2)
_LONGEST_SMILES = 5000


class Showcase:
    """Shows the items of one campaign.

    Parameters
    ----------
    name : str
        Of the campaign, for the addresses of pictures.
    campaign : Campaign
        Whose items.
    template : str or None
        HTML with ``{{ column }}`` for what stands in a column; shown in a frame that runs nothing.
    secret : bytes
        Of the home, to mark the addresses of what was shown to someone.
    """

    def __init__(self, name: str, campaign: Campaign, template: str | None, secret: bytes) -> None:
        self.campaign = campaign
        self.template = template
        self._secret = hashlib.sha256(secret + name.encode("utf-8", "surrogatepass")).digest()
        self._path = f"/api/campaigns/{quote(name, safe='')}"
        self.texts = _text_columns(campaign.pool)
        self.smiles = next((name for name in campaign.pool.contents if name.casefold() == "smiles"), None)

    def item(self, item: Item, *, blind: bool = False, shown_to: str | None = None) -> dict[str, Any]:
        """An item with all that the page needs to show it, and its nearest positive beside it.

        Of a ``blind`` view no field tells why the item was asked for. The addresses in a view that is ``shown_to``
        someone have a mark, by which it is known later that they may look there.
        """
        beside = self._beside(item.nearest, shown_to)
        view = self._view(item.id, item.content, shown_to)
        if beside is not None:
            view["terms"] = self._shared_terms(item.content, beside["content"])
            beside = {**beside, "content": self._plain(beside["id"], beside["content"], shown_to)}
        return {
            "id": item.id,
            "content": self._plain(item.id, item.content, shown_to),
            "source": None if blind else item.source,
            "distance": None if blind else item.distance,
            "nearest": None if blind else named_positive(item.nearest),
            "outside": None if blind or not isinstance(item.nearest, int) else item.nearest,
            "reason": None if blind else item.reason,
            "because": None if blind else item.because,
            "duplicates": list(item.duplicates),
            "view": view,
            "beside": beside,
        }

    def any_item(self, row: int) -> dict[str, Any]:
        """Any row of the pool, without a reason."""
        name = self.campaign.pool.id(row)
        return {"id": name, "content": self.content(row), "view": self._view(name, self.campaign.pool.content(row))}

    def content(self, row: int) -> dict[str, Any]:
        """What stands in a row's columns, with addresses for pictures."""
        return self._plain(self.campaign.pool.id(row), self.campaign.pool.content(row))

    def images(self, row: int) -> list[str]:
        """Which columns of a row hold pictures."""
        return [column for column, value in self.campaign.pool.content(row).items() if is_picture(value)]

    def image(self, row: int, column: str) -> tuple[bytes, str]:
        """The picture in a column of a row, and what kind it is."""
        value = self.campaign.pool.content(row).get(column)
        if value is None or not is_picture(value):
            raise InputError(f"id {self.campaign.pool.id(row)!r} has no image in column {column!r}")
        return _as_png(picture_bytes(value))

    def page(self, row: int) -> str:
        """A row by the template."""
        if self.template is None:
            raise InputError("this campaign has no template")
        return render(self.template, self.campaign.pool.content(row))

    def was_shown(self, mark: str, name: str, who: str | None) -> bool:
        """Whether a mark proves that an item was shown to someone."""
        return who is not None and hmac.compare_digest(mark.encode("utf-8", "replace"), self._mark(name, who).encode())

    def _mark(self, name: str, who: str) -> str:
        data = json.dumps([name, who]).encode()
        return hmac.new(self._secret, data, hashlib.sha256).hexdigest()[:32]

    def _address(self, what: str, name: str, who: str | None, column: str | None = None) -> str:
        """Where a picture or a frame of an item is, with the mark for someone."""
        query = {"id": name, "column": column, "shown": None if who is None else self._mark(name, who)}
        given = {key: value for key, value in query.items() if value is not None}
        return f"{self._path}/{what}?{urlencode(given, quote_via=quote, safe='')}"

    def _beside(self, nearest: str | int | None, who: str | None) -> dict[str, Any] | None:
        if not isinstance(nearest, str):
            return None  # from outside the pool: there is nothing to show
        try:
            row = int(self.campaign.pool.rows([nearest])[0])
        except InputError:
            return None  # from outside the pool, in a log of an earlier version
        if self.campaign.pool.withdrawn[row]:
            return None
        content = self.campaign.pool.content(row)
        return {"id": nearest, "content": content, "view": self._view(nearest, content, who)}

    def _view(self, name: str, content: dict[str, Any], who: str | None = None) -> dict[str, Any]:
        molecule = None if self.smiles is None else draw_molecule(str(content.get(self.smiles) or ""))
        frame = None if self.template is None else self._address("frame", name, who)
        images = [column for column, value in content.items() if is_picture(value)]
        return {"texts": self.texts, "molecule": molecule, "images": images, "frame": frame, "terms": []}

    def _plain(self, name: str, content: dict[str, Any], who: str | None = None) -> dict[str, Any]:
        """Contents as JSON can hold them; pictures are replaced by their addresses."""
        plain = {}
        for column, value in content.items():
            picture = is_picture(value)
            plain[str(column)] = self._address("image", name, who, str(column)) if picture else _plain(value)
        return plain

    def _shared_terms(self, content: dict[str, Any], other: dict[str, Any]) -> list[str]:
        pictures = [name for name, value in content.items() if is_picture(value)]
        names = self.texts or [name for name in content if name not in (self.smiles, "file", *pictures)]
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
    if not smiles or len(smiles) > _LONGEST_SMILES:
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


def _plain(value: object) -> str | float | None:
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
        drawn = (values[row] for row in range(0, len(pool), step))
        sample = [value for value in drawn if isinstance(value, str) and not is_picture(value)]
        if sample and sum(map(len, sample)) / len(sample) >= _LONG and name.casefold() != "smiles":
            found.append(name)
    return found


def _as_png(data: bytes) -> tuple[bytes, str]:
    """Encode an image again, so that a file that is something else as well is shown as an image or not at all."""
    require("PIL.Image", extra="images", purpose="images")
    try:
        if len(data) > _LARGEST_FILE:
            raise ValueError(f"{len(data):,} bytes; {_LARGEST_FILE:,} at most")
        with _DECODING, open_picture(data, _SHOWN_SIDE, _LARGEST_PICTURE) as opened:
            opened.thumbnail((_SHOWN_SIDE, _SHOWN_SIDE))
            made = io.BytesIO()
            opened.convert("RGB").save(made, "PNG")
    except ValueError as wrong:
        raise InputError(f"this is no image that can be shown ({wrong})") from wrong
    except Exception as wrong:
        raise InputError("this is no readable image") from wrong
    return made.getvalue(), "image/png"
