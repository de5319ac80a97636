"""Events in a database: SQLite in one file for one machine, PostgreSQL for teams."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from activecover.errors import InputError, StoreError
from activecover.files import open_private
from activecover.store._anchor import Anchor
from activecover.store._chain import START
from activecover.store._local import check_local, lock_file
from activecover.store._log import Event
from activecover.store._names import check_name
from activecover.store._schema import campaigns, events, metadata, prepare, ready, revision, rights, wanted
from activecover.store._sealed import (
    REMEDY,
    check_end,
    checked_events,
    end_of,
    is_sealed,
    proposal_of,
    seal_of,
    sealed_proposal,
    sealed_row,
)
from activecover.store._shared import Ready, SharedLog

#: How long to wait for a server that has gone away before giving up.
_PATIENCE = 30.0
#: More proposals than anybody asks for at once.
_MOST_WANTED = 1_000_000


class SqlStore:
    """Campaigns by name in one database.

    Parameters
    ----------
    url : str or path
        The file of an SQLite database (made where it is not there), or ``postgresql://…``.
    sound : callable, optional
        Whether what was kept with a campaign's name can be; what cannot is never handed out.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = SqlStore(f"{folder.name}/store.sqlite")
    >>> log = store.create("first")
    >>> log.append([{"event": "told", "id": "a"}])
    [{'seq': 0, 'event': 'told', 'id': 'a'}]
    >>> store.names()
    ['first']
    >>> store.close(); folder.cleanup()
    """

    def __init__(self, url: str | Path, sound: Callable[[str, Mapping[str, Any]], bool] | None = None) -> None:
        self.url = str(url)
        self._sound = sound
        self.path = None if "://" in self.url else Path(self.url)
        self.anchor = None if self.path is None else Anchor(self.path)
        #: Begins a transaction that sees everything as of one moment.
        self.snapshot = "BEGIN" if self.path is not None else "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
        self._engine = _engine_of(self.url, self.path)
        self._logs: list[SqlLog] = []
        try:
            with _clearly(self), self._alone():
                self._open_tables()
        except BaseException:
            self.close()
            raise

    @property
    def durable(self) -> str:
        """The settings by which what is acknowledged survives a crash, as the database says them."""
        with _clearly(self), self._engine.connect() as connection:
            if self.path is None:
                return "synchronous_commit=" + str(connection.scalar(sa.text("SHOW synchronous_commit")))
            mode = connection.scalar(sa.text("PRAGMA journal_mode"))
            return f"journal_mode={mode}, synchronous={connection.scalar(sa.text('PRAGMA synchronous'))}"

    def names(self) -> list[str]:
        """The campaigns, in alphabetical order."""
        with _clearly(self), self._engine.connect() as connection:
            names = list(connection.scalars(sa.select(campaigns.c.name).order_by(campaigns.c.name)))
        if not all(isinstance(name, str) for name in names):
            raise StoreError(f"{self}: the name of a campaign is damaged; {REMEDY}")
        return names

    def create(self, name: str, about: Mapping[str, Any] | None = None) -> SqlLog:
        """Begin a campaign; ``about`` is kept with its name."""
        check_name(name)
        kept = json.dumps(dict(about or {}))
        row = {"name": name, "about": kept, "created": time.time(), "seal": seal_of(name, kept)}
        taken = InputError(f"{self}: there is a campaign {name!r} already; choose another name")
        try:
            with _clearly(self), self._transaction() as connection:
                if connection.scalar(sa.select(campaigns.c.id).where(campaigns.c.name == name)) is not None:
                    raise taken
                added = connection.execute(sa.insert(campaigns).values(row)).inserted_primary_key
                if self.anchor is not None and added is not None:
                    # A removed campaign may have had this number.
                    self.anchor.forget(int(added[0]))
        except StoreError as wrong:
            # Someone else was faster by a moment.
            if isinstance(wrong.__cause__, IntegrityError):
                raise taken from wrong
            raise
        return self.open(name)

    def open(self, name: str) -> SqlLog:
        """The log of a campaign."""
        log = SqlLog(self, self._row(name).id, name)
        self._logs.append(log)
        anchored = None if self.anchor is None else self.anchor.read(log.number)
        if anchored is not None:
            anchored.check_length(len(log), log)
        return log

    def about(self, name: str) -> dict[str, Any]:
        """What was kept with a campaign's name."""
        row = self._row(name)
        answer: dict[str, Any] = json.loads(row.about)
        if self._sound is not None and not self._sound(name, answer):
            raise StoreError(f"{self} ({name}): its settings cannot be: somebody changed them; {REMEDY}")
        return answer

    def set_about(self, name: str, about: Mapping[str, Any]) -> None:
        """Keep something else with a campaign's name."""
        kept = json.dumps(dict(about))
        row = {"about": kept, "seal": seal_of(name, kept)}
        with _clearly(self), self._transaction() as connection:
            connection.execute(sa.update(campaigns).where(campaigns.c.name == name).values(row))

    def remove(self, name: str) -> None:
        """Remove a campaign that was never begun in earnest, or that has been archived."""
        with _clearly(self):
            number = self._row(name).id
            with self._nobody_appends(number), self._transaction() as connection:
                for table in (ready, wanted, events, rights):
                    connection.execute(sa.delete(table).where(table.c.campaign == number))
                connection.execute(sa.delete(campaigns).where(campaigns.c.id == number))
                if self.anchor is not None:
                    # Before the commit: a campaign that is there and not anchored is fine, the reverse is a loss.
                    self.anchor.forget(number)

    def values(self) -> Iterator[str | bytes]:
        """Every text that the store holds, of all campaigns."""
        with _clearly(self), self._engine.connect() as connection:
            for table in metadata.sorted_tables:
                rows = connection.execution_options(yield_per=1000).execute(sa.select(table))
                yield from (value for row in rows for value in row if isinstance(value, str | bytes))

    def close(self) -> None:
        """Let go of connections and locks."""
        for log in self._logs:
            log.close()
        self._engine.dispose()

    def _open_tables(self) -> None:
        """Make or migrate the tables, and compare the campaigns with those that were there before."""
        anchored = {} if self.anchor is None else self.anchor.lengths()
        with self._engine.connect() as connection:
            if self.anchor is not None and anchored and revision(connection) is None:
                raise self.anchor.missing("its tables are gone", self)
            prepare(connection, self)
            lost = anchored.keys() - set(connection.scalars(sa.select(campaigns.c.id)))
            connection.rollback()
        if lost and self.anchor is not None:
            # Once more, while nobody can remove one: it may have gone between the two looks.
            with self._transaction() as connection:
                anchored = self.anchor.lengths()
                lost = anchored.keys() - set(connection.scalars(sa.select(campaigns.c.id)))
        if lost and self.anchor is not None:
            raise self.anchor.missing(f"campaign number {min(lost)} is gone", self)

    def _row(self, name: str) -> Any:
        """The row of a campaign, checked against its seal."""
        query = sa.select(campaigns.c.id, campaigns.c.name, campaigns.c.about, campaigns.c.seal)
        with _clearly(self), self._engine.connect() as connection:
            row = connection.execute(query.where(campaigns.c.name == name)).first()
            every = [] if row is not None else list(connection.execute(query))
        if row is not None and is_sealed(row):
            return row
        if row is not None:
            raise StoreError(f"{self} ({name}): its name or settings were changed or damaged; {REMEDY}")
        if not all(map(is_sealed, every)):
            raise StoreError(f"{self}: there is no campaign {name!r}, and the row of another is damaged; {REMEDY}")
        known = ", ".join(sorted(other.name for other in every)) or "none"
        raise InputError(f"{self}: there is no campaign {name!r} (there are: {known})")

    @contextmanager
    def _nobody_appends(self, number: int) -> Iterator[None]:
        """While a campaign in an SQLite file is removed: what was appended is noted just after its transaction."""
        if self.path is None:
            yield
            return
        lock = lock_file(self.lock_path(number, "turn"), wait=True)
        assert lock is not None
        try:
            yield
        finally:
            lock.release()

    def lock_path(self, number: int, what: str) -> Path:
        """The file of one of a campaign's locks."""
        assert self.path is not None
        return self.path.with_name(f"{self.path.name}.{number}.{what}")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While an SQLite file is made: changing it to a write-ahead log does not wait for others, it fails."""
        if self.path is None:
            yield
            return
        lock = lock_file(self.path.with_name(f"{self.path.name}.open"), wait=True)
        assert lock is not None
        try:
            yield
        finally:
            lock.release()

    def engine(self) -> sa.Engine:
        """Another way to the same database, with connections of its own; the caller disposes of it."""
        return _engine_of(self.url, self.path)

    @contextmanager
    def clearly(self) -> Iterator[None]:
        """What the database says in its own words, in one line of ours."""
        with _clearly(self):
            yield

    @contextmanager
    def transaction(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        """A transaction on another way to this database; what goes wrong is one line."""
        with _clearly(self), self._transaction(engine) as connection:
            yield connection

    @contextmanager
    def _transaction(self, engine: sa.Engine | None = None) -> Iterator[sa.Connection]:
        """A connection whose changes are all kept at the end, or none of them."""
        with (engine or self._engine).connect() as connection:
            if self.path is not None:
                # SQLAlchemy begins nothing here, as turns begin and end themselves.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                with suppress(DBAPIError):
                    _rollback(self, connection)
                raise
            _commit(self, connection)

    def __enter__(self) -> SqlStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self.path) if self.path is not None else self._engine.url.render_as_string(hide_password=True)


class SqlLog(SharedLog):
    """The events of one campaign in a database; several processes may append.

    Who wants to decide on what the log says takes a :meth:`turn`: nobody else appends meanwhile, and what
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

    def append(self, new: Sequence[Mapping[str, Any]]) -> list[Event]:
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
                self._appended = True
            return added

    def read(self, since: int = 0) -> Iterator[Event]:
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
            with _clearly(self.store):
                self._begin(lasting)
            self._in_turn = 1
            try:
                with _clearly(self.store):
                    yield
            except BaseException:
                self._end(commit=False)
                raise
            with _clearly(self.store, saving=True):
                self._end(commit=True)

    # -- the brain and its proposals -------------------------------------------------------------

    def try_brain(self) -> bool:
        """Become the one process that runs the learner, if nobody is; whether we are."""
        with self._thread:
            self._check()
            if self.store.path is not None:
                if self._brain_lock is None:
                    self._brain_lock = lock_file(self.store.lock_path(self.number, "brain"), wait=False)
                return self._brain_lock is not None
            with _clearly(self.store):
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
            here = self._here()
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
            found = list(map(proposal_of, _rows_if_text(here, query)))
            taken = [one for one in found if one is not None]
            own = ready.c.campaign == self.number
            if len(taken) < len(found):
                # Damaged or changed: the brain makes all of them anew.
                here.execute(sa.delete(ready).where(own))
                return []
            if taken:
                here.execute(sa.delete(ready).where(own, ready.c.item.in_([one.id for one in taken])))
            return taken

    def want(self, who: str, count: int) -> None:
        """Let the brain know that someone waits for proposals."""
        with self.turn(lasting=False):
            here = self._here()
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

    def close(self) -> None:
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
        """The connection of this log; one that was lost is made anew, and with it goes the brain's lock."""
        if self._connection is not None and self._connection.invalidated:
            # It would come back by itself, but without the locks that it had.
            self._drop_connection()
        if self._connection is None:
            deadline = time.monotonic() + _PATIENCE
            while self._connection is None:
                try:
                    self._connection = self.store._engine.connect()
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

    def _end(self, *, commit: bool) -> None:
        self._in_turn = 0
        try:
            if self._connection is not None:
                (_commit if commit else _rollback)(self.store, self._connection)
                if commit and self._appended:
                    self._note_end()
        except DBAPIError:
            # Whatever became of it: a connection that is closed holds nothing back, and no brain's lock either.
            self._drop_connection()
            if commit:
                raise
        finally:
            self._appended = False
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

    def _checked(self, since: int) -> tuple[list[Event], str]:
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
        with self._thread, _clearly(self.store):
            self._check()
            if self._in_turn:
                return [list(self._here().execute(query)) for query in queries]
            for attempt in (1, 2):
                try:
                    connection = self._connect()
                    if len(queries) > 1:
                        connection.exec_driver_sql(self.store.snapshot)
                    answers = [list(connection.execute(query)) for query in queries]
                    _rollback(self.store, connection, begun=len(queries) > 1)
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


