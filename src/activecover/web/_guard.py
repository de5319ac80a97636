"""What stands before every request: who may ask, from where, how much, and under which name."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread

from activecover.errors import ActiveCoverError
from activecover.web._access import Access, NotKnown, Scope, client_of, cookie_name, credentials_of
from activecover.web._metrics import Metrics
from activecover.web._problems import MEDIA_TYPE, BodyProblem, body_of, said_of, sort

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Headers = Sequence[tuple[bytes, bytes]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("activecover.web")

#: Nothing is loaded from another host, and only our own files run in the page.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: A template may show and style, and nothing else: no scripts, no forms, no requests.
FRAME_POLICY = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'"
#: A body that is not an upload is never larger, and all that are being read together are never larger than four.
LARGEST_BODY = 16 << 20
_BODIES_AT_ONCE = 4 * LARGEST_BODY
LARGEST_UPLOAD = 4 << 30
#: Seconds that an answer takes longer for a client that has sent too many wrong tokens.
_SLOWED = 0.1
#: Threads that look up tokens and sessions, apart from those that answer requests.
_LOOKING_UP = 4
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Refused(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, text: str, kind: str = "refused", headers: Headers = ()) -> None:
        super().__init__(text)
        self.status, self.text, self.kind, self.headers = status, text, kind, headers


class Guard:
    """ASGI middleware around the whole app.

    Parameters
    ----------
    app : ASGI app
        What is guarded.
    metrics : Metrics
        Where requests are counted.
    access : Access
        Who may ask for anything below ``/api`` and for the metrics.
    hosts : set of str, optional
        Names under which the server may be addressed; a page elsewhere cannot reach it under a name of
        its own. Any where not given.
    largest_upload : int
        Bytes that a file may have.
    """

    def __init__(
        self,
        app: App,
        metrics: Metrics,
        access: Access,
        hosts: set[str] | None = None,
        largest_upload: int = LARGEST_UPLOAD,
    ) -> None:
        self.app = app
        self.metrics = metrics
        self._access = access
        self._hosts = hosts
        self._largest_upload = largest_upload
        self._bodies = _Bodies()
        self._threads: anyio.CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        given = headers.get("x-request-id", "")
        name = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope["activecover.request"] = name
        status, started_sending, body = 500, False, _Body(self._bodies)

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            nonlocal status, started_sending
            if message["type"] == "http.response.start":
                status, started_sending = message["status"], True
                message["headers"] = [*message.get("headers", []), *_safe_headers(scope["path"], name)]
            await send(message)

        try:
            self._check(scope, headers)
            await self._recognise(scope)
            await self.app(scope, self._limited(scope, headers, receive, body), send_with_headers)
        except Refused as refused:
            await _refuse(send_with_headers, refused, name)
        except Exception as wrong:
            # The app answers its own errors and then raises them for the server, which would print all of it.
            if not started_sending:
                await _refuse(send_with_headers, Refused(*said_of(wrong, name)), name)
        finally:
            body.release()
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", None) or ("static" if status < 400 else "other")
            self.metrics.observe(scope["method"], route, status, seconds)
            log.debug("%s %s %d %.1f ms %s", scope["method"], route, status, 1000 * seconds, name)

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        host = host_of(headers.get("host", ""))
        if host is None:
            raise Refused(400, "the Host header is not a name or an address", "input")
        if self._hosts is not None and host not in self._hosts:
            raise Refused(421, f"this server is not {host!r}: address it by the name it was started with")
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            _check_origin(headers)

    async def _recognise(self, scope: Scope) -> None:
        """Find the person who sent a request, if that matters."""
        # The document of the API says nothing that the sources do not.
        guarded = scope["path"].startswith("/api/") and scope["path"] != "/api/openapi.json"
        if not guarded and scope["path"] != "/metrics":
            return
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(_LOOKING_UP)
        who = client_of(scope), credentials_of(scope)
        try:
            person = await anyio.to_thread.run_sync(self._access.person, *who, limiter=self._threads)
        except NotKnown as wrong:
            if wrong.wait:
                await asyncio.sleep(_SLOWED)
            raise Refused(wrong.status, str(wrong), wrong.kind, _of_a_stranger(scope, wrong)) from wrong
        except ActiveCoverError as wrong:
            kind, status = sort(wrong)
            raise Refused(status, str(wrong), kind) from wrong
        if scope["path"] == "/metrics" and not person.may("owner"):
            raise Refused(403, "the figures are for owners")
        scope["activecover.person"] = person

    def _limited(self, scope: Scope, headers: dict[str, str], receive: Receive, body: _Body) -> Receive:
        uploads = scope["path"] == "/api/uploads"
        most = self._largest_upload if uploads else LARGEST_BODY
        length = headers.get("content-length", "0")
        too_large = Refused(413, f"more than {most >> 20} MB: too large", "input")
        if not length.isdigit() or int(length) > most:
            raise too_large
        taken = 0

        async def limited() -> MutableMapping[str, Any]:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > most:
                # Within the app, which knows how to answer its own kind of refusals only.
                raise BodyProblem(too_large.text, too_large.status, too_large.kind)
            if not uploads:  # which are written to a file as they come
                body.take(len(message.get("body", b"")))
            return message

        return limited


@dataclass
class _Bodies:
    """How many bytes of bodies are in memory, of all requests together."""

    size: int = 0


class _Body:
    """What is in memory of one request's body."""

    def __init__(self, all_of_them: _Bodies) -> None:
        self._all = all_of_them
        self._size = 0

    def take(self, size: int) -> None:
        """Count more bytes, unless there are too many already."""
        if self._all.size + size > _BODIES_AT_ONCE:
            raise BodyProblem("the server is reading too many large requests: try again in a moment", 503, "busy")
        self._all.size += size
        self._size += size

    def release(self) -> None:
        """The request is over."""
        self._all.size -= self._size
        self._size = 0


