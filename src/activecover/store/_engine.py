"""Connections to SQLite and PostgreSQL, and their errors in one line."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, OperationalError

from activecover.errors import InputError, StoreError
from activecover.files import open_private
from activecover.store._local import check_local
from activecover.store._sealed import REMEDY


class Store(Protocol):
    """A store, as far as its connections need to know it."""

    path: Path | None


def rows_if_text(connection: sa.Connection, query: sa.Select[Any]) -> list[Any]:
    """The rows of a query; a single None where SQLite finds bytes in them that are no text."""
    try:
        return list(connection.execute(query))
    except OperationalError as wrong:
        if isinstance(wrong.orig, sqlite3.OperationalError) and "Could not decode" in str(wrong.orig):
            return [None]
        raise


def commit(store: Store, connection: sa.Connection) -> None:
    if store.path is not None:
        connection.exec_driver_sql("COMMIT")
    connection.commit()


def rollback(store: Store, connection: sa.Connection, begun: bool = True) -> None:
    if store.path is not None and begun:
        connection.exec_driver_sql("ROLLBACK")
    connection.rollback()


def engine_of(url: str, path: Path | None) -> sa.Engine:
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


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    for setting in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "busy_timeout=60000"):
        connection.execute(f"PRAGMA {setting}")


def _set_up_postgresql(connection: DBAPIConnection, _record: object) -> None:
    """A server that is set to forget is told to keep what it acknowledges; a stricter setting stays."""
    cursor = connection.cursor()
    cursor.execute(
        "SELECT set_config('synchronous_commit', 'on', false) "
        "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
    )
    cursor.close()
    connection.commit()


@contextmanager
def clearly(store: Store, saving: bool = False) -> Iterator[None]:
    """Turn an error of the database into one clear line."""
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
