"""Campaigns in a database: SQLite in one file for one machine, PostgreSQL for teams."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError

from activecover.errors import InputError, StoreError
from activecover.store._anchor import Anchor
from activecover.store._engine import clearly, commit, engine_of, rollback
from activecover.store._local import lock_file
from activecover.store._names import check_name
from activecover.store._schema import campaigns, events, metadata, prepare, ready, revision, rights, wanted
from activecover.store._sealed import REMEDY, is_sealed, seal_of
from activecover.store._sql_log import SqlLog


class SqlStore:
    """Campaigns by name in one database.

    Parameters
    ----------
    url : str or path
        The file of an SQLite database (made if it does not exist), or ``postgresql://…``.
    sound : callable, optional
        Whether the settings kept with a campaign's name are plausible; others are never handed out.

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
        #: Begins a transaction that sees one moment.
        self.snapshot = "BEGIN" if self.path is not None else "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
        self._engine = engine_of(self.url, self.path)
        self._logs: list[SqlLog] = []
        try:
            with clearly(self), self._alone():
                self._open_tables()
        except BaseException:
            self.close()
            raise

    @property
    def durable(self) -> str:
        """The settings of the database that make acknowledged labels survive a crash."""
        with clearly(self), self._engine.connect() as connection:
            if self.path is None:
                return "synchronous_commit=" + str(connection.scalar(sa.text("SHOW synchronous_commit")))
            mode = connection.scalar(sa.text("PRAGMA journal_mode"))
            return f"journal_mode={mode}, synchronous={connection.scalar(sa.text('PRAGMA synchronous'))}"

    def names(self) -> list[str]:
        """The campaigns, in alphabetical order."""
        with clearly(self), self._engine.connect() as connection:
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
            with clearly(self), self._transaction() as connection:
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
        with clearly(self), self._transaction() as connection:
            connection.execute(sa.update(campaigns).where(campaigns.c.name == name).values(row))

    def remove(self, name: str) -> None:
        """Remove a campaign that was never begun in earnest, or that has been archived."""
        with clearly(self):
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
        with clearly(self), self._engine.connect() as connection:
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

    def _row(self, name: str) -> sa.Row[int, str, str, str]:
        """The row of a campaign, checked against its seal."""
        query = sa.select(campaigns.c.id, campaigns.c.name, campaigns.c.about, campaigns.c.seal)
        with clearly(self), self._engine.connect() as connection:
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

    def connect(self) -> sa.Connection:
        """A connection."""
        return self._engine.connect()

    def engine(self) -> sa.Engine:
        """Another way to the same database, with connections of its own; the caller disposes of it."""
        return engine_of(self.url, self.path)

    @contextmanager
    def clearly(self) -> Iterator[None]:
        """Turn an error of the database into one clear line."""
        with clearly(self):
            yield

    @contextmanager
    def transaction(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        """A transaction on another way to this database; what goes wrong is one line."""
        with clearly(self), self._transaction(engine) as connection:
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
                    rollback(self, connection)
                raise
            commit(self, connection)

    def __enter__(self) -> SqlStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self.path) if self.path is not None else self._engine.url.render_as_string(hide_password=True)