_HOST = re.compile(r"(?:\[([0-9A-Fa-f]*:[0-9A-Fa-f:.]*)\]|([A-Za-z0-9._-]*))(?::[0-9]{0,5})?")


def host_of(header: str) -> str | None:
    """The name or address in a ``Host`` header, or None if it holds neither.

    Examples
    --------
    >>> host_of("Labels.example.org:80"), host_of("[::1]:8321"), host_of("[::1")
    ('labels.example.org', '::1', None)
    """
    found = _HOST.fullmatch(header)
    return None if found is None else (found[1] or found[2] or "").lower()


def is_loopback(host: str) -> bool:
    """Whether a name or an address means this machine alone.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_origin(headers: dict[str, str]) -> None:
    """No other site may have a visitor's browser write here."""
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2].partition("/")[0] != headers.get("host"):
        raise Refused(403, f"a page of {origin} may not write here")
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refused(403, "a page of another site may not write here")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    # What a form can send without asking first is refused, bodies of nothing apart.
    if kind in ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded"):
        raise Refused(415, f"{kind} is not taken: send application/json", "input")


def _safe_headers(path: str, name: str) -> list[tuple[bytes, bytes]]:
    policy = FRAME_POLICY if path.startswith("/api/") and path.endswith("/frame") else PAGE_POLICY
    added = {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "x-request-id": name,
    }
    if path.startswith("/api/"):
        added["cache-control"] = "no-store"
    return [(key.encode(), value.encode()) for key, value in added.items()]


def _of_a_stranger(scope: Scope, wrong: NotKnown) -> Headers:
    """Headers of an answer to somebody who has to sign in, or to wait."""
    if wrong.wait:
        return [(b"retry-after", str(wrong.wait).encode())]
    headers = [(b"www-authenticate", b"Bearer")]
    if credentials_of(scope).kind == "session":
        # A session that is over is not sent again.
        headers.append((b"set-cookie", f"{cookie_name(scope)}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict".encode()))
    return headers


async def _refuse(send: Send, refused: Refused, name: str) -> None:
    body = json.dumps(body_of(refused.kind, refused.status, refused.text, name)).encode()
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode()), *refused.headers]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
