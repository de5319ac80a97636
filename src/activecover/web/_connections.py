"""Connections that send their requests slowly or never: how long they may take, and which of them make room."""

from __future__ import annotations

import asyncio
import resource
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.h11_impl import H11Protocol

#: asyncio accepts this many connections and one more before any of them can be closed again.
BACKLOG = 128
#: Descriptors kept free for stores, pools and uploads, as a share of those that the process may have.
_KEPT_SHARE = 0.2
_MOST, _LEAST = 8192, 16
#: Younger connections count as ordinary ones whose request is still on its way, unless nothing else is left.
_YOUNG = 1.0
#: A body that arrives faster than this (bytes per second) is no reason to close its connection.
_FAST = 1 << 16


def most_connections() -> int:
    """How many connections a process may hold without running out of file descriptors."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return _MOST
    return max(_LEAST, min(_MOST, int(limit * (1 - _KEPT_SHARE)) - BACKLOG))


class PatientProtocol(H11Protocol):
    """uvicorn's protocol for HTTP/1.1 with an end to its patience.

    A request's head has to be complete within ``head_seconds`` of the connection or of the answer before it. A body
    has to arrive at ``least_rate`` bytes per second, and an answer has to be read within ``beats_unread`` beats.
    Nothing is counted against a client while the server itself has stopped reading.

    There are never more than ``most`` connections, half of them from one address. Another one is always accepted; the
    one that has kept the server waiting longest is closed for it. Connections whose request is complete are not.
    """

    head_seconds = 10.0
    least_rate = 1024.0
    beat = 5.0
    beats_slow = 2
    beats_unread = 6
    most = most_connections()

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.since = self.loop.time()
        self._room = _ROOMS.setdefault(self.server_state, _Room())
        self._request: Any = None
        self._taken = self._taken_before = 0
        self._slow = self._unread = self._unsent = 0
        self._timer: asyncio.TimerHandle | None = None

    # -- what asyncio and uvicorn call ------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch a connection, and close another one if there are too many."""
        super().connection_made(transport)
        if not self._room.make_room(self.address, self.most):
            transport.abort()
            return
        self._timer = self.loop.call_later(self.beat, self._watch)
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
        self._room.drop(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what arrives."""
        self._taken += len(data)
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        """Wait for the next request from now on."""
        self.since = self.loop.time()
        super().on_response_complete()
        self._note()

    def resume_writing(self) -> None:
        """Note that the client has read something."""
        self._unread = 0
        super().resume_writing()

    # -- patience -----------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where the client is; all that a proxy passes on comes from one place."""
        return self.client[0] if self.client else ""

    @property
    def stage(self) -> str:
        """What the connection is at: a request's ``head``, its ``body``, or ``work`` on the answer."""
        if self.cycle is None or self.cycle.response_complete:
            return "head"
        return "body" if self.cycle.more_body else "work"

    @property
    def is_fast(self) -> bool:
        """Whether a body arrives as fast as can be expected, or has just begun to."""
        age = self.loop.time() - self.since
        return age < _YOUNG or self._taken > _FAST * age

    @property
    def is_unread(self) -> bool:
        """Whether the client has left its answer unread for a beat."""
        return self._unread > 0

    def cut(self) -> None:
        """Close the connection at once."""
        self._room.drop(self)
        self.transport.abort()

    def _note(self) -> None:
        if self.cycle is not self._request:
            self._request, self.since = self.cycle, self.loop.time()
            self._taken = self._taken_before = self._slow = 0
        if not self.transport.is_closing():
            self._room.put(self)

    def _watch(self) -> None:
        self._note()
        if self._is_too_slow():
            self.cut()
            return
        # The end of a head's time is met exactly; bodies and answers are looked at beat by beat.
        rest = self.since + self.head_seconds - self.loop.time() if self.stage == "head" else self.beat
        self._timer = self.loop.call_later(min(max(rest, 0.1), self.beat), self._watch)

    def _is_too_slow(self) -> bool:
        unsent, before = self.transport.get_write_buffer_size(), self._unsent
        self._unsent = unsent
        self._unread = self._unread + 1 if unsent and unsent >= before else 0
        if unsent:
            return self._unread > self.beats_unread
        if self.stage == "head":
            return self.loop.time() >= self.since + self.head_seconds
        taken, self._taken_before = self._taken - self._taken_before, self._taken
        waited_for = self.stage == "body" and not self.flow.read_paused
        self._slow = self._slow + 1 if waited_for and taken < self.least_rate * self.beat else 0
        return self._slow > self.beats_slow


class _Crowd:
    """The connections from one address by what they are at; those come first that have been at it longest."""

    def __init__(self) -> None:
        self.stages: dict[str, dict[PatientProtocol, None]] = {"head": {}, "body": {}, "work": {}}

    def __len__(self) -> int:
        return sum(map(len, self.stages.values()))

    def least_deserving(self) -> PatientProtocol | None:
        """The connection to close for another one: none that is at work, unless its answer is left unread."""
        head = next(iter(self.stages["head"]), None)
        if head is not None and head.loop.time() - head.since > _YOUNG:
            return head
        slow = (one for one in self.stages["body"] if not one.is_fast)
        unread = (one for one in self.stages["work"] if one.is_unread)
        return next(chain(slow, unread, self.stages["head"], self.stages["body"]), None)


class _Room:
    """All connections of a server, by address."""

    def __init__(self) -> None:
        self._crowds: dict[str, _Crowd] = {}
        self._places: dict[PatientProtocol, tuple[_Crowd, str]] = {}

    def put(self, one: PatientProtocol) -> None:
        """Let a connection stand with those of its stage, last of them if it is new there."""
        crowd, stage = self._places.get(one, (None, ""))
        if crowd is None:
            crowd = self._crowds.setdefault(one.address, _Crowd())
        if stage != one.stage:
            if stage:
                del crowd.stages[stage][one]
            crowd.stages[one.stage][one] = None
            self._places[one] = (crowd, one.stage)

    def drop(self, one: PatientProtocol) -> None:
        """Forget a connection."""
        crowd, stage = self._places.pop(one, (None, ""))
        if crowd is not None:
            del crowd.stages[stage][one]
            if not len(crowd):
                self._crowds.pop(one.address, None)

    def make_room(self, address: str, most: int) -> bool:
        """Close a connection if another one from this address would be one too many; gives whether there is room."""
        crowd = self._crowds.get(address)
        if crowd is None or len(crowd) < max(1, most // 2):
            if len(self._places) < most:
                return True
            crowd = max(self._crowds.values(), key=len)
        one = crowd.least_deserving()
        if one is not None:
            one.cut()
        return one is not None


_ROOMS: WeakKeyDictionary[Any, _Room] = WeakKeyDictionary()
