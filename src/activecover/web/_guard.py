"""What stands before every request: who may ask, from where, how much, and under which name."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import logging
import re
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from activecover.web._metrics import Metrics
from activecover.web._problems import MEDIA_TYPE, body_of

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger("activecover.web")

#: Nothing comes from another host, nothing in the page runs that is not a file of ours.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: A template may show and style, and nothing else: no scripts, no forms, no requests.
FRAME_POLICY = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'"
#: A body that is not an upload is never larger.
LARGEST_BODY = 64 << 20
LARGEST_UPLOAD = 4 << 30
_FAILURES, _WINDOW = 10, 60.0
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Refused(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, text: str, kind: str = "refused") -> None:
        super().__init__(text)
        self.status, self.text, self.kind = status, text, kind


class Guard:
    """ASGI middleware around the whole app.

    Parameters
    ----------
    app : ASGI app
        What is guarded.
    metrics : Metrics
        Where requests are counted.
    token : str, optional
        What ``Authorization: Bearer`` must say for anything below ``/api`` and for the metrics. Only its
        hash is kept.
    hosts : set of str, optional
        Names under which the server may be addressed; a page elsewhere cannot reach it under a name of
        its own. Any where not given.
    """

    def __init__(self, app: Any, metrics: Metrics, token: str | None, hosts: set[str] | None) -> None:
        self.app = app
        self.metrics = metrics
        self._token = None if token is None else _hash(token)
        self._hosts = hosts
        self._failures: dict[str, list[float]] = defaultdict(list)
        self._lock = threading.Lock()

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
        status = 500

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *_safe_headers(scope["path"], name)]
            await send(message)

        try:
            self._check(scope, headers)
            await self.app(scope, self._limited(scope, headers, receive), send_with_headers)
        except Refused as refused:
            await _refuse(send_with_headers, refused, name)
        finally:
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", None) or ("static" if status < 400 else "other")
            self.metrics.observe(scope["method"], route, status, seconds)
            log.debug("%s %s %d %.1f ms %s", scope["method"], route, status, 1000 * seconds, name)

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        host = urlsplit("//" + headers.get("host", "")).hostname or ""
        if self._hosts is not None and host not in self._hosts:
            raise Refused(421, f"this server is not {host!r}: address it by the name it was started with")
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            _check_origin(headers)
        if self._token is not None and (scope["path"].startswith("/api/") or scope["path"] == "/metrics"):
            self._check_token(scope, headers.get("authorization", ""))

    def _check_token(self, scope: Scope, authorization: str) -> None:
        address = (scope.get("client") or ("?", 0))[0]
        now = time.monotonic()
        with self._lock:
            recent = self._failures[address] = [at for at in self._failures[address] if at > now - _WINDOW]
            if len(recent) >= _FAILURES:
                raise Refused(429, "too many wrong tokens: wait a minute")
            kind, _, token = authorization.partition(" ")
            assert self._token is not None
            if kind.lower() == "bearer" and hmac.compare_digest(_hash(token.strip()), self._token):
                return
            if authorization:
                recent.append(now)
        raise Refused(401, "this server wants a token: Authorization: Bearer …")

    def _limited(self, scope: Scope, headers: dict[str, str], receive: Receive) -> Receive:
        most = LARGEST_UPLOAD if scope["path"] == "/api/uploads" else LARGEST_BODY
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
                raise too_large
            return message

        return limited


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
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise Refused(403, f"a page of {origin} may not write here")
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refused(403, "a page of another site may not write here")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    # What a form can send without asking first is refused, bodies of nothing apart.
    if kind in ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded"):
        raise Refused(415, f"{kind} is not taken: send application/json", "input")


def _safe_headers(path: str, name: str) -> list[tuple[bytes, bytes]]:
    policy = FRAME_POLICY if path.startswith("/frame/") else PAGE_POLICY
    added = {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "x-request-id": name,
    }
    if path.startswith("/api/") or path.startswith("/frame/"):
        added["cache-control"] = "no-store"
    return [(key.encode(), value.encode()) for key, value in added.items()]


async def _refuse(send: Send, refused: Refused, name: str) -> None:
    body = json.dumps(body_of(refused.kind, refused.status, refused.text, name)).encode()
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
