"""Images in a folder or a zip file, opened one at a time."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.extras import require

SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})
#: No honest image in a zip file is larger than this; what claims to be would fill the memory.
_LARGEST_FILE = 1 << 28


class ImageFiles:
    """The images below a folder or in a zip file, in the order of their names.

    Parameters
    ----------
    path : path
        A folder, or a ``.zip`` file. Nothing of it is unpacked to disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._archive = None if path.is_dir() else zipfile.ZipFile(path)
        found = self._in_folder() if self._archive is None else self._archive.namelist()
        # Macs add a hidden twin of every file.
        seen = [name for name in found if not name.startswith("__MACOSX/")]
        self.names = sorted(name for name in seen if PurePosixPath(name).suffix.lower() in SUFFIXES)
        if not self.names:
            raise InputError(f"{path}: no images in it (looked for {', '.join(sorted(SUFFIXES))})")

    def __len__(self) -> int:
        return len(self.names)

    def read(self, row: int) -> bytes:
        """The bytes of one file."""
        name = self.names[row]
        try:
            if self._archive is None:
                return (self.path / name).read_bytes()
            size = self._archive.getinfo(name).file_size
            if size > _LARGEST_FILE:
                raise InputError(f"{self.path}: {name} unpacks to {size:,} bytes: too large for an image")
            return self._archive.read(name)
        except (OSError, KeyError, zipfile.BadZipFile, zlib.error) as wrong:
            raise InputError(f"{self.path}: row {row} ({name}) cannot be read ({wrong})") from wrong

    def pixels(self, row: int, side: int) -> npt.NDArray[np.float32]:
        """One image as ``side`` x ``side`` x 3 values from 0 to 1, whatever its size and colours."""
        image: Any = require("PIL.Image", extra="images", purpose="images")
        try:
            with image.open(io.BytesIO(self.read(row))) as opened:
                small = opened.convert("RGB").resize((side, side), image.Resampling.BILINEAR)
        except InputError:
            raise
        except Exception as wrong:
            # Damaged images make the decoders raise nearly anything.
            reason = str(wrong).partition("\n")[0] or type(wrong).__name__
            raise InputError(f"{self.path}: row {row} ({self.names[row]}) is no readable image ({reason})") from wrong
        return np.asarray(small, np.float32) / np.float32(255)

    def _in_folder(self) -> list[str]:
        return [file.relative_to(self.path).as_posix() for file in self.path.rglob("*") if file.is_file()]
