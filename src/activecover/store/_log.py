"""Where events are kept: in memory, or in a JSON Lines file that survives a crash."""

from __future__ import annotations

import json
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, ClassVar

from activecover.errors import InputError, StoreError
from activecover.files import lock, open_private, sync_folder
from activecover.store._chain import START, first_break, head_of, heads, link
from activecover.store._events import Line

#: The end of a line that others of the same append follow.
_MORE = b" "


#: The hash at the end of a line under a name that is as long as its own: no field is, so the name is damaged.
_MISNAMED = re.compile(rb'"[^"]{5}": "[^"]{64}"\} ?$')

#: What JSON gives back as it was, as it does plain letters and finite numbers.
_PLAIN = frozenset({int, bool, type(None)})


class EventLog(ABC):
    """An append-only sequence of events.

    Rules for implementers (``activecover.testing.check_log`` holds them):

    - ``append`` takes several events whole or not at all, gives each its position (``seq``), and
      returns only once they would survive a crash.
    - ``read(since)`` gives the events from a position on, in order, exactly as they were appended.
    - Nothing is ever changed or removed.
    - :meth:`head` changes with every event, and :meth:`verify` finds what was changed behind its back.
    - Inside a :meth:`turn` nobody else appends, and what is appended is kept together at its end.
    """

    #: Whether other processes may append too.
    shared: ClassVar[bool] = False

    @abstractmethod
    def append(self, events: Sequence[Mapping[str, Any]]) -> list[Line]:
        """Add events and return them with their positions."""

    @abstractmethod
    def read(self, since: int = 0) -> Iterator[Line]:
        """The events from a position on."""

    @abstractmethod
    def __len__(self) -> int:
        """How many events there are."""

    def head(self) -> str:
        """The hash of all events, each hashed together with the hash of those before it."""
        return head_of(self.read())

    def verify(self) -> str:
        """The head, once every event was found to be as it was appended; a log that was changed is refused."""
        return self.head()

    def turn(self, lasting: bool = True) -> AbstractContextManager[None]:
        """A time in which nobody else appends; ``lasting`` tells whether events are appended."""
        return nullcontext()

    def try_brain(self) -> bool:
        """Try to become the process that runs the learner; return whether it succeeded."""
        return True

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of files and locks."""

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MemoryLog(EventLog):
    """Events in memory: gone with the process.

    Examples
    --------
    >>> log = MemoryLog()
    >>> log.append([{"event": "told", "id": "a"}])
    [{'seq': 0, 'event': 'told', 'id': 'a'}]
    """

    def __init__(self) -> None:
        self._events: list[Line] = []
        #: The head of the chain, and how many events it stands for: people who answer need not wait for it.
        self._head, self._linked = START, 0

    def append(self, events: Sequence[Mapping[str, Any]]) -> list[Line]:
        numbered = [_as_read(len(self) + i, event) for i, event in enumerate(events)]
        self._events.extend(numbered)
        return [dict(event) for event in numbered]

    def read(self, since: int = 0) -> Iterator[Line]:
        return (dict(event) for event in self._events[since:])

    def __len__(self) -> int:
        return len(self._events)

    def head(self) -> str:
        for head in heads(self._events[self._linked :], self._head):
            self._head, self._linked = head, self._linked + 1
        return self._head

    def verify(self) -> str:
        if head_of(self._events) != self.head():
            raise StoreError(f"{self}: an event was changed")
        return self._head

    def __str__(self) -> str:
        return "events in memory"


class JsonlLog(EventLog):
    """Events in a file, one JSON object per line, synced to disk before they are acknowledged.

    One process at a time may have the file open. A last line that was cut short by a crash was never
    acknowledged: it is left out, and overwritten by the next event. Damage anywhere else is refused.
    Each line ends with the hash of its event and all before it (``chain``), and a file whose hashes do not fit
    is refused. Of events appended together every line but the last ends in a blank, so that a crash among them
    leaves out all of them.

    Parameters
    ----------
    path : path
        The file; created with the first event.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_file():
            what = "is a folder" if self.path.is_dir() else "is not a file"
            raise InputError(f"{self.path}: {what}; name a file for the label log")
        if not self.path.parent.is_dir():
            raise InputError(f"{self.path}: there is no folder {self.path.parent}; create it first")
        self._file: IO[bytes] | None = None
        self._process = os.getpid()
        self._closed = False
        self._events: list[Line] = []
        self._size = 0
        self._head = START
        #: What was appended in this turn, and is written at its end; None outside of turns.
        self._pending: list[bytes] | None = None
        if self.path.exists():
            self._open(new=False)
            try:
                self._load()
            except BaseException:
                self.close()
                raise

    def append(self, events: Sequence[Mapping[str, Any]]) -> list[Line]:
        added = [json.loads(encode(len(self) + i, event)) for i, event in enumerate(events)]
        with self.turn():
            self._check()
            assert self._pending is not None
            for event in added:
                self._head = link(self._head, event)
                self._pending.append(encode_chained(event, self._head))
            self._events.extend(added)
        return [dict(event) for event in added]

    @contextmanager
    def turn(self, lasting: bool = True) -> Iterator[None]:
        """A time whose events are written together at its end, or not at all."""
        if self._pending is not None:
            yield
            return
        self._pending, before, head = [], len(self._events), self._head
        try:
            yield
            self._write(self._pending)
        except BaseException:
            del self._events[before:]
            self._head = head
            raise
        finally:
            self._pending = None

    def _check(self) -> None:
        if self._closed:
            raise StoreError(f"{self.path}: this label log was closed; open it again")
        if self._process != os.getpid():
            # A forked child has its parent's lock but not what the parent writes from now on.
            raise StoreError(f"{self.path}: this label log was opened by another process; open it again in this one")

    def _write(self, lines: Sequence[bytes]) -> None:
        if not lines:
            return
        data = (_MORE + b"\n").join(lines) + b"\n"
        created = self._file is None
        if created:
            self._open(new=True)
        assert self._file is not None
        handle = self._file.fileno()
        try:
            os.ftruncate(handle, self._size)
            os.lseek(handle, self._size, os.SEEK_SET)
            _write_all(handle, data)
            os.fsync(handle)
        except OSError as wrong:
            self._roll_back(handle, created)
            raise StoreError(
                f"{self.path}: the label was not saved ({wrong.strerror}); all earlier ones are safe"
            ) from wrong
        if not self._size:
            sync_folder(self.path.parent)
        self._size += len(data)

    def read(self, since: int = 0) -> Iterator[Line]:
        return (dict(event) for event in self._events[since:])

    def __len__(self) -> int:
        return len(self._events)

    def head(self) -> str:
        return self._head

    def verify(self) -> str:
        return _checked_head(self.path, *self._read_file()[0])

    def __str__(self) -> str:
        return str(self.path)

    def close(self) -> None:
        self._closed = True
        self._let_go()

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self, *, new: bool) -> None:
        # A log that was not there before is never opened over one that someone else has begun meanwhile.
        flags = os.O_RDWR | (os.O_CREAT | os.O_EXCL if new else 0)
        try:
            handle = open_private(self.path, flags)
        except FileExistsError as wrong:
            raise StoreError(f"{self.path}: another process has begun this label log; open it again") from wrong
        except (OSError, ValueError) as wrong:
            reason = getattr(wrong, "strerror", None) or wrong
            raise InputError(f"{self.path}: the label log cannot be opened ({reason})") from wrong
        self._file = os.fdopen(handle, "r+b", buffering=0)
        try:
            ours = lock(handle, wait=False)
        except OSError as wrong:
            self._let_go()
            raise StoreError(f"{self.path}: the label log cannot be locked ({wrong.strerror})") from wrong
        if not ours:
            self._let_go()
            raise StoreError(f"{self.path}: another process has this label log open; close it first")

    def _load(self) -> None:
        (self._events, kept), self._size = self._read_file()
        self._head = _checked_head(self.path, self._events, kept)
        assert self._file is not None
        if self._size and os.pread(self._file.fileno(), 1, self._size - 1) != b"\n":
            os.pwrite(self._file.fileno(), b"\n", self._size - 1)

    def _read_file(self) -> tuple[tuple[list[Line], list[str | None]], int]:
        """The events, the hashes kept with them, and where the last of them ends."""
        if self._file is None:
            return ([], []), 0
        self._file.seek(0)
        data = _mended(self.path, self._file.read())
        end = data.rfind(b"\n") + 1
        lines = data[:end].split(b"\n")[:-1]
        while lines and lines[-1].endswith(_MORE):
            end -= len(lines.pop()) + 1
        if not _is_torn(data[end:], len(lines)):
            raise StoreError(f"{self.path}: its end is no label log event; is it the right file?")
        return parse_lines(self.path, lines), end

    def _roll_back(self, handle: int, created: bool) -> None:
        try:
            os.ftruncate(handle, self._size)
            if created:
                self.path.unlink(missing_ok=True)
                self._let_go()
        except OSError:
            # Then what was written stays as a torn end, without its last newline or without an answer:
            # it was not acknowledged, and the next append overwrites it.
            return


