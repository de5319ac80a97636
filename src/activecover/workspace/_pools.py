"""The pools of a home: where each is kept, and which campaigns may share one."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from activecover.errors import StoreError
from activecover.files import locked, private_folder, sync_folder
from activecover.pool import PoolFolder

POOLS, OWN = "pools", "own"
_PLACE = re.compile(rf"(?:{POOLS}|{OWN})/(?!\.)[^/\\\0]+")


def pool_key(folder: PoolFolder) -> str:
    """The name of a stored pool: a hash of its ids, vectors and contents, and of how its rows were made.

    Two files that differ in anything that a person sees have different keys, and so do a pool and the same pool with
    rows added or erased.
    """
    digest = hashlib.blake2b(digest_size=20)
    digest.update(json.dumps(folder.load().fingerprint(contents=True), sort_keys=True).encode())
    for name, data in sorted(folder.embedding_files().items()):
        digest.update(json.dumps([name, hashlib.blake2b(data).hexdigest()]).encode())
    return digest.hexdigest()


def are_inside(name: str, about: Mapping[str, Any]) -> bool:
    """Whether the places in a campaign's settings lie inside a home.

    Someone who can write only to the database must not have folders read or removed elsewhere.

    Examples
    --------
    >>> are_inside("a", {"pool": "pools/0123", "outside": None}), are_inside("a", {"pool": "pools/../../elsewhere"})
    (True, False)
    """
    pool, outside = about.get("pool"), about.get("outside")
    return isinstance(pool, str) and bool(_PLACE.fullmatch(pool)) and outside in (None, f"outside/{name}.npz")


@contextmanager
def arranging(home: Path) -> Iterator[None]:
    """A time in which no other process places or removes pools of this home.

    Held from choosing the place of a pool until a campaign says that it uses it. Not to be nested.
    """
    with locked(private_folder(home / POOLS)):
        yield


def place_pool(home: Path, made: Path, own: str | None = None) -> str:
    """Move a stored pool to its place in a home, and return that place relative to the home.

    If the same pool is there already, that one is shared and nothing is moved; no other folder is touched.
    Call it while :func:`arranging`.

    Parameters
    ----------
    home : Path
        The folder of the home.
    made : Path
        A pool stored in a folder on the same disk.
    own : str, optional
        The campaign that is to have the pool to itself.
    """
    if own is not None:
        place = home / OWN / own
        if place.exists():
            raise StoreError(f"{place}: is there already; remove it, or choose another name")
        return _moved(home, made, place)
    for place in _places(home, PoolFolder(made)):
        if not place.exists():
            return _moved(home, made, place)
        if _is_same(place, made):
            return place.relative_to(home).as_posix()
    raise AssertionError("there is always another place")


def _moved(home: Path, made: Path, place: Path) -> str:
    private_folder(place.parent)
    made.rename(place)
    sync_folder(place.parent)
    return place.relative_to(home).as_posix()


def _places(home: Path, made: PoolFolder) -> Iterator[Path]:
    """The places where a pool may lie: under its key, beside that if the pool there has changed, or at its earlier place."""
    marks = made.load().fingerprint()
    before = home / POOLS / (marks["ids"][:8] + marks["vectors"][:24])
    if before.exists():
        # Earlier versions named pools by their ids and vectors alone.
        yield before
    key = pool_key(made)
    yield home / POOLS / key
    yield from (home / POOLS / f"{key}-{number}" for number in count(2))


def _is_same(place: Path, made: Path) -> bool:
    try:
        return pool_key(PoolFolder(place)) == pool_key(PoolFolder(made))
    except StoreError:
        return False  # damaged
