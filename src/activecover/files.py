"""Private files, all-or-nothing writes, and locks between processes."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from activecover.errors import InputError, StoreError

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "WorkFolder",
    "check_writable",
    "lock",
    "locked",
    "make_private",
    "open_private",
    "private_folder",
    "replacing",
    "sweep",
    "sync_folder",
    "unlock",
    "write_whole",
]

#: Only the owner may enter a folder or read a file, whatever the umask.
FOLDER_MODE, FILE_MODE = 0o700, 0o600


def private_folder(folder: Path, *, parents: bool = True) -> Path:
    """Create a folder that only its owner can enter, and return it; an existing folder is not changed.

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
    # The umask may have removed rights of the owner too.
    folder.chmod(FOLDER_MODE)
    return folder


def open_private(path: Path, flags: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL) -> int:
    """Open a file, private to its owner if this call creates it, and return its descriptor.

    If the call may create the file, symbolic links are not followed.
    """
    makes = bool(flags & os.O_CREAT)
    nofollow = getattr(os, "O_NOFOLLOW", 0) if makes else 0
    handle = os.open(path, flags | os.O_CLOEXEC | nofollow, FILE_MODE)
    with suppress(OSError):  # a file of another user keeps its mode
        if makes and stat.S_IMODE(os.fstat(handle).st_mode) != FILE_MODE:
            os.fchmod(handle, FILE_MODE)
    return handle


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path to write, which replaces ``path`` at the end of the block, or leaves no trace.

    A ``private`` file is accessible only to its owner; any other as the umask allows. Errors raise an InputError of one
    line.

    Examples
    --------
    >>> place = Path(tempfile.mkdtemp()) / "found.txt"
    >>> with replacing(place) as temporary:
    ...     _ = temporary.write_text("a b c")
    >>> place.read_text()
    'a b c'
    """
    check_writable(path)
    # A different name for every writer, as several may write to the same path in a user's folder.
    temporary = path.with_name(f".{secrets.token_hex(8)}{path.suffix}")
    try:
        with _moving(temporary, path):
            os.close(open_private(temporary))
            yield temporary
            if not private:
                temporary.chmod(0o666 & ~_umask())
    except OSError as wrong:
        raise InputError(f"{path}: cannot be written ({wrong.strerror or wrong})") from wrong


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file, private to its owner, and return once the new contents would survive a crash.

    One process at a time: a leftover of a crash is overwritten by the next write.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    with (
        _moving(temporary, path),
        os.fdopen(open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file,
    ):
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


@contextmanager
def _moving(temporary: Path, path: Path) -> Iterator[None]:
    """Move a file written in the block into place, or remove it."""
    try:
        yield
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: Path, *inputs: Path | None) -> None:
    """Refuse, before any work is done, a path that cannot be written or that would replace an input."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; create it first")
    if any(given is not None and _same(path, given) for given in inputs):
        raise InputError(f"{path}: this command reads that file; name another file for the result")
    try:
        # Permissions are not enough (a read-only disk, a superuser), so create a temporary file.
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as wrong:
        reason = wrong.strerror or wrong
        raise InputError(f"{path}: the folder {path.parent} cannot be written to ({reason})") from wrong


def _same(path: Path, other: Path) -> bool:
    return path.resolve() == other.resolve() or (path.exists() and other.exists() and path.samefile(other))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock(handle: int, *, wait: bool = True, shared: bool = False) -> bool:
    """Lock an open file or folder against other processes on this machine; return whether it succeeded.

    Waiting processes form a queue. The lock lasts until its descriptor, and every copy of it in a forked child, is
    closed, so a process that ends for any reason releases it.

    Parameters
    ----------
    handle : int
        The descriptor.
    wait : bool
        Whether to wait until it is free, or to return False if it is not.
    shared : bool
        Whether others may also hold it, if they all share it.
    """
    if fcntl is None:  # pragma: no cover
        raise StoreError("this system has no file locks: use activecover on Linux, macOS or in WSL")
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def unlock(handle: int) -> None:
    """Release a lock and keep the descriptor."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_UN)


@contextmanager
def locked(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Lock a folder until the end of the block or the process; yield whether it succeeded.

    Without waiting, that is whether the folder was free.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            # If it was renamed or removed meanwhile, it is the wrong folder.
            ours = lock(handle, wait=wait) and os.path.samestat(os.fstat(handle), folder.stat())
        except FileNotFoundError:
            ours = False
        yield ours
    finally:
        os.close(handle)


class WorkFolder:
    """A private folder for temporary files of one piece of work.

    It is locked while it is in use. The folder of a killed process is therefore recognised by its free lock, and
    removed by :func:`sweep`.

    Parameters
    ----------
    parent : Path
        The parent folder, on the same disk as the final place of its files.
    kind : str
        The kind of work; part of the folder's name.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> with WorkFolder(place, "intake") as work:
    ...     _ = (work / "rows.npy").write_bytes(b"...")
    ...     sweep(place, ["intake"]), work.exists()
    (0, True)
    >>> list(place.iterdir())
    []
    """

    def __init__(self, parent: Path, kind: str) -> None:
        while True:
            self.path = parent / f".{kind}-{secrets.token_hex(8)}"
            private_folder(parent)
            # It may be swept between creation and locking: then create another one.
            with suppress(FileNotFoundError):
                private_folder(self.path)
                self._handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
                if _hold(self._handle, self.path):
                    return
                os.close(self._handle)

    def remove(self) -> None:
        """Remove the folder with its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def sweep(parent: Path, kinds: Sequence[str]) -> int:
    """Remove the work folders of dead processes, and return their number; folders in use stay."""
    count = 0
    for kind in kinds:
        for path in parent.glob(f".{kind}-*"):
            with suppress(OSError):
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    if lock(handle, wait=False):
                        shutil.rmtree(path)
                        count += 1
                finally:
                    os.close(handle)
    return count


def _hold(handle: int, path: Path) -> bool:
    """Lock an open folder, and return whether it is still in place; some file systems have no locks."""
    with suppress(OSError):
        lock(handle)
    return path.exists()


def make_private(folder: Path) -> None:
    """Remove the rights of others to a folder and everything in it; links are not followed.

    Files of another user are not changed: the folder itself keeps others out.
    """
    with suppress(PermissionError):
        folder.chmod(FOLDER_MODE)
    for place, mode in _below(folder):
        with suppress(PermissionError, FileNotFoundError):
            place.chmod(mode)


def _below(folder: Path) -> Iterator[tuple[Path, int]]:
    """Paths below a folder to which others have rights, and the modes that they should have."""
    for root, folders, files in os.walk(folder):
        for names, mode in ((folders, FOLDER_MODE), (files, FILE_MODE)):
            for name in names:
                place = Path(root, name)
                with suppress(FileNotFoundError):
                    found = place.lstat()
                    if not stat.S_ISLNK(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077:
                        yield place, mode
