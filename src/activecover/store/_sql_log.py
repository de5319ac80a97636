"""The log of one campaign in a database."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError

from activecover.errors import StoreError
from activecover.store._chain import START
from activecover.store._engine import clearly, commit, rollback, rows_if_text
from activecover.store._events import Line
from activecover.store._local import lock_file
from activecover.store._schema import campaigns, events, ready, wanted
from activecover.store._sealed import (
    REMEDY,
    check_end,
    checked_events,
    end_of,
    proposal_of,
    sealed_proposal,
    sealed_row,
)
from activecover.store._shared import Ready, SharedLog
from activecover.store._waiting import FileWatch, Listener, Watch

if TYPE_CHECKING:
    from activecover.store._sql import SqlStore

#: How long to wait for a server that has gone away before giving up.
_PATIENCE = 30.0
#: More proposals than anybody asks for at once.
_MOST_WANTED = 1_000_000


class SqlLog(SharedLog):
    """The events of one campaign in a database; several processes may append.

    Decisions that rest on the log are made in a :meth:`turn`: nobody else appends meanwhile, and what
    is appended in it is kept, synced, at its end, or not at all. One process at a time is the *brain*.
    """

    def __init__(self, store: SqlStore, number: int, name: str) -> None:
        self.store = store
        self.number = number
        self.name = name
        self._connection: sa.Connection | None = None
        self._in_turn = 0
        self._length = 0
        self._head = START
        #: Whether events were appended in this turn.
        self._appended = False
        #: Whether something was written in this turn that other processes wait for.
        self._told_others = False
        self._channel = f"activecover_{number}"
        self._watch: Watch | None = None
        #: How many events were found to be as they were appended, and their head.
        self._verified = self._begun_at = (0, START)
        self._process = os.getpid()
        self._closed = False
        #: What the connection is set to.
        self._lasting = True
        self._thread = threading.RLock()
        self._turn_lock: Any = None
        self._brain_lock: Any = None

    # -- events ----------------------------------------------------------------------------------

    def append(self, new: Sequence[Mapping[str, Any]]) -> list[Line]:
        with self.turn():
            assert self._lasting, "events are appended in a turn that lasts"
            rows, added, head = [], [], self._head
            for place, event in enumerate(new, self._length):
                read, body, head = sealed_row(place, event, head)
                added.append(read)
                rows.append({"campaign": self.number, "seq": place, "body": body, "chain": head})
            if rows:
                self._length, self._head = self._length + len(rows), head
                here, own = self._here(), campaigns.c.id == self.number
                here.execute(sa.insert(events), rows)
                here.execute(sa.update(campaigns).where(own).values(length=self._length, head=head))
                self._appended = self._told_others = True
            return added

    def read(self, since: int = 0) -> Iterator[Line]:
        """The events from a position on, each checked against its hash; a log that was changed is refused."""
        return iter(self._checked(since)[0])

    def __len__(self) -> int:
        return self._end_now()[0]

    def head(self) -> str:
        return self._end_now()[1]

    def verify(self) -> str:
        return self._checked(0)[1]

    def __str__(self) -> str:
        return f"{self.store} ({self.name})"

    @contextmanager
    def turn(self, lasting: bool = True) -> Iterator[None]:
        """A time in which nobody else appends.

        What is not ``lasting`` (proposals, which can be made again) need not be on the disk when it ends.
        """
        with self._thread:
            if self._in_turn:
                self._in_turn += 1
                try:
                    yield
                finally:
                    self._in_turn -= 1
                return
            self._check()
            with clearly(self.store):
                self._begin(lasting)
            self._in_turn = 1
            try:
                with clearly(self.store):
                    yield
            except BaseException:
                self._end(keep=False)
                raise
            with clearly(self.store, saving=True):
                self._end(keep=True)

    # -- the brain and its proposals -------------------------------------------------------------

    def try_brain(self) -> bool:
        """Try to become the process that runs the learner; return whether it succeeded."""
        with self._thread:
            self._check()
            if self.store.path is not None:
                if self._brain_lock is None:
                    self._brain_lock = lock_file(self.store.lock_path(self.number, "brain"), wait=False)
                return self._brain_lock is not None
            with clearly(self.store):
                connection = self._connect()
                if self._brain_lock is not connection:
                    query = sa.select(sa.func.pg_try_advisory_lock(self.number, 2))
                    self._brain_lock = connection if connection.scalar(query) else None
                    if not self._in_turn:
                        connection.rollback()
                return self._brain_lock is connection

    def put_ready(self, proposals: Sequence[Ready]) -> None:
        """Replace the proposals that wait to be taken."""
        with self.turn(lasting=False):
            here, self._told_others = self._here(), True
            here.execute(sa.delete(ready).where(ready.c.campaign == self.number))
            here.execute(sa.delete(wanted).where(wanted.c.campaign == self.number))
            if proposals:
                rows = [sealed_proposal(self.number, place, one) for place, one in enumerate(proposals)]
                here.execute(sa.insert(ready), rows)

    def take_ready(self, count: int, oldest: int) -> list[Ready]:
        """Take proposals that rest on at least ``oldest`` labels, best first."""
        with self.turn():
            query = (
                sa.select(ready)
                .where(ready.c.campaign == self.number, ready.c.labels >= oldest)
                .order_by(ready.c.place)
                .limit(count)
            )
            if self.store.path is None:
                query = query.with_for_update(skip_locked=True)
            here = self._here()
            found = list(map(proposal_of, rows_if_text(here, query)))
            taken = [one for one in found if one is not None]
            own = ready.c.campaign == self.number
            if len(taken) < len(found):
                # Damaged or changed: the process that runs the learner makes all of them again.
                here.execute(sa.delete(ready).where(own))
                return []
            if taken:
                here.execute(sa.delete(ready).where(own, ready.c.item.in_([one.id for one in taken])))
            return taken

    def want(self, who: str, count: int) -> None:
        """Tell the process that runs the learner that someone waits for proposals."""
        with self.turn(lasting=False):
            here, self._told_others = self._here(), True
            here.execute(sa.delete(wanted).where(wanted.c.campaign == self.number, wanted.c.who == who))
            here.execute(sa.insert(wanted).values(campaign=self.number, who=who, amount=count))

    def is_wanted(self, who: str) -> bool:
        """Whether someone still waits: the brain has not put anything there since :meth:`want`."""
        query = sa.select(wanted.c.amount).where(wanted.c.campaign == self.number, wanted.c.who == who)
        return bool(self._fetch(query)[0])

    def demand(self) -> tuple[int, int]:
        """How many proposals are waited for, and how many wait to be taken."""
        plausible = wanted.c.amount.between(0, _MOST_WANTED)
        asked = sa.select(sa.func.sum(wanted.c.amount)).where(wanted.c.campaign == self.number, plausible)
        there = sa.select(sa.func.count()).select_from(ready).where(ready.c.campaign == self.number)
        counts = self._fetch(sa.select(asked.scalar_subquery(), there.scalar_subquery()))[0][0]
        return int(counts[0] or 0), int(counts[1] or 0)

    def mark(self) -> object:
        """What to give to :meth:`wait`, taken before looking at what there is."""
        with clearly(self.store):
            return self._watching().mark()

    def wait(self, mark: object, seconds: float) -> bool:
        """Wait until something was written after the mark; no query is made. False if the time is over."""
        return self._watching().wait(mark, seconds)

    def wake(self) -> None:
        """End the wait of another thread."""
        self._watching().wake()

    def _watching(self) -> Watch:
        with self._thread:
            if self._watch is None:
                path = self.store.path
                self._watch = Listener(self.store.engine(), self._channel) if path is None else FileWatch(path)
            return self._watch

    def close(self) -> None:
        watch = self._watch
        if watch is not None:
            watch.close()
        with self._thread:
            self._closed = True
            self._resign()
            self._drop_connection()
            for lock in (self._turn_lock, self._brain_lock):
                if hasattr(lock, "release"):
                    lock.release()
            self._turn_lock = self._brain_lock = None

    def _resign(self) -> None:
        """Give the brain's lock back at once: a server notices only later that a connection is gone."""
        connection = self._connection
        ours = self._process == os.getpid() and self._brain_lock is connection
        if ours and connection is not None and not connection.invalidated:
            with suppress(DBAPIError):
                connection.scalar(sa.select(sa.func.pg_advisory_unlock(self.number, 2)))

    # -- inside ----------------------------------------------------------------------------------

    def _check(self) -> None:
        if self._closed:
            raise StoreError(f"{self}: this campaign was closed; open it again")
        if self._process != os.getpid():
            raise StoreError(f"{self}: this campaign was opened by another process; open it again in this one")

    def _here(self) -> sa.Connection:
        assert self._connection is not None
        return self._connection

    def _connect(self) -> sa.Connection:
        """The connection of this log; one that was lost is replaced, and the lock of the process that runs the learner is lost with it."""
        if self._connection is not None and self._connection.invalidated:
            # It would come back by itself, but without the locks that it had.
            self._drop_connection()
        if self._connection is None:
            deadline = time.monotonic() + _PATIENCE
            while self._connection is None:
                try:
                    self._connection = self.store.connect()
                    self._lasting = True
                except OperationalError:
                    if self.store.path is not None or time.monotonic() > deadline:
                        raise
                    time.sleep(0.2)
        return self._connection

    def _begin(self, lasting: bool) -> None:
        """Wait for our turn and begin a transaction; a connection found dead is replaced, once."""
        if self.store.path is not None:
            # SQLite's own waiting is unfair: with many processes some would wait for ever. A file lock is a queue.
            if self._turn_lock is None:
                self._turn_lock = lock_file(self.store.lock_path(self.number, "turn"), wait=True)
            else:
                self._turn_lock.acquire()
        try:
            for attempt in (1, 2):
                try:
                    connection = self._connect()
                    if self.store.path is not None:
                        if lasting != self._lasting:
                            connection.exec_driver_sql(f"PRAGMA synchronous={'FULL' if lasting else 'NORMAL'}")
                        connection.exec_driver_sql("BEGIN IMMEDIATE")
                    else:
                        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(self.number, 1)))
                        if not lasting:
                            connection.exec_driver_sql("SET LOCAL synchronous_commit=off")
                    self._lasting = lasting
                    self._length, self._head = self._known_end(list(connection.execute(self._last())))
                    self._begun_at = self._length, self._head
                    return
                except DBAPIError as wrong:
                    self._drop_connection()
                    if attempt == 2 or not wrong.connection_invalidated:
                        raise
        except BaseException:
            self._release_turn()
            raise

    def _end(self, *, keep: bool) -> None:
        self._in_turn = 0
        try:
            if self._connection is not None:
                if keep and self._told_others and self.store.path is None:
                    self._connection.execute(sa.select(sa.func.pg_notify(self._channel, "")))
                (commit if keep else rollback)(self.store, self._connection)
                if keep and self._appended:
                    self._note_end()
        except DBAPIError:
            # Whatever became of it: a connection that is closed holds nothing back, and no brain's lock either.
            self._drop_connection()
            if keep:
                raise
        finally:
            self._appended = self._told_others = False
            self._release_turn()

    def _note_end(self) -> None:
        """Note what was committed: here, if all before it was verified, and in the anchor."""
        if self._begun_at == self._verified:
            self._verified = self._length, self._head
        if self.store.anchor is not None:
            self.store.anchor.write(self.number, self._length, self._head)

    def _release_turn(self) -> None:
        if self._turn_lock is not None:
            self._turn_lock.unlock()

    def _checked(self, since: int) -> tuple[list[Line], str]:
        """The events from a position on and the head after them, once both were found to be as they were appended."""
        with self._thread:
            # Before the rows are read: what is appended in between must not put the anchor ahead of them.
            anchored = None if self.store.anchor is None or since else self.store.anchor.read(self.number)
            continues = since == self._verified[0]
            head = self._verified[1] if continues else START
            first = since if continues or not since else since - 1
            own = events.c.campaign == self.number, events.c.seq >= first
            rows = sa.select(events.c.seq, events.c.body, events.c.chain).where(*own).order_by(events.c.seq)
            found, end = self._fetch(rows, self._last())
            if first < since and found:
                head = found.pop(0).chain
            if not since:
                head = START
            read = checked_events(found, first=since, head=head, where=self)
            length, last = self._known_end(end)
            check_end(found, first=since, head=head, end=(length, last), where=self)
            if anchored is not None:
                anchored.check(found, self)
            if (continues or not since) and not self._appended:
                self._verified = length, last
            return read, last

    def _known_end(self, rows: list[Any]) -> tuple[int, str]:
        """How many events there are, and their head; an end before what was read already is refused."""
        length, head = end_of(rows, where=self)
        known, known_head = self._verified
        if length < known or (length == known and head != known_head):
            raise StoreError(f"{self}: events that were read before are gone or changed; {REMEDY}")
        return length, head

    def _fetch(self, *queries: sa.Select[Any]) -> list[list[Any]]:
        """Read, in a turn or outside, all as of one moment; a connection found dead is replaced, once."""
        with self._thread, clearly(self.store):
            self._check()
            if self._in_turn:
                return [list(self._here().execute(query)) for query in queries]
            for attempt in (1, 2):
                try:
                    connection = self._connect()
                    if len(queries) > 1:
                        connection.exec_driver_sql(self.store.snapshot)
                    answers = [list(connection.execute(query)) for query in queries]
                    rollback(self.store, connection, begun=len(queries) > 1)
                    return answers
                except DBAPIError as wrong:
                    self._drop_connection()
                    if attempt == 2 or not wrong.connection_invalidated:
                        raise
            raise AssertionError

    def _end_now(self) -> tuple[int, str]:
        """How many events there are, and their head."""
        return (self._length, self._head) if self._in_turn else end_of(self._fetch(self._last())[0], where=self)

    def _last(self) -> sa.Select[Any]:
        return sa.select(campaigns.c.length, campaigns.c.head).where(campaigns.c.id == self.number)

    def _drop_connection(self) -> None:
        if self._connection is not None:
            with suppress(DBAPIError):
                self._connection.invalidate()
            with suppress(DBAPIError):
                self._connection.close()
            if self._brain_lock is self._connection:
                self._brain_lock = None
            self._connection = None
