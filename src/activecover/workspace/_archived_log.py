"""The events of an archive, read where they lie: checked once from the first to the last, and never added to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from activecover.errors import InputError, StoreError
from activecover.store import START, Line, Ready, SharedLog, heads
from activecover.strict import JsonLimits, read_json

#: One event; a group of duplicates or a chosen exploration may list every row of a pool.
LINE = JsonLimits(size=1 << 26, values=2_000_000, depth=16)
#: The last second that a date can be made of (year 9999).
_LAST_SECOND = 253402300799
_LARGEST_NUMBER = 2**63


class ArchivedLog(SharedLog):
    """A log that was closed for good.

    Parameters
    ----------
    path : Path
        Lines as :func:`~activecover.store.lines_of` writes them.
    most : int
        More events than this are refused.

    Raises
    ------
    InputError
        For a line that is no event, does not fit its hash, or is not in its place.
    """

    def __init__(self, path: Path, most: int) -> None:
        self.path = path
        self._length, self._head = 0, START
        begun = False
        for number, line in enumerate(self._lines()):
            if number >= most:
                raise InputError(f"more than {most:,} events")
            event = _event_of(number, line)
            kept = event.pop("chain", None)
            try:
                self._head = next(heads([event], self._head))
            except ValueError as wrong:
                raise InputError(f"event {number} is damaged ({str(wrong)[:80]})") from None
            begun = begun or kept is not None
            # Events without a hash are older than the chain: they may stand at the start, and nowhere else.
            if begun and kept != self._head:
                raise InputError(f"event {number} does not fit its hash: it, or one before it, was changed")
            self._length = number + 1

    def read(self, since: int = 0) -> Iterator[Line]:
        for number, line in enumerate(self._lines()):
            if number >= since:
                event = _event_of(number, line)
                event.pop("chain", None)
                yield event

    def __len__(self) -> int:
        return self._length

    def head(self) -> str:
        return self._head

    def append(self, events: Sequence[Mapping[str, Any]]) -> NoReturn:
        raise StoreError("an archive is not written to; restore it first")

    def __str__(self) -> str:
        return "the events of the archive"

    # Nobody proposes anything for a campaign that is only looked at.

    def try_brain(self) -> bool:
        return False

    def put_ready(self, proposals: Sequence[Ready]) -> None:
        return

    def take_ready(self, count: int, oldest: int) -> list[Ready]:
        return []

    def want(self, who: str, count: int) -> None:
        return

    def is_wanted(self, who: str) -> bool:
        return False

    def demand(self) -> tuple[int, int]:
        return 0, 0

    def mark(self) -> object:
        return None

    def wait(self, mark: object, seconds: float) -> bool:
        return False

    def wake(self) -> None:
        return

    def _lines(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            while line := file.readline(LINE.size + 1):
                yield line


def _event_of(number: int, line: bytes) -> Line:
    try:
        event = read_json(line, LINE)
    except InputError as wrong:
        raise InputError(f"event {number}: {wrong}") from None
    if not isinstance(event, dict) or event.get("seq") != number or type(event["seq"]) is not int:
        raise InputError(f"event {number} is not in its place")
    if not isinstance(event.get("event"), str) or not isinstance(event.get("chain", ""), str):
        raise InputError(f"event {number} is no event")
    for name, value in event.items():
        # What is computed with later must be a time that a calendar has, or a number that an array can hold.
        if type(value) in (int, float) and not abs(value) < _LARGEST_NUMBER:
            raise InputError(f"event {number}: {name[:50]} is too large")
    for name in ("at", "expires"):
        at = event.get(name)
        if isinstance(at, int | float) and not 0 <= at <= _LAST_SECOND:
            raise InputError(f"event {number}: {name} is no time")
    return event
