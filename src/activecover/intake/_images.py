"""Images in a folder or a zip file, opened one at a time."""

from __future__ import annotations

import base64
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.extras import require
from activecover.pool import Unread

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})
#: No genuine image in a zip file is larger than this; a larger claim would fill the memory.
_LARGEST_FILE_BYTES = 1 << 28
#: Side of the picture kept for display: a page shows no more.
_SHOWN_SIDE = 640
_PICTURE = "data:image/"
#: Accepted formats, whatever the file name. For some other formats Pillow would start programs.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
#: Images with more pixels are not decoded: they would fill the memory.
LARGEST_PICTURE_PIXELS = 64_000_000
#: Each scan of a JPEG processes all its pixels again, but takes almost no space in the file.
_MOST_SCANS = 100
#: Most parts of a genuine image; a file with more keeps the decoder busy.
_MOST_PARTS = 100_000
_LONGEST_HEADER = 1000


class ImageFiles:
    """The images under a folder or in a zip file, sorted by name.

    Parameters
    ----------
    path : path
        A folder, or a ``.zip`` file, which is not unpacked to disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._archive = None if path.is_dir() else zipfile.ZipFile(path)
        found = self._in_folder() if self._archive is None else self._archive.namelist()
        # macOS adds a hidden copy of every file.
        seen = [name for name in found if not name.startswith("__MACOSX/")]
        self.names = sorted(name for name in seen if PurePosixPath(name).suffix.lower() in SUFFIXES)
        if not self.names:
            raise InputError(f"{path}: contains no images (looked for {', '.join(sorted(SUFFIXES))})")

    def __len__(self) -> int:
        return len(self.names)

    def read(self, row: int) -> bytes:
        """The bytes of one file."""
        name = self.names[row]
        try:
            if self._archive is None:
                return (self.path / name).read_bytes()
            size = self._archive.getinfo(name).file_size
            if size > _LARGEST_FILE_BYTES:
                raise InputError(f"{self.path}: {name} unpacks to {size:,} bytes: too large for an image")
            return self._archive.read(name)
        except (OSError, KeyError, zipfile.BadZipFile, zlib.error) as wrong:
            raise InputError(f"{self.path}: row {row} ({name}) cannot be read ({wrong})") from wrong

    def pixels(self, row: int, side: int) -> npt.NDArray[np.float32]:
        """One image as ``side`` x ``side`` x 3 values from 0 to 1, whatever its size and colours."""
        image = require("PIL.Image", extra="images", purpose="images")
        try:
            with open_picture(self.read(row), side) as opened:
                small = opened.convert("RGB").resize((side, side), image.Resampling.BILINEAR)
        except InputError:
            raise
        except Exception as wrong:
            # On damaged images the decoders raise almost anything.
            reason = str(wrong).partition("\n")[0] or type(wrong).__name__
            raise InputError(
                f"{self.path}: row {row} ({self.names[row]}) is not a readable image ({reason})"
            ) from wrong
        return np.asarray(small, np.float32) / np.float32(255)

    def pictures(self) -> Unread:
        """A column of all images, reduced for display and storage; created when read."""
        return Unread(_Pictures(self), 0)

    def _in_folder(self) -> list[str]:
        return [file.relative_to(self.path).as_posix() for file in self.path.rglob("*") if file.is_file()]


class _Pictures:
    """Images as contents of rows."""

    names = ("image",)

    def __init__(self, images: ImageFiles) -> None:
        self._images = images

    def __len__(self) -> int:
        return len(self._images)

    def read(self, row: int) -> list[str]:
        return [picture_of(self._images.read(row))]


def is_picture(value: object) -> bool:
    """Whether the value of a column is an image.

    Examples
    --------
    >>> is_picture("data:image/png;base64,AAAA"), is_picture("cat.png")
    (True, False)
    """
    return isinstance(value, str) and value.startswith(_PICTURE) and ";base64," in value[:40]


def picture_bytes(value: str) -> bytes:
    """The image file held by a column value; empty if it is damaged."""
    try:
        return base64.b64decode(value.partition(",")[2], validate=True)
    except ValueError:
        return b""


def open_picture(data: bytes, side: int, most: int = LARGEST_PICTURE_PIXELS) -> Image:
    """Open an image of a known format with Pillow, without decoding it.

    An image of more than ``most`` pixels is refused, unless it is a JPEG that can be decoded at a smaller size of at
    least ``side`` pixels in width and height.
    """
    image = require("PIL.Image", extra="images", purpose="images")
    _check_parts(data)
    opened: Image = image.open(io.BytesIO(data), formats=_FORMATS)
    width, height = opened.size
    if width * height > most:
        if width * height <= 4 * most:
            opened.draft("RGB", (side, side))
        if opened.width * opened.height > most:
            opened.close()
            raise ValueError(f"{width:,} x {height:,} pixels; {most:,} at most")
    return opened


def _check_parts(data: bytes) -> None:
    """Refuse an image that takes the decoder far longer than its size implies."""
    if data.startswith(b"\xff\xd8"):
        # In coded data, a byte of 255 is always followed by 0.
        if data.count(b"\xff\xda") > _MOST_SCANS:
            raise ValueError(f"more than {_MOST_SCANS} scans")
        parts = sum(1 for _ in islice(_segments(data), _MOST_PARTS + 1))
    elif data.startswith(b"\x89PNG"):
        parts = sum(1 for _ in islice(_chunks(data), _MOST_PARTS + 1))
    elif data.startswith(b"GIF8"):
        parts = data.count(b"!\xfe")
    elif data.startswith(b"P"):
        # The decoder reads numbers as text, and comments between them, one character at a time.
        if not _PIXMAP.match(data[:_LONGEST_HEADER]):
            raise ValueError("a pixmap of numbers as text, or with a long header")
        return
    else:
        return
    if parts > _MOST_PARTS:
        raise ValueError(f"more than {_MOST_PARTS:,} parts")


def _segments(data: bytes) -> Iterator[int]:
    """Offsets of a JPEG's segments before its first scan, and of skipped bytes."""
    place = 2
    while data[place : place + 1] == b"\xff" and (kind := data[place + 1 : place + 2]) != b"\xda":
        yield place
        if kind == b"\xff":
            place += 1
        elif kind in _ALONE:
            place += 2
        else:
            place += 2 + max(2, int.from_bytes(data[place + 2 : place + 4], "big"))


