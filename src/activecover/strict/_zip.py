"""Untrusted zip files: the whole structure is checked before anything is unpacked."""

from __future__ import annotations

import os
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from activecover.errors import InputError

_END, _END64, _LOCATOR, _LOCAL = b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\3\4"
_END_SIZE, _END64_SIZE, _LOCATOR_SIZE, _LOCAL_SIZE = 22, 56, 20, 30
#: Follows a member whose sizes were unknown when it was started: signature, checksum and two sizes.
_DESCRIPTORS = (0, 12, 16, 20, 24)
_ENCRYPTED = 0x1 | 0x20 | 0x40 | 0x2000
_SIZES_BEHIND = 0x8
_ZIP64_EXTRA = 1
_PART = re.compile(r"[^/\\:*?\"<>|\0-\x1f\x7f]{1,255}")
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class ZipLimits:
    """Limits on a zip file."""

    members: int = 10_000
    #: Bytes that any file may unpack to; a larger file may unpack to ``ratio`` times its size.
    size: int = 1 << 30
    ratio: int = 100
    depth: int = 3
    flat: bool = False

    def room(self, packed: int) -> int:
        """Most bytes that a file of the given size may unpack to."""
        return max(self.size, self.ratio * packed)


@contextmanager
def checked_zip(path: Path, limits: ZipLimits) -> Iterator[zipfile.ZipFile]:
    """Open a zip file whose members have plain names, do not overlap, and stay within limits.

    Any problem, now or while members are read, raises an InputError of one line.
    """
    try:
        with path.open("rb") as raw:
            size = os.fstat(raw.fileno()).st_size
            directory = _check_end(raw, size, limits)
            with zipfile.ZipFile(raw) as packed:
                _check_members(packed, limits.room(size), limits)
                _check_places(raw, packed, directory)
                yield packed
    except InputError:
        raise
    except (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, NotImplementedError, struct.error) as wrong:
        raise InputError(f"not a whole zip file ({str(wrong)[:100]})") from None
    except (ValueError, KeyError, RuntimeError, OverflowError) as wrong:
        raise InputError(f"not a sound zip file ({str(wrong)[:100]})") from None


def copy_member(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """The bytes of a member, a block at a time: exactly as many as it declares."""
    left = member.file_size
    with packed.open(member) as file:
        while block := file.read(_BLOCK):
            left -= len(block)
            if left < 0:
                break
            yield block
    if left:
        raise InputError(f"{member.filename}: does not unpack to the size it declares")


def _check_end(raw: IO[bytes], size: int, limits: ZipLimits) -> int:
    """Start of the directory, whose size is checked before it is read."""
    end = _read(raw, size - _END_SIZE, _END_SIZE)
    if end[:4] != _END:
        raise InputError("not a whole zip file (its end is missing)")
    disk, other, here, count, length, start, comment = struct.unpack("<4H2LH", end[4:])
    before, multiple = size - _END_SIZE, (disk, other) != (0, 0)
    if (comment == 0 and 0xFFFF in (here, count)) or 0xFFFFFFFF in (length, start):
        locator = _read(raw, before - _LOCATOR_SIZE, _LOCATOR_SIZE)
        before -= _LOCATOR_SIZE + _END64_SIZE
        record = _read(raw, before, _END64_SIZE)
        if locator[:4] != _LOCATOR or record[:4] != _END64 or struct.unpack("<Q", locator[8:16])[0] != before:
            raise InputError("not a whole zip file (its large directory is not where it should be)")
        disk, other, here, count, length, start = struct.unpack("<2L4Q", record[16:])
        multiple = (disk, other) != (0, 0)
    elif _read(raw, max(0, before - _LOCATOR_SIZE), 4) == _LOCATOR:
        # The library would use it, and so a directory other than the one checked here.
        raise InputError("not a plain zip file: it has two directories")
    if multiple or here != count or start + length != before:
        raise InputError("not a plain zip file: it is split into parts, or has data before or after it")
    if count > limits.members or length > limits.members * 200:
        raise InputError(f"a zip file with {count:,} members, {limits.members:,} at most")
    return int(start)


def _check_members(packed: zipfile.ZipFile, room: int, limits: ZipLimits) -> None:
    """Check the names, types and declared sizes of all members."""
    seen: set[str] = set()
    total = 0
    for member in packed.infolist():
        _check_name(member, limits)
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", member.filename).casefold())
        if folded in seen:
            raise InputError(f"two members with the name {member.filename!r}")
        seen.add(folded)
        mode = member.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG) or member.external_attr & 0x10:
            raise InputError(f"{member.filename}: not a plain file (a link, folder or device)")
        if member.flag_bits & _ENCRYPTED:
            raise InputError(f"{member.filename}: encrypted")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"{member.filename}: compressed by an unsupported method")
        if member.compress_type == zipfile.ZIP_STORED and member.file_size != member.compress_size:
            raise InputError(f"{member.filename}: declares two sizes")
        _check_extra(member)
        total += member.file_size
    if total > room:
        raise InputError(f"it unpacks to {total:,} bytes; at most {room:,} are allowed for a file of its size")


def _check_name(member: zipfile.ZipInfo, limits: ZipLimits) -> None:
    """Allow only names that mean the same file inside a folder on every system."""
    name = member.filename
    parts = name.split("/")
    if (
        name != member.orig_filename
        or not name.isprintable()
        or unicodedata.normalize("NFC", name) != name
        or len(name.encode()) > 1000
        or len(parts) > (1 if limits.flat else limits.depth)
        or any(not _PART.fullmatch(part) or part[-1] in ". " or part[0] == " " for part in parts)
    ):
        raise InputError(f"a member named {name[:80]!r}, which is not a plain file name")


def _check_extra(member: zipfile.ZipInfo) -> None:
    """Allow no extra field but the sizes of a large member: others could rename it."""
    extra = member.extra
    while len(extra) >= 4:
        kind, length = struct.unpack("<2H", extra[:4])
        if kind != _ZIP64_EXTRA:
            break
        extra = extra[4 + length :]
    if extra:
        raise InputError(f"{member.filename}: with an unsupported extra field")


def _check_places(raw: IO[bytes], packed: zipfile.ZipFile, directory: int) -> None:
    """Check that members follow each other without overlaps or gaps."""
    place = 0
    for member in sorted(packed.infolist(), key=lambda member: member.header_offset):
        gap = member.header_offset - place
        if gap not in (_DESCRIPTORS if place else (0,)):
            raise InputError(f"{member.filename}: overlaps another member, or has data before it")
        local = _read(raw, member.header_offset, _LOCAL_SIZE)
        signature, flags, method, *_, name, extra = struct.unpack("<4sxx2H4x3L2H", local)
        if signature != _LOCAL or method != member.compress_type or (flags ^ member.flag_bits) & ~_SIZES_BEHIND:
            raise InputError(f"{member.filename}: does not begin as the directory says")
        place = member.header_offset + _LOCAL_SIZE + name + extra + member.compress_size
    if directory - place not in (_DESCRIPTORS if place else (0,)):
        raise InputError("not a plain zip file: members overlap its directory, or have data in between")


def _read(raw: IO[bytes], place: int, length: int) -> bytes:
    if place < 0:
        raise InputError("not a whole zip file (it is too short)")
    raw.seek(place)
    data = raw.read(length)
    if len(data) != length:
        raise InputError("not a whole zip file (it ends too early)")
    return data
