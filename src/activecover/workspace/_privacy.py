"""Whether what was to be forgotten is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from activecover.errors import InputError
from activecover.pool import Pool, Vectors
from activecover.workspace._layout import Place, named, places
from activecover.workspace._searching import Search
from activecover.workspace._workspace import Workspace

#: Two pools with so large a share of their ids in common, and the same columns, are of the same data.
_SAME_DATA = 0.5


@dataclass(frozen=True, slots=True)
class PrivacyReport:
    """What is forgotten and what is not, what was looked at, and what was found.

    Attributes
    ----------
    forgotten, negatives : int
        How many items were forgotten, of how many negatives.
    files, bytes : int
        What was looked at.
    found : list of str
        What is left of forgotten items, or may be, a line each.
    due : list of str
        Negatives that are final and not forgotten.
    kept : dict
        Items that are not final yet, by the reason.
    """

    forgotten: int
    negatives: int
    files: int
    bytes: int
    found: list[str]
    due: list[str] = field(default_factory=list)
    kept: dict[str, list[str]] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        """Whether every final negative is forgotten and nothing of one was found."""
        return not self.found and not self.due

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"clean": self.clean, **asdict(self)}


def privacy_check(
    home: Workspace, name: str, markers: Sequence[bytes] = (), also: Sequence[Path] = ()
) -> PrivacyReport:
    """Look at all files of a home for anything that is left of a campaign's forgotten negatives.

    Their rows must be empty: vectors without a value, contents without a letter. Every file below the home must
    belong to a campaign: an upload, a temporary file or a file that somebody has put there may hold what was forgotten.
    No other campaign may hold the same items. ``markers`` (bytes that the forgotten items are known to have held)
    are searched for in the raw bytes of every file, write-ahead logs included, and of the files and folders given
    ``also`` (exports, logs, the data of a database server). Zip, gzip, npz and Parquet files are looked into.
    """
    about = home.store.about(name)
    if not about.get("own"):
        raise InputError(f"{name}: was not made with forget_negatives; there is nothing to prove")
    campaign = home.open(name)
    try:
        stands = campaign.eraser.status()
        negatives = sum(not label for label in campaign.labels().values())
        found = [
            *_left_in_rows(campaign.pool, stands.forgotten),
            *_held_elsewhere(home, name, campaign.pool, stands.forgotten),
        ]
    finally:
        # To look is not to forget.
        campaign.close(window=None)
    search = Search(markers)
    found += [f"the store: {marker!r}" for marker in search.texts(home.store.values() if markers else ())]
    size = count = 0
    for place in (*places(home), *(Place(path, None) for path in _inside(also))):
        try:
            held, length = search.file(place.path), place.path.stat().st_size
        except FileNotFoundError:
            # A database server at work drops files of its own (pg_internal.init); what is gone holds nothing.
            continue
        count += 1
        size += length
        found += [place.wrong] if place.wrong is not None else []
        found += [f"{named(home, place.path)}: {marker!r}" for marker in held]
    return PrivacyReport(len(stands.forgotten), negatives, count, size, found, stands.final, stands.kept)


def _left_in_rows(pool: Pool, forgotten: Sequence[str]) -> Iterator[str]:
    for item in forgotten:
        row = pool.row(item)
        if not pool.withdrawn[row]:
            yield f"item {item}: its row is not marked as erased"
        elif any(str(value or "").strip("\0 ") for value in pool.content(row).values()):
            yield f"item {item}: its content is still there"
        elif not _is_empty(pool.take([row])):
            yield f"item {item}: its vector is still there"


def _held_elsewhere(home: Workspace, name: str, pool: Pool, forgotten: Sequence[str]) -> Iterator[str]:
    """Campaigns on the same data that have forgotten items in full."""
    ids = set(pool.ids)
    for other in home.names():
        theirs = home.pool_folder(other).load() if other != name and forgotten else None
        if theirs is None or list(theirs.contents) != list(pool.contents):
            continue
        if len(ids.intersection(theirs.ids)) >= _SAME_DATA * len(ids):
            known = set(theirs.ids)
            held = [item for item in forgotten if item in known and not theirs.withdrawn[theirs.row(item)]]
            if held:
                yield f"campaign {other}: still has {len(held)} of the forgotten items ({', '.join(held[:3])}{', …' if held[3:] else ''})"


def _is_empty(vectors: Vectors) -> bool:
    """Whether a row has no values left: NaN, or no bits."""
    values: Any = vectors.data if hasattr(vectors, "indptr") else vectors
    return bool(np.isnan(values).all() if values.dtype.kind == "f" else not values.any())


def _inside(also: Sequence[Path]) -> Iterator[Path]:
    for place in also:
        if not place.exists():
            raise InputError(f"{place}: no such file or folder")
        yield from (path for path in sorted(place.rglob("*")) if path.is_file()) if place.is_dir() else [place]
