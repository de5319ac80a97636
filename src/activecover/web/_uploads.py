"""Files on their way in or out of a server: kept no longer than they are used."""

from __future__ import annotations

import filecmp
import os
import secrets
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path

from activecover.files import WorkFolder, lock, private_folder, sweep

#: Seconds after which an unused upload is removed, and seconds between two searches for such uploads.
OLD, _EVERY = 3600.0, 300.0
_SENT = "out"


class Uploads:
    """The folder of uploads of a home, which all its servers share.

    The first server to start erases all that is there: nobody can be using it. While servers run, what has not been used
    for an hour is erased.

    Parameters
    ----------
    folder : Path
        Made where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = private_folder(folder)
        self._work: dict[Path, WorkFolder] = {}
        self._handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        sweep(folder, [_SENT])
        if self._is_first():
            self.sweep(0)
        self._closed = threading.Event()
        threading.Thread(target=self._tidy, name="uploads", daemon=True).start()

    def fresh(self, suffix: str) -> Path:
        """A name for a file that comes in."""
        self.sweep()
        return self.folder / f"{secrets.token_hex(16)}{suffix}"

    def used(self, path: Path) -> None:
        """Note that somebody still needs a file."""
        with suppress(OSError):
            os.utime(path)

    def drop(self, path: Path, *, copies: bool = False) -> None:
        """Erase a file; with ``copies``, all others with the same bytes too."""
        for other in self._files() if copies else ():
            with suppress(OSError):
                if other != path and filecmp.cmp(path, other, shallow=False):
                    other.unlink()
        path.unlink(missing_ok=True)

    def sweep(self, age: float = OLD) -> None:
        """Erase what has not been used for some seconds."""
        for path in self._files():
            with suppress(OSError):
                if path.lstat().st_mtime <= time.time() - age:
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def workspace(self) -> Path:
        """A folder for files that are made to be sent; the caller gives it back."""
        work = WorkFolder(self.folder, _SENT)
        self._work[work.path] = work
        return work.path

    def discard(self, folder: Path) -> None:
        """Remove such a folder."""
        if work := self._work.pop(folder, None):
            work.remove()

    def close(self) -> None:
        """Remove what was to be sent, and let go of the folder."""
        if self._closed.is_set():
            return
        self._closed.set()
        for folder in list(self._work):
            self.discard(folder)
        os.close(self._handle)

    def _files(self) -> list[Path]:
        """All but the folders that are made to be sent, which have locks."""
        return [path for path in self.folder.iterdir() if not path.name.startswith(f".{_SENT}-")]

    def _is_first(self) -> bool:
        """Whether no other server uses the folder; from now on this one does."""
        try:
            first = lock(self._handle, wait=False)
            lock(self._handle, wait=False, shared=True)
        except OSError:  # some file systems have no locks
            return False
        return first

    def _tidy(self) -> None:
        while not self._closed.wait(_EVERY):
            with suppress(OSError):
                self.sweep()
