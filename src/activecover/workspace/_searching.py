"""Looking for bytes in files, inside compressed ones too."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from activecover.extras import require

_BLOCK = 1 << 22
#: Files in files in files: more is not looked into.
_DEEPEST = 3
#: What is packed in a file is opened in turn if it is no larger than this; it is searched however large it is.
_LARGEST_INSIDE = 1 << 28
_PACKED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_BROKEN = (
    zipfile.BadZipFile,
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    zlib.error,
    lzma.LZMAError,
)


class Search:
    """A search for markers.

    Parameters
    ----------
    markers : sequence of bytes
        What must not be found.
    """

    def __init__(self, markers: Sequence[bytes]) -> None:
        #: What each form of a marker stands for.
        self._forms = {form: marker for marker in markers for form in _forms(marker)}

    def file(self, path: Path) -> list[bytes]:
        """Which markers a file holds, raw or unpacked."""
        if not self._forms:
            return []
        left = set(self._forms)
        with path.open("rb") as file:
            self._look(left, file, _DEEPEST)
        return self._found(left)

    def texts(self, values: Iterable[Any]) -> list[bytes]:
        """Which markers stand in values."""
        left = set(self._forms)
        for value in values:
            self._look_at(left, value)
        return self._found(left)

    def _found(self, left: set[bytes]) -> list[bytes]:
        return sorted({marker for form, marker in self._forms.items() if form not in left})

    def _look(self, left: set[bytes], file: IO[bytes] | _Joined, deep: int) -> None:
        """Take away the markers that a file holds, also across the ends of blocks."""
        head = file.read(_BLOCK)
        tail, block, longest = b"", head, max(map(len, left), default=0)
        while left and block:
            text = tail + block
            left -= {marker for marker in left if marker in text}
            tail = text[-longest:]
            block = file.read(_BLOCK)
        if left and deep and not isinstance(file, _Joined) and file.seekable():
            try:
                file.seek(0)
                self._look_into(left, file, head, deep - 1)
            except _BROKEN:
                pass  # damaged, or encrypted: it was searched as it is

    def _look_into(self, left: set[bytes], file: IO[bytes], head: bytes, deep: int) -> None:
        if head.startswith(b"PAR1"):
            self._look_at_table(left, file)
        elif opener := next((opener for start, opener in _PACKED.items() if head.startswith(start)), None):
            with opener(file) as unpacked:  # type: ignore[operator]
                self._look_inside(left, unpacked, deep)
        elif zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as packed:
                for part in packed.infolist():
                    with packed.open(part) as unpacked:
                        self._look_inside(left, unpacked, deep)

    def _look_inside(self, left: set[bytes], unpacked: IO[bytes], deep: int) -> None:
        begin = unpacked.read(_LARGEST_INSIDE)
        if len(begin) < _LARGEST_INSIDE:
            self._look(left, io.BytesIO(begin), deep)
            return
        self._look(left, _Joined(begin, unpacked), 0)

    def _look_at_table(self, left: set[bytes], file: IO[bytes]) -> None:
        parquet: Any = require("pyarrow.parquet", extra="parquet", purpose="looking into Parquet files")
        for batch in parquet.ParquetFile(file).iter_batches(batch_size=1024):
            for column in batch.columns:
                for value in column.to_pylist():
                    self._look_at(left, value)

    def _look_at(self, left: set[bytes], value: object) -> None:
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
        left -= {marker for marker in left if marker in data}


def _forms(marker: bytes) -> set[bytes]:
    """How a marker may stand in a file: as it is, within JSON or CSV, or as UTF-16."""
    try:
        text = marker.decode()
    except UnicodeDecodeError:
        return {marker}
    within = (json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1], text.replace('"', '""'))
    return {marker, *(form.encode() for form in within), text.encode("utf-16-le")}


class _Joined:
    """What was read of a file already, and then the rest of it."""

    def __init__(self, begin: bytes, rest: IO[bytes]) -> None:
        self._begin, self._rest = io.BytesIO(begin), rest

    def read(self, size: int = -1) -> bytes:
        return self._begin.read(size) or self._rest.read(size)