def _rows_if_text(connection: sa.Connection, query: sa.Select[Any]) -> list[Any]:
    """The rows of a query; a single None where SQLite finds bytes in them that are no text."""
    try:
        return list(connection.execute(query))
    except OperationalError as wrong:
        if isinstance(wrong.orig, sqlite3.OperationalError) and "Could not decode" in str(wrong.orig):
            return [None]
        raise


def _commit(store: SqlStore, connection: sa.Connection) -> None:
    if store.path is not None:
        connection.exec_driver_sql("COMMIT")
    connection.commit()


def _rollback(store: SqlStore, connection: sa.Connection, begun: bool = True) -> None:
    if store.path is not None and begun:
        connection.exec_driver_sql("ROLLBACK")
    connection.rollback()


def _engine_of(url: str, path: Path | None) -> sa.Engine:
    if path is None:
        if url.startswith("postgresql://"):
            url = "postgresql+psycopg://" + url.removeprefix("postgresql://")
        try:
            engine = sa.create_engine(url, pool_size=2, max_overflow=4, isolation_level="READ COMMITTED")
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError) as wrong:
            raise InputError(f"{url!r} is no store: give a file for SQLite, or postgresql://…") from wrong
        except ModuleNotFoundError as wrong:
            raise InputError("PostgreSQL needs an extra: pip install 'activecover[postgres]'") from wrong
        sa.event.listen(engine, "connect", _set_up_postgresql)
        return engine
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file for the store")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; create it first")
    check_local(path)
    if not path.exists():
        # SQLite would make it for everybody to read; its other files take their rights from it.
        with suppress(OSError):
            os.close(open_private(path, os.O_RDWR | os.O_CREAT))
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        # Our own BEGIN: the driver's would come too late to keep others from writing in between.
        connect_args={"isolation_level": None, "timeout": 60, "check_same_thread": False},
        poolclass=sa.pool.NullPool,
    )
    sa.event.listen(engine, "connect", _set_up_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    for setting in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "busy_timeout=60000"):
        connection.execute(f"PRAGMA {setting}")


def _set_up_postgresql(connection: Any, _record: Any) -> None:
    """A server that is set to forget is told to keep what it acknowledges; a stricter setting stays."""
    cursor = connection.cursor()
    cursor.execute(
        "SELECT set_config('synchronous_commit', 'on', false) "
        "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
    )
    cursor.close()
    connection.commit()


@contextmanager
def _clearly(store: SqlStore, saving: bool = False) -> Iterator[None]:
    """What the database says in its own words is said in ours, in one line."""
    try:
        yield
    except UnicodeDecodeError as wrong:
        if store.path is None:
            raise
        # SQLite names what is damaged, and Python cannot read the name.
        raise StoreError(f"{store}: its tables are damaged; {REMEDY}") from wrong
    except DBAPIError as wrong:
        reason = str(wrong.orig).strip().splitlines()[0] if wrong.orig is not None else str(wrong)
        what = "the label was not saved" if saving else "the store cannot be used"
        if saving and wrong.connection_invalidated:
            what = "the connection broke while saving: tell it again, which is safe"
        raise StoreError(f"{store}: {what} ({reason}); all that was acknowledged before is safe") from wrong
