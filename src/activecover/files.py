"""Private files, files that are written whole or not at all, and locks between processes."""

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


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Give a file to write, which takes the place of ``path`` at the end of the block, or leaves no trace.

    A ``private`` file is its owner's alone; any other is as open as the umask allows. What goes wrong is an
    InputError of one line.

    Examples
    --------
    >>> place = Path(tempfile.mkdtemp()) / "found.txt"
    >>> with replacing(place) as temporary:
    ...     _ = temporary.write_text("a b c")
    >>> place.read_text()
    'a b c'
    """
    check_writable(path)
    # Another name for every writer: several may write to one place in a folder of the user's.
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

    One process at a time: what a crash leaves beside the file is overwritten by the next write.
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
    """Move a file that was written in the block into its place, or remove it."""
    try:
        yield
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: Path, *inputs: Path | None) -> None:
    """Refuse, before any work is done, a place where a result cannot be saved or would replace an input."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; create it first")
    if any(given is not None and _same(path, given) for given in inputs):
        raise InputError(f"{path}: this command reads that file; name another one for the result")
    try:
        # Permissions alone do not tell (a read-only disk, a superuser): a nameless file is tried.
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
    """Wait until the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock(handle: int, *, wait: bool = True, shared: bool = False) -> bool:
    """Lock an open file or folder against the other processes of this machine; return whether it is ours.

    Those who wait form a queue. The lock lasts until its descriptor, and every copy of it in a forked child, is
    closed: a process that dies, however it dies, holds nothing back.

    Parameters
    ----------
    handle : int
        The descriptor.
    wait : bool
        Whether to wait until it is free, or to return False where it is not.
    shared : bool
        Whether others may hold it too, as long as they all share it.
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
    """Hold a folder until the end of the block, or of the process; give whether we do.

    Without waiting, that is whether it was free.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            # If it was renamed or removed meanwhile, it is not the folder that was asked for.
            ours = lock(handle, wait=wait) and os.path.samestat(os.fstat(handle), folder.stat())
        except FileNotFoundError:
            ours = False
        yield ours
    finally:
        os.close(handle)


class WorkFolder:
    """A private folder for temporary files of one piece of work.

    It is locked for as long as it is in use. What a killed process leaves behind is therefore known by its
    lock being free, and :func:`sweep` removes it.

    Parameters
    ----------
    parent : Path
        The folder to make it in, on the same disk as what its files will become.
    kind : str
        What the work is; part of the folder's name.

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
            # It may be swept between being made and being locked: then another one is made.
            with suppress(FileNotFoundError):
                private_folder(self.path)
                self._handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
                if _hold(self._handle, self.path):
                    return
                os.close(self._handle)

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def sweep(parent: Path, kinds: Sequence[str]) -> int:
    """Remove the work folders of processes that have died, and return how many there were; those in use stay."""
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
    """Lock an open folder, and return whether it is still in its place then; some file systems have no locks."""
    with suppress(OSError):
        lock(handle)
    return path.exists()


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
