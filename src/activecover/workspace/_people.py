"""The people who may use a server: their roles, their tokens and their sessions."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from activecover.errors import InputError, StoreError
from activecover.files import sync_folder
from activecover.workspace._keys import secret_of

if TYPE_CHECKING:
    from activecover.store import PersonRow, SqlPeople
    from activecover.workspace._workspace import Workspace

Role = Literal["reader", "annotator", "adjudicator", "owner"]
#: From those who may do least to those who may do everything. Annotators label and see nothing else, so that what
#: others answered does not sway them: they may do more than readers, and see less.
ROLES: tuple[Role, ...] = get_args(Role)
_LOOKING: tuple[Role | None, ...] = ("reader", "adjudicator", "owner")
_LONGEST_NAME = 60
#: A session ends when it was not used for so long, or at the latest after so long, in seconds.
IDLE, LIFETIME = 12 * 3600.0, 7 * 24 * 3600.0
#: How often it is noted that a session is in use.
_NOTED = 300.0
_OLD_MARK = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who has signed in; one without a name may act under any.

    Parameters
    ----------
    name : str or None
        Their name.
    role : str or None
        What they may do everywhere; after :meth:`inside`, what they may do in that campaign.
    rights : mapping
        What they may do in single campaigns.
    """

    name: str | None
    role: Role | None
    rights: Mapping[str, Role] = field(default_factory=dict)

    def may(self, role: Role) -> bool:
        """Whether they have at least this role.

        Examples
        --------
        >>> Person("ann", "annotator").may("adjudicator"), Person("ann", None).may("reader")
        (False, False)
        """
        return self.role is not None and ROLES.index(self.role) >= ROLES.index(role)

    @property
    def may_look(self) -> bool:
        """Whether they may see how a campaign stands and what happened in it.

        Examples
        --------
        >>> [role for role in ROLES if Person("ann", role).may_look]
        ['reader', 'adjudicator', 'owner']
        """
        return self.role in _LOOKING

    def inside(self, campaign: str) -> Person:
        """The same person in one campaign, with the higher of their two roles; without a role it is not for them.

        Examples
        --------
        >>> ann = Person("ann", None, {"mail": "annotator"})
        >>> ann.inside("mail").role, ann.inside("other").role
        ('annotator', None)
        """
        given = [role for role in (self.role, self.rights.get(campaign)) if role is not None]
        return Person(self.name, max(given, key=ROLES.index) if given else None)