def open_log(log: EventLog | str | Path | None) -> EventLog:
    """A log from a path, a log as it is, or one in memory."""
    if log is None:
        return MemoryLog()
    return log if isinstance(log, EventLog) else JsonlLog(log)


def encode(position: int, event: Mapping[str, Any]) -> bytes:
    """One event as JSON, with its position."""
    if "chain" in event:
        raise InputError(f"event {event.get('event')!r}: 'chain' is the name of the hash that the log keeps with it")
    try:
        return json.dumps({"seq": position, **event}, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as wrong:
        raise InputError(f"event {event.get('event')!r} cannot be kept as JSON: {wrong}") from wrong


def _as_read(position: int, event: Mapping[str, Any]) -> Line:
    """An event as it comes back from a file: what does not survive that does not survive in memory either."""
    if "chain" in event:
        return _through_json(position, event)
    for value in event.values():
        kind = type(value)
        plain = value.isascii() if kind is str else math.isfinite(value) if kind is float else kind in _PLAIN
        if not plain:
            return _through_json(position, event)
    return {"seq": position, **event}


def _through_json(position: int, event: Mapping[str, Any]) -> Line:
    read: Line = json.loads(encode(position, event).decode())
    return read


def lines_of(events: Iterable[Line]) -> bytes:
    """Events as the lines of a label log, each with the hash of itself and all before it."""
    every = list(events)
    return b"".join(encode_chained(event, head) + b"\n" for event, head in zip(every, heads(every), strict=True))


def events_of(path: Path, name: str | None = None) -> list[Line]:
    """The events of a file of such lines, which is ``name`` to people; one that was changed is refused."""
    events, kept = parse_lines(name or path, path.read_bytes().splitlines())
    _checked_head(name or path, events, kept)
    return events


def encode_chained(event: Line, head: str) -> bytes:
    """One numbered event as a line, with the hash of itself and all before it."""
    return json.dumps({**event, "chain": head}, ensure_ascii=False, allow_nan=False).encode()


def parse_lines(path: Path | str, lines: Sequence[bytes]) -> tuple[list[Line], list[str | None]]:
    """The events of lines, and the hashes kept with them."""
    events = [_parse(path, number, line) for number, line in enumerate(lines)]
    return events, [None if (kept := event.pop("chain", None)) is None else str(kept) for event in events]


def _checked_head(path: Path | str, events: Sequence[Line], kept: Sequence[str | None]) -> str:
    broken = first_break(events, kept)
    if broken is not None:
        raise StoreError(
            f"{path} line {broken + 1}: does not fit its hash: it, or a line before it, was changed; "
            "restore it from a copy"
        )
    # Where no hash was kept, the events are older than the chain.
    return (kept[-1] if kept else START) or head_of(events)


def _parse(path: Path | str, number: int, line: bytes) -> Line:
    try:
        event: Line = json.loads(line)
    except (ValueError, RecursionError) as wrong:
        raise StoreError(f"{path} line {number + 1}: damaged, not a label log event; restore it from a copy") from wrong
    named = isinstance(event, dict) and isinstance(event.get("event"), str)
    if not named or event.get("seq") != number or ("chain" not in event and _MISNAMED.search(line)):
        raise StoreError(f"{path} line {number + 1}: not event {number} of a label log; restore it from a copy")
    return event


def _mended(path: Path, data: bytes) -> bytes:
    """The bytes of a log as they were written, if only the line feed at the end was changed.

    A crash cuts the last event short, or leaves it without its line feed. A whole event with something else behind
    it was acknowledged, and then damaged: to take it for one that was cut short would drop it.
    """
    last = data[data.rfind(b"\n") + 1 :]
    try:
        # One character for each byte, so that places are the same.
        _, end = json.JSONDecoder().raw_decode(last.decode("latin-1"))
    except (ValueError, RecursionError):
        return data
    behind = last[end:]
    if behind == b"\0":
        return data[:-1] + b"\n"
    if behind.strip(b"\0") in (b"", _MORE):
        return data
    raise StoreError(f"{path}: the line feed at its end was changed; restore it from a copy")


def _is_torn(end: bytes, number: int) -> bool:
    """Whether it is the beginning of an event: anything else is not ours to overwrite."""
    start = f'{{"seq": {number}, '.encode()
    # A crash can also leave zeros where a file had grown and its contents were still on their way.
    written = end.rstrip(b"\0")
    return written.startswith(start) or start.startswith(written)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
