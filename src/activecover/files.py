"""Files that are private to their owner, and files that are written as a whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["make_private", "open_private", "private_folder", "sync_folder", "write_whole"]

#: Nobody but the owner may enter a folder or read a file, whatever the umask says.
FOLDER_MODE, FILE_MODE = 0o700, 0o600


def private_folder(folder: Path, *, parents: bool = True) -> Path:
    """Make a folder that only its owner can enter, and return it; one that exists is left as it is.

    Examples
    --------
    >>> import tempfile
    >>> place = private_folder(Path(tempfile.mkdtemp()) / "a" / "b")
    >>> oct(place.stat().st_mode & 0o777), oct(place.parent.stat().st_mode & 0o777)
    ('0o700', '0o700')
    """
    if folder.is_dir():
        return folder
    if parents and not folder.parent.is_dir():
        private_folder(folder.parent)
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    # The umask may have taken rights from the owner too.
    folder.chmod(FOLDER_MODE)
    return folder


def open_private(path: Path, flags: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL) -> int:
    """Open a file, private to its owner if this makes it, and return its descriptor.

    Where it may make the file, a symbolic link in its place is not followed.
    """
    makes = bool(flags & os.O_CREAT)
    nofollow = getattr(os, "O_NOFOLLOW", 0) if makes else 0
    handle = os.open(path, flags | os.O_CLOEXEC | nofollow, FILE_MODE)
    with suppress(OSError):  # a file of another user keeps its mode
        if makes and stat.S_IMODE(os.fstat(handle).st_mode) != FILE_MODE:
            os.fchmod(handle, FILE_MODE)
    return handle


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file, private to its owner, so that it is the old one or the new one whatever happens.

    One process at a time: what a crash leaves beside the file is overwritten by the next write.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        with os.fdopen(open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_private(folder: Path) -> None:
    """Take all rights of others to a folder and everything in it; links are not followed.

    What belongs to another user stays as it is: the folder itself keeps others out.
    """
    with suppress(PermissionError):
        folder.chmod(FOLDER_MODE)
    for place, mode in _below(folder):
        with suppress(PermissionError, FileNotFoundError):
            place.chmod(mode)


def _below(folder: Path) -> Iterator[tuple[Path, int]]:
    """What others have rights to below a folder, and the mode that it should have."""
    for root, folders, files in os.walk(folder):
        for names, mode in ((folders, FOLDER_MODE), (files, FILE_MODE)):
            for name in names:
                place = Path(root, name)
                with suppress(FileNotFoundError):
                    found = place.lstat()
                    if not stat.S_ISLNK(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077:
                        yield place, mode
