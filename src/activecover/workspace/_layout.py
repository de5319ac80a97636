"""What belongs in a home, and what lies there besides."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from activecover.pool import PoolFolder
from activecover.workspace._pools import OWN, POOLS

if TYPE_CHECKING:
    from activecover.workspace._workspace import Workspace

#: Names at the top of a home that never hold contents of a pool.
_PLAIN = ("keys", "people.json", ".sign-in.html")
#: Our files in the temporary directory begin with one of these.
TEMPORARY = ("activecover-", ".activecover-")
_WORK = {
    "intake": "taking in a file",
    "archive": "making an archive",
    "restore": "restoring an archive",
    "copy": "copying a pool",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A file of a home, and what is wrong with its being there, if anything is."""

    path: Path
    wrong: str | None


def places(home: Workspace) -> Iterator[Place]:
    """Every file below a home, and what is left of our files in the temporary directory."""
    parts = _Parts(home)
    for path in _files(home.folder):
        yield Place(path, parts.wrong(path.relative_to(home.folder)))
    yield from _temporary()


def named(home: Workspace, path: Path) -> str:
    """How a file is called in a report: as seen from the home, if it is in it."""
    return path.relative_to(home.folder).as_posix() if path.is_relative_to(home.folder) else path.name


class _Parts:
    """The files that the campaigns of a home are made of."""

    def __init__(self, home: Workspace) -> None:
        abouts = {name: home.store.about(name) for name in home.names()}
        self._pools = {about["pool"] for about in abouts.values()}
        self._known = {f"outside/{name}{end}" for name in abouts for end in (".npz", ".new.npz", ".npz.tmp")}
        for pool in self._pools:
            folder = PoolFolder(home.folder / pool)
            own = [*folder.files(), folder.folder / "erasing.json"]
            self._known |= {path.relative_to(home.folder).as_posix() for path in own}
        self._store = home.store.path.name if home.store.path is not None else None

    def wrong(self, inside: Path) -> str | None:
        first, name = inside.parts[0], inside.as_posix()
        if name in self._known or any(first == plain or first.startswith(f"{plain}.") for plain in _PLAIN):
            return None
        if self._store is not None and len(inside.parts) == 1 and first.startswith(self._store):
            return None
        if first == ".uploads":
            made = len(inside.parts) > 2
            return f"{'a file made to be sent' if made else 'an upload of this home'} is left: {name}"
        kind = next((kind for kind in _WORK if first.startswith(f".{kind}-")), None)
        if kind is not None:
            return f"a temporary file of {_WORK[kind]} is left: {name}"
        if first in (POOLS, OWN) and "/".join(inside.parts[:2]) not in self._pools:
            return f"a pool of no campaign is left: {name}"
        return f"no part of a campaign: {name}"


def _temporary() -> Iterator[Place]:
    folder = Path(tempfile.gettempdir())
    for path in sorted(folder.iterdir()):
        if path.name.startswith(TEMPORARY) and _is_ours(path):
            for file in _files(path) if path.is_dir() and not path.is_symlink() else [path]:
                yield Place(file, f"a temporary file is left: {file}")


def _is_ours(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.getuid()
    except FileNotFoundError:
        return False


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder, in order; links are not followed."""
    for root, folders, files in os.walk(folder):
        folders.sort()
        yield from (Path(root, name) for name in sorted(files))
