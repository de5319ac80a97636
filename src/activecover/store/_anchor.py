"""The length and head of each campaign of an SQLite store, kept beside it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activecover.errors import StoreError
from activecover.files import open_private
from activecover.store._chain import START

_DIGEST = 8
#: A length, a head, and a hash of both.
_RECORD = 8 + 32 + _DIGEST


class Anchor:
    """The length and head of each campaign of an SQLite store, in a small file beside it.

    SQLite drops what it finds damaged at the end of its write-ahead log, and knows nothing of an older copy that was
    put in its place. The anchor does: a log that is shorter than it was is refused.

    It may lag behind the store, but is never ahead of it: it is written after a commit has been synced, and before
    a removal is. A record that a crash left half-written is ignored. So a crash cannot make a good store look bad.
    """

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(f"{store.name}.heads")

    def read(self, number: int) -> Anchored | None:
        """The length and head that a campaign had; None if nothing is known."""
        with suppress(OSError), self.path.open("rb") as file:
            file.seek(number * _RECORD)
            return self._parse(number, file.read(_RECORD))
        return None

    def lengths(self) -> dict[int, int]:
        """The length of each known campaign."""
        with suppress(OSError):
            data = self.path.read_bytes()
            records = (self._parse(at // _RECORD, data[at : at + _RECORD]) for at in range(0, len(data), _RECORD))
            return {number: record.length for number, record in enumerate(records) if record is not None}
        return {}

    def write(self, number: int, length: int, head: str) -> None:
        """Note the length and head of a campaign; if that fails, the anchor lags behind."""
        with suppress(OSError):
            self._write(number, length, head, sync=False)

    def forget(self, number: int) -> None:
        """Drop a campaign for good: another may get its number."""
        if self.read(number) is not None:
            self._write(number, 0, START, sync=True)

    def missing(self, what: str, where: object) -> StoreError:
        """The error for a store that is older than it was."""
        return StoreError(
            f"{where}: {what}, which had been acknowledged; restore the newest copy, "
            f"or remove {self.path} if this older one is meant"
        )

    def _write(self, number: int, length: int, head: str, *, sync: bool) -> None:
        record = length.to_bytes(8, "little") + bytes.fromhex(head)
        handle = open_private(self.path, os.O_RDWR | os.O_CREAT)
        try:
            os.pwrite(handle, record + _digest(number, record), number * _RECORD)
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)

    def _parse(self, number: int, found: bytes) -> Anchored | None:
        record, digest = found[:-_DIGEST], found[-_DIGEST:]
        length = int.from_bytes(record[:8], "little")
        if len(found) < _RECORD or not length or digest != _digest(number, record):
            return None
        return Anchored(self, length, record[8:].hex())


@dataclass(frozen=True, slots=True)
class Anchored:
    """The length and head that one campaign had."""

    anchor: Anchor
    length: int
    head: str

    def check(self, rows: Sequence[Any], where: object) -> None:
        """Raise an error if the rows from the first on are fewer, or different."""
        self.check_length(len(rows), where)
        if rows[self.length - 1].chain != self.head:
            raise self.anchor.missing(f"event {self.length - 1} is another one than it was", where)

    def check_length(self, length: int, where: object) -> None:
        """Raise an error if a log has fewer events than it had."""
        if length < self.length:
            raise self.anchor.missing(f"the last {self.length - length:,} of {self.length:,} events are gone", where)


def _digest(number: int, record: bytes) -> bytes:
    return hashlib.blake2b(number.to_bytes(8, "little") + record, digest_size=_DIGEST).digest()
