"""Proof that what was to be forgotten is gone."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from activecover.errors import InputError
from activecover.home._home import Home

_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True)
class PrivacyReport:
    """What was looked for, and where it was found."""

    forgotten: int
    negatives: int
    files: int
    bytes: int
    found: list[str]

    @property
    def clean(self) -> bool:
        """Whether every negative is forgotten and nothing of one was found."""
        return not self.found


def privacy_check(home: Home, name: str, markers: Sequence[bytes] = (), also: Sequence[Path] = ()) -> PrivacyReport:
    """Look at a campaign's own files and the store for anything that is left of its forgotten negatives.

    The rows themselves must be empty: vectors without a value, contents without a letter. ``markers``
    (bytes that the forgotten items are known to have held) are searched for in the raw bytes of every
    file, write-ahead logs included, and of the files and folders given ``also`` (exports, logs, the data of a
    database server). Archives are looked into.
    """
    about = home.store.about(name)
    if not about.get("own"):
        raise InputError(f"{name}: was not made with forget_negatives; there is nothing to prove")
    found = []
    with home.open(name) as campaign:
        forgotten = campaign.forgotten()
        negatives = [item for item, label in campaign.labels().items() if not label]
        pool = campaign.pool
        for item in forgotten:
            row = pool.row(item)
            if not pool.withdrawn[row]:
                found.append(f"item {item}: its row is not marked as erased")
            elif any(str(value or "").strip("\0 ") for value in pool.content(row).values()):
                found.append(f"item {item}: its content is still there")
            elif not _is_empty(pool.take([row])):
                found.append(f"item {item}: its vector is still there")
    size = count = 0
    for path in (*_files(home, name), *_inside(also)):
        try:
            held, length = _search(path, markers), path.stat().st_size
        except FileNotFoundError:
            # A database server at work drops files of its own (pg_internal.init); what is gone holds nothing.
            continue
        count += 1
        size += length
        found += [f"{path.name}: {marker!r}" for marker in held]
    return PrivacyReport(len(forgotten), len(negatives), count, size, found)


def _is_empty(vectors: Any) -> bool:
    """Whether a row has no values left: NaN, or no bits."""
    values = vectors.data if hasattr(vectors, "indptr") else vectors
    return bool(np.isnan(values).all() if values.dtype.kind == "f" else not values.any())


def _inside(places: Sequence[Path]) -> Iterator[Path]:
    for place in places:
        if not place.exists():
            raise InputError(f"{place}: no such file or folder")
        yield from (path for path in sorted(place.rglob("*")) if path.is_file()) if place.is_dir() else [place]


def _files(home: Home, name: str) -> Iterator[Path]:
    """The campaign's own files, and all of the store's."""
    folder = home.folder / home.store.about(name)["pool"]
    yield from (path for path in sorted(folder.rglob("*")) if path.is_file())
    if home.store.path is not None:
        yield from sorted(home.store.path.parent.glob(f"{home.store.path.name}*"))


def _search(path: Path, markers: Sequence[bytes]) -> list[bytes]:
    """Which markers a file holds, also across the ends of blocks."""
    if not markers:
        return []
    left = set(markers)
    with path.open("rb") as file:
        _look_for(left, file)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                with archive.open(name) as file:
                    _look_for(left, file)
    return sorted(set(markers) - left)


def _look_for(left: set[bytes], file: IO[bytes]) -> None:
    """Take away the markers that a file holds."""
    tail = b""
    longest = max(map(len, left), default=0)
    while left and (block := file.read(_BLOCK)):
        text = tail + block
        left -= {marker for marker in left if marker in text}
        tail = text[-longest:]
