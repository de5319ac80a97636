"""Taking a campaign from an archive into a home: all of it, or nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from activecover.errors import ActiveCoverError, InputError, StoreError
from activecover.files import WorkFolder, locked, private_folder, sync_folder, write_whole
from activecover.store import Line, check_name
from activecover.workspace._keys import PublicKey, known_key
from activecover.workspace._pools import arranging, place_pool
from activecover.workspace._signing import Signer
from activecover.workspace._unpacking import Unpacked, said_of, unpack

if TYPE_CHECKING:
    from activecover.workspace._workspace import Workspace

KIND = "restore"
#: What is being put where: with it, what a killed process left is taken back.
_PLACING = "placing.json"
_AT_ONCE = 10_000


def restore(
    home: Workspace, path: Path, name: str | None = None, *, key: PublicKey | None = None, large: bool = False
) -> str:
    """Take a campaign from a file into a home; its name there.

    Parameters
    ----------
    home : Workspace
        Where to.
    path : Path
        A file that :func:`~activecover.workspace.archive` wrote.
    name : str, optional
        Another name for it.
    key : PublicKey, optional
        The key that it must be signed with, as its owner gave it.
    large : bool
        Whether to take in more than the usual size, from somebody who is trusted.
    """
    return restored(home, path, name, key=key, large=large)[0]


def restored(
    home: Workspace, path: Path, name: str | None = None, *, key: PublicKey | None = None, large: bool = False
) -> tuple[str, Signer]:
    """As :func:`restore`; the name, and who signed the archive."""
    if name is not None:
        check_name(name)
        _check_free(home, name)
    with WorkFolder(home.folder, KIND) as work:
        # In a folder of its own, so that no member can pass as our notes.
        inside = private_folder(work / "unpacked")
        unpacked = unpack(path, inside, key=key, own=known_key(home.folder), large=large)
        chosen = name or unpacked.manifest.name
        _check_free(home, chosen)
        with said_of(path), arranging(home.folder):
            _take_in(home, work, unpacked, chosen)
    return chosen, unpacked.signer


def take_back(home: Workspace) -> None:
    """Undo what processes put into a home that were killed while they restored, and remove their folders."""
    for work in sorted(home.folder.glob(f".{KIND}-*")):
        with suppress(OSError, ActiveCoverError):
            if work.is_symlink() or not work.is_dir():
                continue
            with locked(work, wait=False) as free:
                if free:
                    with arranging(home.folder):
                        done = _undo(home, work)
                    if done:
                        shutil.rmtree(work)


def _check_free(home: Workspace, name: str) -> None:
    if name in home.names():
        raise InputError(f"{home.store}: there is a campaign {name!r} already; give another name")


def _take_in(home: Workspace, work: Path, unpacked: Unpacked, name: str) -> None:
    settings = unpacked.manifest.settings
    outside = None if unpacked.outside is None else f"outside/{name}.npz"
    if outside is not None and os.path.lexists(home.folder / outside):
        raise StoreError(f"{home.folder / outside}: is there already; remove it, or choose another name")
    own = name if settings["own"] else None
    # A folder keeps its number when it is moved: so what we put in place is known from what others did.
    number = unpacked.pool.stat().st_ino
    note = {"store": _store_of(home), "name": name, "token": work.name, "pool": number, "outside": outside}
    write_whole(work / _PLACING, json.dumps(note).encode())
    try:
        pool = place_pool(home.folder, unpacked.pool, own)
        if outside is not None and unpacked.outside is not None:
            private_folder(home.folder / "outside")
            unpacked.outside.rename(home.folder / outside)
            sync_folder(home.folder / "outside")
        foreign = not (unpacked.signer.trusted or unpacked.signer.own)
        about = {**settings, "pool": pool, "outside": outside, "restored": work.name, "foreign": foreign}
        log = home.store.create(name, about)
        try:
            with log.turn():
                for batch in _batches(unpacked.log.read()):
                    log.append([{key: value for key, value in event.items() if key != "seq"} for event in batch])
        finally:
            log.close()
    except BaseException:
        _undo(home, work)
        raise
    (work / _PLACING).unlink()


def _undo(home: Workspace, work: Path) -> bool:
    """Undo a restore that did not complete; False if it belongs to another store."""
    path = work / _PLACING
    if not path.exists():
        return True
    note: dict[str, Any] = json.loads(path.read_bytes())
    if note["store"] != _store_of(home):
        return False
    name = note["name"]
    if name in home.names():
        if home.store.about(name).get("restored") != note["token"] or _has_events(home, name):
            # Events are kept all at once: it had come to its end but for this note.
            return True
        home.store.remove(name)
    if note["outside"] is not None:
        (home.folder / note["outside"]).unlink(missing_ok=True)
    used = {home.store.about(other)["pool"] for other in home.names()}
    for place in _pools(home.folder):
        if (home.folder / place).stat().st_ino == note["pool"] and place not in used:
            shutil.rmtree(home.folder / place)
    return True


def _has_events(home: Workspace, name: str) -> bool:
    log = home.store.open(name)
    try:
        return len(log) > 0
    finally:
        log.close()


def _store_of(home: Workspace) -> str:
    """Which store a home has, without the password that its address may hold."""
    return hashlib.sha256(str(home.store).encode()).hexdigest()


def _pools(folder: Path) -> list[str]:
    return [
        place.relative_to(folder).as_posix()
        for parent in ("pools", "own")
        if (folder / parent).is_dir()
        for place in sorted((folder / parent).iterdir())
        if not place.name.startswith(".")
    ]


def _batches(events: Iterator[Line]) -> Iterator[list[Line]]:
    while batch := list(islice(events, _AT_ONCE)):
        yield batch
