"""People, their rights and their sessions, in the same database as the campaigns.

Tokens and session ids are never stored: the caller hands over keyed hashes of them (*marks*).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError

from activecover.errors import InputError, StoreError
from activecover.store._schema import campaigns, people, rights, sessions

if TYPE_CHECKING:
    from activecover.store._sql import SqlStore


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A person as stored: the role on the whole server, if any, and the roles in single campaigns."""

    id: int
    name: str
    role: str | None
    mark: str
    rights: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as stored; ``person`` is None for one that was begun with the server's own token."""

    mark: str
    person: PersonRow | None
    token: str
    seen: float
    expires: float


class SqlPeople:
    """The people of a store; every change is one transaction.

    A removed person keeps a row without a token, so that an old copy of the list cannot bring them back
    and a server can tell "nobody any more" from "nobody yet".

    Examples
    --------
    >>> import tempfile
    >>> from activecover.store import SqlStore
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = SqlStore(f"{folder.name}/store.sqlite")
    >>> people = SqlPeople(store)
    >>> people.add("ann", "annotator", "hash of a token")
    >>> people.by_token("hash of a token").name, people.by_token("another")
    ('ann', None)
    >>> people.remove("ann")
    >>> people.all(), people.were_there()
    ([], True)
    >>> people.close(); store.close(); folder.cleanup()
    """

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        # Of its own: campaigns that are open each hold a connection of the store's pool.
        self._engine = store.engine()
        self._connection: sa.Connection | None = None
        self._lock = threading.Lock()

    # -- people ----------------------------------------------------------------------------------

    def all(self) -> list[PersonRow]:
        """Everybody with a token, by name."""
        return sorted(_people_of(self._read(_WITH_RIGHTS.where(people.c.mark.is_not(None)))), key=lambda one: one.name)

    def by_token(self, mark: str) -> PersonRow | None:
        """Whose token it is."""
        found = _people_of(self._read(_WITH_RIGHTS.where(people.c.mark == mark)))
        return found[0] if found else None

    def were_there(self, since: float | None = None) -> bool:
        """Whether somebody has a token, or had one (at any time, or since a moment)."""
        had = sa.true() if since is None else people.c.removed >= since
        query = sa.select(people.c.id).where(sa.or_(people.c.mark.is_not(None), had)).limit(1)
        return bool(self._read(query))

    def add(self, name: str, role: str | None, mark: str, inside: Mapping[str, str] | None = None) -> None:
        """Add a person, with rights in single campaigns if given."""
        taken = InputError(f"there is a {name!r} already: choose another name, or rotate their token")
        try:
            with self._writing() as here:
                row = here.execute(sa.select(people).where(people.c.name == name).with_for_update()).first()
                if row is not None and row.mark is not None:
                    raise taken
                values = {"name": name, "role": role, "mark": mark, "removed": None}
                if row is None:
                    here.execute(sa.insert(people).values(values))
                    number = self._number(here, name)
                else:
                    number = int(row.id)
                    here.execute(sa.update(people).where(people.c.id == number).values(values))
                for campaign, right in (inside or {}).items():
                    self._grant(here, number, campaign, right)
        except StoreError as wrong:
            # On PostgreSQL another process can add the same name between the two statements.
            if isinstance(wrong.__cause__, IntegrityError):
                raise taken from wrong
            raise

    def take_in(self, rows: Iterable[tuple[str, str, str]]) -> None:
        """Take in people of an older kind of list (name, role, mark); names that are known stay as they are."""
        with self._writing() as here:
            if self._store.path is None:
                here.execute(sa.text("SELECT pg_advisory_xact_lock(7, 8)"))
            known = set(here.scalars(sa.select(people.c.name)))
            new = [{"name": name, "role": role, "mark": mark} for name, role, mark in rows if name not in known]
            if new:
                here.execute(sa.insert(people), new)

    def remove(self, name: str, now: float = 0.0) -> None:
        """Remove a person with all rights and sessions."""
        with self._writing() as here:
            number = self._number(here, name)
            here.execute(sa.delete(rights).where(rights.c.person == number))
            here.execute(sa.delete(sessions).where(sessions.c.person == number))
            gone = {"mark": None, "role": None, "removed": now}
            here.execute(sa.update(people).where(people.c.id == number).values(gone))

    def set_mark(self, name: str, mark: str) -> None:
        """Give a person another token; sessions begun with the old one end."""
        with self._writing() as here:
            number = self._number(here, name)
            here.execute(sa.update(people).where(people.c.id == number).values(mark=mark))
            here.execute(sa.delete(sessions).where(sessions.c.person == number))

    def set_role(self, name: str, role: str | None) -> None:
        """Give a person another role on the whole server, or none."""
        with self._writing() as here:
            number = self._number(here, name)
            here.execute(sa.update(people).where(people.c.id == number).values(role=role))

    def grant(self, name: str, campaign: str, role: str | None) -> None:
        """Give a person a role in one campaign in place of an earlier one, or take it away."""
        with self._writing() as here:
            self._grant(here, self._number(here, name), campaign, role)

    # -- sessions --------------------------------------------------------------------------------

    def begin_session(self, session: SessionRow) -> None:
        """Store a new session, and forget those that are over."""
        with self._writing() as here:
            here.execute(sa.delete(sessions).where(sessions.c.expires <= session.seen))
            person = None if session.person is None else session.person.id
            row = {"mark": session.mark, "person": person, "token": session.token}
            here.execute(sa.insert(sessions).values({**row, "seen": session.seen, "expires": session.expires}))

    def session(self, mark: str) -> SessionRow | None:
        """A session, unless it was ended, or the token it was begun with has been changed or taken away."""
        columns = (sessions.c.mark.label("session"), sessions.c.token, sessions.c.seen, sessions.c.expires)
        query = sa.select(*columns, sessions.c.person, *_COLUMNS).select_from(sessions.outerjoin(_JOINED))
        rows = self._read(query.where(sessions.c.mark == mark))
        if not rows:
            return None
        first = rows[0]
        if first.person is not None and first.mark != first.token:
            return None
        person = None if first.person is None else _people_of(rows)[0]
        return SessionRow(first.session, person, first.token, first.seen, first.expires)

    def touch_session(self, mark: str, now: float) -> None:
        """Note that a session was used."""
        with self._writing() as here:
            here.execute(sa.update(sessions).where(sessions.c.mark == mark).values(seen=now))

    def end_session(self, mark: str) -> None:
        """End a session."""
        with self._writing() as here:
            here.execute(sa.delete(sessions).where(sessions.c.mark == mark))

    def close(self) -> None:
        """Let go of connections."""
        with self._lock:
            self._drop()
        self._engine.dispose()

    # -- inside ----------------------------------------------------------------------------------

    def _number(self, here: sa.Connection, name: str) -> int:
        query = sa.select(people.c.id).where(people.c.name == name, people.c.mark.is_not(None)).with_for_update()
        number = here.scalar(query)
        if number is None:
            raise InputError(f"there is no {name!r} among the people of this server")
        return int(number)

    @staticmethod
    def _grant(here: sa.Connection, person: int, campaign: str, role: str | None) -> None:
        number = here.scalar(sa.select(campaigns.c.id).where(campaigns.c.name == campaign))
        if number is None:
            raise InputError(f"there is no campaign {campaign!r}")
        here.execute(sa.delete(rights).where(rights.c.person == person, rights.c.campaign == number))
        if role is not None:
            here.execute(sa.insert(rights).values(person=person, campaign=number, role=role))

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with self._store.transaction(self._engine) as here:
            yield here

    def _read(self, query: sa.Select[Any]) -> Sequence[Any]:
        """Read on a connection that stays open: this happens with every request."""
        with self._lock, self._store.clearly():
            for attempt in (1, 2):
                try:
                    if self._connection is None:
                        self._connection = self._engine.connect()
                    rows = self._connection.execute(query).all()
                    self._connection.rollback()
                    return rows
                except DBAPIError as wrong:
                    self._drop()
                    if attempt == 2 or not wrong.connection_invalidated:
                        raise
            raise AssertionError

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(DBAPIError):
                self._connection.close()
            self._connection = None


_COLUMNS = (
    people.c.id, people.c.name, people.c.role, people.c.mark,
    rights.c.role.label("right"), campaigns.c.name.label("campaign"),
)  # fmt: skip
_JOINED = people.outerjoin(rights, rights.c.person == people.c.id).outerjoin(
    campaigns, campaigns.c.id == rights.c.campaign
)
_WITH_RIGHTS = sa.select(*_COLUMNS).select_from(_JOINED)


def _people_of(rows: Sequence[Any]) -> list[PersonRow]:
    """People, each with all of their rights, from one row per right."""
    found: dict[int, PersonRow] = {}
    for row in rows:
        person = found.setdefault(row.id, PersonRow(row.id, row.name, row.role, row.mark, {}))
        if row.campaign is not None:
            found[row.id] = PersonRow(row.id, row.name, row.role, row.mark, {**person.rights, row.campaign: row.right})
    return list(found.values())
