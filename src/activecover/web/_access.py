"""The sender of a request: tokens, sessions, and a pause for clients that guess."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any, Literal

from activecover.web._problems import Problem
from activecover.workspace import OWNER, People, Person

Scope = MutableMapping[str, Any]

#: The number of wrong tokens without a pause; each further one doubles the pause, up to the longest, in seconds.
_FREE, _LONGEST_PAUSE = 10, 60.0
#: A client that has not failed for this long starts afresh.
_FORGIVEN = 300.0
_MOST_CLIENTS = 10_000


@dataclass(frozen=True, slots=True)
class Door:
    """How a server may be entered besides by those who have a token of their own.

    Parameters
    ----------
    token : str, optional
        The mark (see :class:`activecover.workspace.People`) of a token that makes an owner of anyone.
    open_since : float, optional
        Since when everyone is an owner, without any token. This ends for good when somebody is let in.
    """

    token: str | None = None
    open_since: float | None = None


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a request."""

    kind: Literal["none", "token", "session"]
    value: str = ""


class NotKnown(Problem):
    """A request from nobody that the server knows; ``wait`` is how many seconds to wait before the next."""

    def __init__(self, text: str, status: int = 401, wait: int = 0) -> None:
        super().__init__(text, status, "token")
        self.wait = wait


class Access:
    """Finds people by their token or session.

    A good token is always let in; only wrong ones are counted, for each client by itself.

    Parameters
    ----------
    people : People
        Those who have a token of their own.
    door : Door
        Who else may enter.
    """

    def __init__(self, people: People, door: Door) -> None:
        self._people = people
        self._door = door
        self._throttle = Throttle()

    def person(self, client: str, given: Credentials) -> Person:
        """The person who sent a request from an address."""
        found = self.known(given)
        if found is not None:
            return found
        if self._is_open():
            return OWNER
        if given.kind == "none":
            raise NotKnown("this server wants a token: sign in, or send Authorization: Bearer …")
        self._refuse(client)
        if given.kind == "session":
            raise NotKnown("your session has ended: sign in again with your token")
        raise NotKnown("this token is not valid")

    def known(self, given: Credentials) -> Person | None:
        """The person with this token or session, if any."""
        if given.kind == "token":
            return self._by_token(given.value)
        if given.kind == "session":
            return self._people.in_session(given.value, self._door.token)
        return None

    def sign_in(self, client: str, token: str, *, by_link: bool = False) -> str:
        """Begin a session with a token; a link signs in with the server's own token only."""
        # A link to somebody's own token could sign others in as them without their noticing.
        own = self._door.token
        known = not by_link or (own is not None and self._people.is_mark_of(own, token))
        session = self._people.begin_session(token, self._door.token) if known else None
        if session is None:
            self._refuse(client)
            raise NotKnown("this token is not valid")
        return session

    def sign_out(self, given: Credentials) -> None:
        """End the session that a request brings along, on the server."""
        if given.kind == "session":
            self._people.end_session(given.value)

    def _by_token(self, token: str) -> Person | None:
        own = self._door.token
        return OWNER if own is not None and self._people.is_mark_of(own, token) else self._people.known_by(token)

    def _is_open(self) -> bool:
        since = self._door.open_since
        return since is not None and not self._people.were_there(since)

    def _refuse(self, client: str) -> None:
        """Count a failure; raise if there were too many."""
        wait = self._throttle.failed(client)
        if wait > 0:
            raise NotKnown(f"too many wrong tokens from here: wait {wait} seconds", 429, wait)


class Throttle:
    """How long clients have to wait that failed too often.

    Examples
    --------
    >>> throttle = Throttle()
    >>> [throttle.failed("10.0.0.1") for _ in range(13)][8:], throttle.failed("10.0.0.2")
    ([0, 0, 1, 2, 4], 0)
    """

    def __init__(self) -> None:
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._lock = threading.Lock()

    def failed(self, client: str) -> int:
        """Count one failure; the seconds that this client has to wait now."""
        now = time.monotonic()
        with self._lock:
            count, last = self._failures.pop(_network_of(client), (0, now))
            count = 1 if now - last > _FORGIVEN else count + 1
            self._failures[_network_of(client)] = (count, now)
            if len(self._failures) > _MOST_CLIENTS:
                self._failures.popitem(last=False)
        return 0 if count <= _FREE else int(min(_LONGEST_PAUSE, 2.0 ** min(count - _FREE - 1, 10)))


def credentials_of(scope: Scope) -> Credentials:
    """What a request brings along; a token in a header goes before a session."""
    headers = {key.lower(): value.decode("latin-1") for key, value in scope["headers"]}
    kind, _, token = headers.get(b"authorization", "").partition(" ")
    if kind:
        return Credentials("token", token.strip() if kind.lower() == "bearer" else "")
    try:
        cookie = SimpleCookie(headers.get(b"cookie", "")).get(cookie_name(scope))
    except CookieError:
        return Credentials("none")
    return Credentials("none") if cookie is None else Credentials("session", cookie.value)


def cookie_name(scope: Scope) -> str:
    """The cookie that carries a session; servers on other ports of a machine have cookies of their own."""
    return f"activecover_{(scope.get('server') or ('', 0))[1]}"


def client_of(scope: Scope) -> str:
    """The address that a request comes from: a named proxy's visitor, or the other end of the connection."""
    return str((scope.get("client") or ("?", 0))[0])


def _network_of(client: str) -> str:
    """One client as far as anyone can tell: of IPv6 everybody has a whole network."""
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return client