def _chunks(data: bytes) -> Iterator[int]:
    """Offsets of a PNG's chunks."""
    place = 8
    while place + 8 <= len(data):
        yield place
        place += 12 + int.from_bytes(data[place : place + 4], "big")


#: JPEG markers that are not followed by a length.
_ALONE = tuple(bytes([kind]) for kind in (0, 1, *range(0xD0, 0xDA)))
_GAP = rb"(?:\s|#[^\r\n]*[\r\n])+"
_PIXMAP = re.compile(rb"P(?:4%b\d+|[56]%b\d+%b\d+)%b\d+\s" % ((_GAP,) * 4))


def picture_of(data: bytes) -> str:
    """An image as text for a column: re-encoded at a small size."""
    require("PIL.Image", extra="images", purpose="images")
    made = io.BytesIO()
    try:
        with open_picture(data, _SHOWN_SIDE) as opened:
            opened.thumbnail((_SHOWN_SIDE, _SHOWN_SIDE))
            small = opened.width * opened.height <= 64 * 64
            kind = "PNG" if small or opened.mode in ("1", "P", "RGBA", "LA") else "JPEG"
            drawn = opened.convert("RGBA" if opened.mode in ("P", "LA", "RGBA") else "RGB")
            drawn.save(made, kind, **({"quality": 85} if kind == "JPEG" else {}))
    except Exception:
        return ""  # not readable: the embedding decides whether to refuse the row
    return f"{_PICTURE}{kind.lower()};base64,{base64.b64encode(made.getvalue()).decode()}"
