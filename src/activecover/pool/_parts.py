"""Files of a pool on disk: written durably, hashed in blocks, overwritten in place, with one writer at a time."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from activecover.errors import InputError, StoreError
from activecover.files import locked, open_private, private_folder, sync_folder

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

#: Bytes per hash: what has to be read again when a row in the block is erased.
BLOCK = 1 << 20
#: Bytes before an array's values, with room for any number of rows, so that a file can grow without moving.
HEADER = 128
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
#: Linux: let two files share their blocks until one of them is written to.
_CLONE = 0x40049409


@dataclass(slots=True)
class Part:
    """The recorded state of a file: its bytes after the header, and the hash of each block of them."""

    size: int = 0
    blocks: list[str] = field(default_factory=list)


def array_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    r"""The beginning of an ``.npy`` file, always of the same length.

    Examples
    --------
    >>> header = array_header("<f4", (3, 2))
    >>> len(header), header[:6], header[10:].decode().rstrip()
    (128, b'\x93NUMPY', "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }")
    """
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    room = HEADER - 10
    return b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + text.ljust(room - 1) + b"\n"


class Appender:
    """Appends to a file, and hashes what it writes.

    Parameters
    ----------
    path : Path
        The file; created if it is missing.
    start : int
        Bytes of its header, which are not hashed.
    known : Part
        The recorded state of the file. Bytes beyond it belong to an unfinished write and are cut off.
    """

    def __init__(self, path: Path, start: int, known: Part) -> None:
        self._handle = open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(self._handle, start + known.size)
            whole = known.size // BLOCK
            self._blocks, self._size = known.blocks[:whole], whole * BLOCK
            self._hash = _hash()
            self._count(os.pread(self._handle, known.size - self._size, start + self._size))
        except BaseException:
            self.close()
            raise
        # Buffered by hand, as a file object would write again when it is closed after an error.
        self._waiting, self._end = bytearray(), start + known.size

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self._count(data)
        self._waiting += data
        if len(self._waiting) >= BLOCK:
            self._flush()

    def finish(self) -> Part:
        """Sync the file to disk, and return its new state."""
        self._flush()
        os.fsync(self._handle)
        last = [self._hash.hexdigest()] if self._size % BLOCK else []
        return Part(self._size, self._blocks + last)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def _flush(self) -> None:
        _write_at(self._handle, self._waiting, self._end)
        self._end += len(self._waiting)
        self._waiting = bytearray()

    def _count(self, data: bytes) -> None:
        view = memoryview(data)
        while len(view):
            piece = view[: BLOCK - self._size % BLOCK]
            self._hash.update(piece)
            self._size += len(piece)
            if self._size % BLOCK == 0:
                self._blocks.append(self._hash.hexdigest())
                self._hash = _hash()
            view = view[len(piece) :]


def add_to(path: Path, start: int, known: Part, chunks: Iterable[bytes]) -> Part:
    """Append pieces to a file, synced to disk, and return its new state."""
    file = Appender(path, start, known)
    try:
        for chunk in chunks:
            file.write(chunk)
        return file.finish()
    finally:
        file.close()


def write_header(path: Path, header: bytes) -> None:
    """Write a header into the space reserved for it."""
    with path.open("r+b") as file:
        file.write(header)
        file.flush()
        os.fsync(file.fileno())


def overwrite(path: Path, start: int, part: Part, spans: Iterable[tuple[int, bytes]]) -> Part:
    """Overwrite bytes of a file, synced to disk, and update the hashes of the blocks around them."""
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        touched: set[int] = set()
        for place, data in spans:
            if data:
                _write_at(handle, data, start + place)
                touched.update(range(place // BLOCK, (place + len(data) - 1) // BLOCK + 1))
        os.fsync(handle)
        blocks = list(part.blocks)
        for number in touched:
            blocks[number] = _block_hash(handle, start, part, number)
        return Part(part.size, blocks)
    finally:
        os.close(handle)


def check_size(path: Path, start: int, part: Part) -> None:
    """Refuse a file that is truncated."""
    try:
        size = path.stat().st_size
    except FileNotFoundError as wrong:
        raise StoreError(f"{path}: missing; restore the pool from a copy") from wrong
    if size < start + part.size:
        raise StoreError(f"{path}: cut off, {size:,} bytes of {start + part.size:,}; restore the pool from a copy")


def check_blocks(path: Path, start: int, part: Part) -> None:
    """Refuse a file whose bytes differ from those that were written."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for number, known in enumerate(part.blocks):
            if _block_hash(handle, start, part, number) != known:
                raise StoreError(f"{path}: damaged near byte {start + number * BLOCK:,}; restore the pool from a copy")
    finally:
        os.close(handle)


def cut(path: Path, start: int, part: Part) -> None:
    """Cut off an unfinished write."""
    if path.stat().st_size > start + part.size:
        with path.open("r+b") as file:
            file.truncate(start + part.size)
            os.fsync(file.fileno())


def copy_part(source: Path, target: Path, length: int) -> None:
    """Copy a file's first bytes; the copy may share blocks on disk, but never later writes."""
    with source.open("rb") as old, os.fdopen(open_private(target), "wb") as new:
        if not _cloned(old.fileno(), new.fileno()):
            shutil.copyfileobj(old, new, BLOCK)
        new.flush()
        new.truncate(length)
        os.fsync(new.fileno())


@contextmanager
def said(path: Path, what: str) -> Iterator[None]:
    """Turn an error of the operating system into one line."""
    try:
        yield
    except StoreError:
        raise
    except OSError as wrong:
        if wrong.errno in _FULL:
            raise StoreError(f"{path}: {what}: the disk is full; free some space and try again") from wrong
        raise StoreError(f"{path}: {what} ({wrong.strerror or wrong})") from wrong


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that becomes the target in one step at the end, or leaves nothing behind."""
    beside = folder.parent / f".{folder.name}.new"
    _check_absent(folder)
    with said(folder, "the pool cannot be stored"):
        private_folder(folder.parent)
        private_folder(beside)
        with locked(beside, wait=False) as free:
            if not free:
                raise StoreError(f"{folder}: another process is storing a pool here; wait for it")
            _empty(beside)  # left behind by a killed process
            try:
                yield beside
                sync_folder(beside)
                _check_absent(folder)
                beside.rename(folder)
            except BaseException:
                with suppress(OSError):
                    _empty(beside)
                    beside.rmdir()
                raise
        sync_folder(folder.parent)


def _check_absent(folder: Path) -> None:
    if os.path.lexists(folder):
        raise InputError(f"{folder}: exists already; name another folder")


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _hash() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=16)


def _block_hash(handle: int, start: int, part: Part, number: int) -> str:
    place, digest = number * BLOCK, _hash()
    digest.update(os.pread(handle, min(BLOCK, part.size - place), start + place))
    return digest.hexdigest()


def _write_at(handle: int, data: bytes | bytearray, place: int) -> None:
    view = memoryview(data)
    while len(view):
        done = os.pwrite(handle, view, place)
        view, place = view[done:], place + done


def _cloned(old: int, new: int) -> bool:
    if fcntl is None:  # pragma: no cover
        return False
    try:
        fcntl.ioctl(new, _CLONE, old)
    except OSError:
        return False
    return True