class People:
    """The people of a home, kept in its store; neither tokens nor session ids are.

    Of a token only HMAC-SHA256, with a secret of the home, of its SHA-256 is kept: a copy of the store without the
    home's key gives nobody a way in.

    Parameters
    ----------
    home : Workspace
        The home; its store is opened when first needed.

    Examples
    --------
    >>> import tempfile
    >>> from activecover.workspace import Workspace
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Workspace(folder.name) as home:
    ...     token = home.people.add("ann", "annotator")
    ...     home.people.known_by(token), home.people.known_by("a guess")
    (Person(name='ann', role='annotator', rights={}), None)
    >>> folder.cleanup()
    """

    def __init__(self, home: Workspace) -> None:
        self._home = home

    def __len__(self) -> int:
        return len(self._rows.all())

    def all(self) -> list[Person]:
        """Everyone, by name."""
        return [_person(row) for row in self._rows.all()]

    def add(self, name: str, role: str | None, inside: Mapping[str, str] | None = None) -> str:
        """Let someone in; their token, which is not kept and cannot be shown again.

        ``role`` is what they may do everywhere, if anything; ``inside`` what they may do in single campaigns.
        """
        for given in (role, *(inside or {}).values()):
            _check_role(given)
        if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
            raise InputError(f"{name!r} is no name for a person: use up to {_LONGEST_NAME} printable characters")
        token = new_token()
        self._rows.add(name, role, self.mark(token), inside)
        return token

    def remove(self, name: str) -> None:
        """Let someone in no longer, and end their sessions."""
        self._rows.remove(name, time.time())

    def rotate(self, name: str) -> str:
        """Give someone a new token in place of the old one, and end their sessions."""
        token = new_token()
        self._rows.set_mark(name, self.mark(token))
        return token

    def set_role(self, name: str, role: str | None) -> None:
        """Say what someone may do everywhere; None for nothing but what they were granted in single campaigns."""
        _check_role(role)
        self._rows.set_role(name, role)

    def grant(self, name: str, campaign: str, role: str) -> None:
        """Say what someone may do in one campaign."""
        _check_role(role)
        self._rows.grant(name, campaign, role)

    def revoke(self, name: str, campaign: str) -> None:
        """Take away what someone was granted in one campaign."""
        self._rows.grant(name, campaign, None)

    def were_there(self, since: float | None = None) -> bool:
        """Whether anyone has a token, or had one: at any time, or since a moment."""
        return self._rows.were_there(since)

    # -- tokens and sessions ---------------------------------------------------------------------

    def mark(self, token: str) -> str:
        """What is kept of a token."""
        return self._keyed(hashlib.sha256(token.encode("utf-8", "replace")).hexdigest())

    def is_mark_of(self, mark: str, token: str) -> bool:
        """Whether this is what would be kept of a token."""
        return hmac.compare_digest(mark, self.mark(token))

    def known_by(self, token: str) -> Person | None:
        """Whose token it is."""
        mark = self.mark(token)
        row = self._rows.by_token(mark)
        # The store looks marks up by an index; the comparison of what it found takes the same time for all.
        return _person(row) if row is not None and hmac.compare_digest(row.mark, mark) else None

    def begin_session(self, token: str, server: str | None = None) -> str | None:
        """Begin a session with a token; None if nobody has that token.

        ``server`` is the mark of the server's own token, which makes an owner without a name.
        """
        from activecover.store import SessionRow

        mark = self.mark(token)
        row = self._rows.by_token(mark)
        if row is None and (server is None or not hmac.compare_digest(server, mark)):
            return None
        session, now = secrets.token_urlsafe(32), time.time()
        self._rows.begin_session(SessionRow(self._session_mark(session), row, mark, now, now + LIFETIME))
        return session

    def in_session(self, session: str, server: str | None = None) -> Person | None:
        """Whose session it is, if it is still good."""
        mark, now = self._session_mark(session), time.time()
        found = self._rows.session(mark)
        if found is None or not hmac.compare_digest(found.mark, mark):
            return None
        if now >= found.expires or now - found.seen >= IDLE:
            return None
        if found.person is None and (server is None or not hmac.compare_digest(found.token, server)):
            return None
        if now - found.seen >= _NOTED:
            with suppress(StoreError):
                self._rows.touch_session(mark, now)
        return OWNER if found.person is None else _person(found.person)

    def end_session(self, session: str) -> None:
        """Sign out."""
        self._rows.end_session(self._session_mark(session))

    def close(self) -> None:
        """Let go of the store."""
        rows = self.__dict__.pop("_rows", None)
        if rows is not None:
            rows.close()

    # -- inside ----------------------------------------------------------------------------------

    @cached_property
    def _secret(self) -> bytes:
        return secret_of(self._home.folder)

    @cached_property
    def _rows(self) -> SqlPeople:
        from activecover.store import SqlPeople

        rows = SqlPeople(self._home.store)
        try:
            self._take_in_file(rows, self._home.folder / "people.json")
        except BaseException:
            rows.close()
            raise
        return rows

    def _keyed(self, text: str) -> str:
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()

    def _session_mark(self, session: str) -> str:
        # In other words than a token's, so that one is never taken for the other.
        return self._keyed("session " + hashlib.sha256(session.encode("utf-8", "replace")).hexdigest())

    def _take_in_file(self, rows: SqlPeople, path: Path) -> None:
        """Take in the list that earlier versions kept in a file, once; it held plain hashes and is removed."""
        try:
            told = json.loads(path.read_bytes())
            rows.take_in([_old_entry(self._keyed(mark), mark, about) for mark, about in told.items()])
            path.unlink(missing_ok=True)
            sync_folder(path.parent)
        except FileNotFoundError:
            return
        except StoreError:
            raise
        except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as wrong:
            reason = " ".join(str(wrong).split())[:100]
            raise StoreError(f"{path}: damaged ({reason}); restore it from a copy, or remove it") from wrong


#: Anyone with the server's own token.
OWNER = Person(None, "owner")


def new_token() -> str:
    """A token that cannot be guessed: 192 random bits."""
    return secrets.token_urlsafe(24)


def _check_role(role: str | None) -> None:
    if role is not None and role not in ROLES:
        raise InputError(f"role {role!r}: choose {', '.join(reversed(ROLES))}")


def _person(row: PersonRow) -> Person:
    """A person from the store, whose roles are none but ours."""
    for role in (row.role, *row.rights.values()):
        if role is not None and role not in ROLES:
            raise StoreError(f"the store has a person with the unknown role {role!r}: restore it from a copy")
    rights: Mapping[str, Role] = row.rights  # type: ignore[assignment]
    return Person(row.name, row.role, rights)  # type: ignore[arg-type]


def _old_entry(keyed: str, mark: str, about: Mapping[str, str]) -> tuple[str, str, str]:
    name, role = about["name"], about["role"]
    if not _OLD_MARK.fullmatch(mark) or not isinstance(name, str) or role not in ROLES:
        raise ValueError("not a list of people")
    return name, role, keyed
