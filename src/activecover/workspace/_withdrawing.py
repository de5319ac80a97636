"""Erasing items for good: in the campaign that asked, and wherever else the same items are."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from activecover.errors import StoreError
from activecover.files import WorkFolder, sync_folder
from activecover.pool import Pool, PoolFolder, StoredPool, bit_vectors, dense_vectors, sparse_vectors
from activecover.workspace._pools import POOLS, arranging

if TYPE_CHECKING:
    from activecover.workspace._workspace import Workspace


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What was erased, by campaign, and which other campaigns still hold the same items."""

    erased: dict[str, list[str]]
    held: dict[str, list[str]]


def withdraw(home: Workspace, name: str, ids: Sequence[str], by: str, *, everywhere: bool = False) -> Withdrawal:
    """Erase items of a campaign; with ``everywhere``, the same items in all campaigns of the home."""
    chosen = {name: list(dict.fromkeys(ids))}
    home.pool_folder(name).load().rows(chosen[name])
    held = same_items(home, name, chosen[name])
    if everywhere:
        chosen, held = {**chosen, **held}, {}
    have_alone(home, list(chosen))
    for campaign, items in chosen.items():
        with home.open(campaign) as opened:
            # What cannot be taken back is written down before it is done: a crash in between is made up for.
            opened.eraser.record_withdrawal(items, by)
    for campaign, items in chosen.items():
        folder = home.pool_folder(campaign)
        folder.erase(folder.load().rows(items))
    return Withdrawal(chosen, held)


def same_items(home: Workspace, name: str, ids: Sequence[str]) -> dict[str, list[str]]:
    """Which other campaigns hold the same items: by the same id, with the same contents or the same vector."""
    mine = home.pool_folder(name)
    pool = mine.load()
    found: dict[str, list[str]] = {}
    by_folder: dict[PoolFolder, list[str]] = {}
    for other in home.names():
        if other == name:
            continue
        folder = home.pool_folder(other)
        known = next((seen for seen in by_folder if seen.folder == folder.folder), None)
        if known is None:
            by_folder[folder] = _held(pool, folder, ids)
            known = folder
        if by_folder[known]:
            found[other] = by_folder[known]
    return found


def have_alone(home: Workspace, names: Sequence[str]) -> None:
    """Give campaigns copies of pools that others use too, so that changing their rows does not change the others.

    Campaigns named together go on sharing what they share.
    """
    with arranging(home.folder):
        users: dict[str, list[str]] = {}
        for each in home.names():
            users.setdefault(home.store.about(each)["pool"], []).append(each)
        for pool, campaigns in users.items():
            mine = [each for each in campaigns if each in names]
            if mine and len(mine) < len(campaigns):
                _move(home, mine, _copied(home, pool))


def _copied(home: Workspace, pool: str) -> str:
    # By a name of its own: what is in it will soon differ from what it was made of.
    place = home.folder / POOLS / secrets.token_hex(20)
    with WorkFolder(home.folder, "copy") as work:
        PoolFolder(home.folder / pool).copy_to(work / "pool")
        (work / "pool").rename(place)
    sync_folder(place.parent)
    return place.relative_to(home.folder).as_posix()


def _move(home: Workspace, names: Sequence[str], place: str) -> None:
    for name in names:
        about: Mapping[str, object] = home.store.about(name)
        home.store.set_about(name, {**about, "pool": place})


def _held(pool: Pool, folder: PoolFolder, ids: Sequence[str]) -> list[str]:
    try:
        other = folder.load()
    except StoreError:
        return []  # damaged: opening its campaign says so
    known = set(other.ids)
    return [item for item in ids if item in known and _is_same(pool, other, item)]


def _is_same(pool: Pool, other: StoredPool, item: str) -> bool:
    mine, its = pool.row(item), other.row(item)
    if other.withdrawn[its] or pool.withdrawn[mine]:
        # What is erased already can no longer be compared: a row that only has the same id is not to be erased.
        return False
    content = pool.content(mine)
    return bool(content and content == other.content(its)) or _same_vector(pool, mine, other, its)


def _same_vector(pool: Pool, mine: int, other: Pool, its: int) -> bool:
    if (pool.kind, pool.dimensions, pool.metric) != (other.kind, other.dimensions, other.metric):
        return False
    first, second = pool.take([mine]), other.take([its])
    if pool.kind == "sparse":
        # Stored rows are canonical: columns ascending, none twice, no zeros.
        a, b = sparse_vectors(first), sparse_vectors(second)
        return bool(np.array_equal(a.indices, b.indices) and np.array_equal(a.data, b.data))
    if pool.kind == "bits":
        return bool(np.array_equal(bit_vectors(first), bit_vectors(second)))
    return bool(np.array_equal(dense_vectors(first) + pool.origin, dense_vectors(second) + other.origin))
