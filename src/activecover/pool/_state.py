"""What ``pool.json`` records about a pool folder: its files, their layout and their hashes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from activecover.errors import InputError, StoreError
from activecover.pool._parts import (
    HEADER,
    Part,
    array_header,
    said,
)
from activecover.pool._schema import check_stored

FORMAT = 1
ABOUT = "pool.json"
EMBEDDING = "embedding"
STATISTICS = "statistics"
VECTORS, DATA, INDICES, ROW_ENDS = "vectors.npy", "data.npy", "indices.npy", "indptr.npy"
ORIGIN, WITHDRAWN, IDS = "origin.npy", "withdrawn.npy", "ids.jsonl"
CONTENTS, ENDS = "contents.bin", "offsets.npy"
#: More entries than this need wider indices than 32 bits.
MOST_NARROW = 2**31 - 1


@dataclass
class FolderState:
    """The record in ``pool.json``; replacing it commits a change as a whole."""

    kind: str
    metric: str
    dimensions: int
    rows: int
    named: bool
    columns: list[str] | None
    contents: list[str]
    about: dict[str, Any]
    index: str = "<i4"
    format: int = FORMAT
    files: dict[str, Part] = field(default_factory=dict)
    #: For each statistic: its facts, the file of each array, and the type and width of each array.
    statistics: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Hash of the original contents, which identifies the pool even after rows have been erased.
    marked: str | None = None

    def layout(self, name: str) -> tuple[str, tuple[int, ...]] | None:
        """Type and width of an array's rows; None for a file that is not an array."""
        if name == VECTORS:
            return ("<f4", (self.dimensions,)) if self.kind == "dense" else ("|u1", (-(-self.dimensions // 64) * 8,))
        if name.startswith(f"{STATISTICS}/"):
            dtype, width = next(kept["files"][name] for kept in self.statistics.values() if name in kept["files"])
            return dtype, (width,)
        arrays = {DATA: "<f4", INDICES: self.index, ROW_ENDS: "<i8", ORIGIN: "<f4", WITHDRAWN: "|b1", ENDS: "<i8"}
        return (arrays[name], ()) if name in arrays else None

    def start(self, name: str) -> int:
        """Bytes of the header, which are not hashed."""
        return HEADER if self.layout(name) else 0

    def header(self, name: str) -> bytes:
        """The header of an array's file; empty for other files."""
        layout = self.layout(name)
        if layout is None:
            return b""
        return array_header(layout[0], self.shape(name))

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, from the size of its file."""
        layout = self.layout(name)
        assert layout is not None
        return (self.files[name].size // row_bytes(layout), *layout[1])

    def encoded(self) -> bytes:
        """The record as written to ``pool.json``."""
        said_of = asdict(self)
        return json.dumps({**said_of, "check": _check(said_of)}).encode()


def read_state(folder: Path) -> FolderState:
    """What ``pool.json`` records, checked against its schema and its own hash."""
    path = folder / ABOUT
    try:
        with said(folder, "the pool cannot be read"):
            written = json.loads(path.read_bytes()) if folder.is_dir() and path.exists() else None
        if written is None:
            raise InputError(f"{folder}: no pool is stored here ({ABOUT} is missing)")
        if written["format"] > FORMAT:
            raise StoreError(
                f"{folder}: this pool was stored by a newer version (format {written['format']}, "
                f"this one reads {FORMAT}); update activecover"
            )
        check = written.pop("check")
        if check != _check(written):
            raise ValueError("its hash differs")
        check_stored(written)
        files = {name: Part(**part) for name, part in written.pop("files").items()}
        return FolderState(**written, files=files)
    except (InputError, StoreError):
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise StoreError(f"{path}: damaged; restore the pool from a copy") from wrong


def checked_about(about: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``about`` that has been through JSON."""
    try:
        kept: dict[str, Any] = json.loads(json.dumps(dict(about), ensure_ascii=False))
    except (TypeError, ValueError) as wrong:
        raise InputError(f"about: cannot be written as JSON ({wrong})") from wrong
    return kept


def _check(said_of: Mapping[str, Any]) -> str:
    text = json.dumps(said_of, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def row_bytes(layout: tuple[str, tuple[int, ...]]) -> int:
    """Bytes per row of an array."""
    return np.dtype(layout[0]).itemsize * math.prod(layout[1])
