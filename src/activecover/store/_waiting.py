"""Waiting until another process has written something, without asking the database again and again."""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

#: Seconds between two looks at a file: at first, and after a long wait.
_SHORTEST, _LONGEST = 0.002, 0.1
_GROWTH = 1.2


class Watch(Protocol):
    """Notices that something was written."""

    def mark(self) -> object:
        """What to give to :meth:`wait`: taken before looking at what there is, so that nothing is missed."""

    def wait(self, mark: object, seconds: float) -> bool:
        """Wait until something was written after the mark; False if the time is over, or after :meth:`wake`."""

    def wake(self) -> None:
        """End the wait of another thread."""

    def close(self) -> None:
        """Let go of connections."""


class FileWatch:
    """Watches the write-ahead log of an SQLite file: every commit changes its size or its time.

    Parameters
    ----------
    store : Path
        The SQLite file.
    """

    def __init__(self, store: Path) -> None:
        self._file = store.with_name(f"{store.name}-wal")
        self._woken = threading.Event()

    def mark(self) -> object:
        """The size and time of the file."""
        with suppress(OSError):
            found = os.stat(self._file)
            return found.st_size, found.st_mtime_ns
        return None

    def wait(self, mark: object, seconds: float) -> bool:
        """Look at the file, less and less often."""
        end, step = time.monotonic() + seconds, _SHORTEST
        while self.mark() == mark:
            left = end - time.monotonic()
            if left <= 0 or self._woken.wait(min(step, left)):
                self._woken.clear()
                return False
            step = min(step * _GROWTH, _LONGEST)
        return True

    def wake(self) -> None:
        """End the wait."""
        self._woken.set()

    def close(self) -> None:
        """Nothing is open."""


class Listener:
    """Listens to the notifications that PostgreSQL sends when a transaction of the channel is committed.

    Parameters
    ----------
    engine : Engine
        For a connection of its own.
    channel : str
        What to listen to.
    """

    def __init__(self, engine: sa.Engine, channel: str) -> None:
        self._engine, self._channel = engine, channel
        self._connection: Any = None
        self._woken, self._wake = os.pipe()
        self._lock = threading.Lock()
        #: How many times something was noticed.
        self._noticed = 0

    def mark(self) -> object:
        """Begin to listen; if the server is away, a wait is a short pause, and the caller finds out when it looks."""
        with self._lock:
            if self._connection is None and self._wake >= 0:
                with suppress(Exception):
                    self._connection = self._connected()
            return self._noticed

    def _connected(self) -> Any:
        connection = self._engine.raw_connection()
        driver: Any = connection.driver_connection
        connection.detach()
        driver.autocommit = True
        driver.execute(f"LISTEN {self._channel}")
        return driver

    def wait(self, mark: object, seconds: float) -> bool:
        """Wait for a notification; one that came since the mark counts, also if another thread noticed it."""
        with self._lock:
            if self._noticed != mark:
                return True
            if self._connection is None:
                time.sleep(min(seconds, _LONGEST))
                return True
            try:
                noticed = self._listen(seconds)
            except Exception:
                # The server is gone: the caller finds out when it looks, and the next mark listens again.
                self._drop()
                time.sleep(_LONGEST)
                noticed = True
            self._noticed += noticed
            return noticed

    def _listen(self, seconds: float) -> bool:
        server = self._connection.pgconn
        if server.notifies() is None:
            found, _, _ = select.select([server.socket, self._woken], [], [], seconds)
            if self._woken in found:
                os.read(self._woken, 1024)
            if server.socket not in found:
                return False
            server.consume_input()
        noticed = False
        while server.notifies() is not None:
            noticed = True
        return noticed

    def wake(self) -> None:
        """End the wait."""
        with suppress(OSError):
            # Once closed there is nothing to wake, and the number may belong to another file.
            if self._wake >= 0:
                os.write(self._wake, b".")

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._drop()
            for handle in (self._woken, self._wake):
                if handle >= 0:
                    os.close(handle)
            self._woken = self._wake = -1

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()
