"""Running the server."""

from __future__ import annotations

import errno
import html
import ipaddress
import json
import logging
import os
import signal
import socket
import time
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from types import FrameType
from typing import TYPE_CHECKING, Any

from activecover.errors import InputError
from activecover.extras import require
from activecover.files import write_whole
from activecover.workspace import Workspace, new_token

if TYPE_CHECKING:
    import uvicorn

    from activecover.web._guard import Guard

#: How the processes of a server learn what they are to serve.
_SETTINGS = "ACTIVECOVER_SERVE"
LARGEST_UPLOAD = 4 << 10
#: How uvicorn is to treat connections.
PROTOCOL: dict[str, Any] = {
    "http": "activecover.web._connections:PatientProtocol", "ws": "none", "backlog": 128,
    # What it says of requests that are no HTTP could fill a disk.
    "log_level": "error", "access_log": False, "server_header": False,
}  # fmt: skip


def serve(
    home: Workspace,
    *,
    host: str = "127.0.0.1",
    port: int = 8321,
    token: str | None = None,
    no_token: bool = False,
    open_page: bool = False,
    lease: float | None = None,
    names: Sequence[str] = (),
    proxies: Sequence[str] = (),
    workers: int = 1,
    upload_limit: int = LARGEST_UPLOAD,
    memory: int | None = None,
    debug: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the campaigns of a home until interrupted.

    Everybody needs a token. On this machine alone a new one is made at every start and said as a link that signs in;
    elsewhere, where nobody has a token yet, someone named ``owner`` is let in, whose token is said once.
    ``token`` is one for an owner without a name. With ``no_token`` everyone is an owner.
    ``names`` are those by which others know the machine, where a proxy stands before the server; what ``proxies``
    (addresses) say of where a request comes from is believed. ``workers`` processes share the work; a file has
    ``upload_limit`` MB at most, and reading it takes ``memory`` MB at most (4096, or half of what the machine has).
    With ``debug`` the log has the whole traceback of an unexpected error, which may quote contents of items.
    """
    _require()
    import uvicorn

    from activecover.web._access import Door
    from activecover.web._guard import is_loopback

    local = is_loopback(host)
    alone = local and not names and not proxies
    if no_token:
        _check_open(home, alone=alone, token=token)
    believed = forwarding(proxies)
    # A list of people that cannot be read is said now, and not to the first visitor.
    home.people.were_there()
    # Before anything is said: a port that is taken is no place to invite people to.
    listener = listen(host, port)
    port = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{'localhost' if host in ('0.0.0.0', '::') else shown}:{port}/"
    link = None
    if alone and token is None and not no_token:
        token = new_token()
        link = f"{address}?token={token}"
    door = Door(None if token is None else home.people.mark(token), time.time() if no_token else None)
    hosts = [host, "localhost", "127.0.0.1", "::1", *names] if local or names else None
    settings = {
        "door": asdict(door), "hosts": hosts, "lease": lease, "upload_limit": upload_limit, "memory": memory,
        "debug": debug,
    }  # fmt: skip
    config = {**PROTOCOL, "timeout_graceful_shutdown": 10, **believed}
    logging.getLogger("activecover.web").setLevel(logging.DEBUG if debug else logging.INFO)
    if token is None and not no_token:
        _invite(home, say)
    say(f"serving {home.folder} at {address} (Ctrl-C ends it)")
    if link is not None:
        say(f"sign in with this link, which is good until the server ends: {link}")
    if no_token:
        say("no token is asked for: every user of this machine is an owner of these campaigns")
    try:
        with _opened(home, link or address) if open_page else nullcontext():
            if workers == 1:
                app = _app(home, settings)
                _run(uvicorn.Config(app, **config), listener)
            else:
                listener.close()
                _serve_many(home, settings, config, workers, (host, port))
    except KeyboardInterrupt:
        pass  # the server has ended what it was doing already
    finally:
        listener.close()


def _run(config: uvicorn.Config, listener: socket.socket) -> None:
    """Run one server; where SIGINT is ignored, as under ``nohup … &``, it stays ignored."""
    import uvicorn

    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if sig != signal.SIGINT or not ignored:
                super().handle_exit(sig, frame)

    Server(config).run(sockets=[listener])


def _check_open(home: Workspace, *, alone: bool, token: str | None) -> None:
    """Refuse to do without tokens where others than this machine's users could come in, or somebody has one."""
    if token is not None:
        raise InputError("a token and --no-token: choose one of them")
    if not alone:
        raise InputError("--no-token is for a server on this machine alone: leave out --host, --name and --proxy")
    if len(home.people):
        raise InputError(
            "some people have a token of their own (activecover people list): leave out --no-token, or remove them"
        )


def _invite(home: Workspace, say: Callable[[str], None]) -> None:
    """Let in a first owner; where everybody was removed the server stays closed."""
    if not home.people.were_there():
        say(f"token of the owner, shown this once: {home.people.add('owner', 'owner')}")
    elif not len(home.people):
        say("nobody may use this server now; let someone in: activecover people add NAME --role owner")


def forwarding(proxies: Sequence[str]) -> dict[str, Any]:
    """Whom uvicorn believes about where a request comes from: nobody who was not named."""
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy, strict=False)
        except ValueError as wrong:
            raise InputError(f"--proxy {proxy!r}: give the proxy's address, as in 127.0.0.1") from wrong
    return {"proxy_headers": bool(proxies), "forwarded_allow_ips": list(proxies)}


@contextmanager
def _opened(home: Workspace, link: str) -> Iterator[None]:
    """Open a link in a browser, by way of a file: other users see command lines, and the link has a token."""
    file = home.folder / ".sign-in.html"
    address = html.escape(link, quote=True)
    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><a href="{address}">activecover</a>'
    write_whole(file, page.encode())
    try:
        webbrowser.open(file.absolute().as_uri())
        yield
    finally:
        file.unlink(missing_ok=True)


def _serve_many(
    home: Workspace, settings: dict[str, Any], config: dict[str, Any], workers: int, address: tuple[str, int]
) -> None:
    """Several processes on one address; one that dies is replaced."""
    import uvicorn

    # They open the store themselves: a connection cannot be shared.
    home.close()
    # In the environment, which other users cannot read as they can command lines.
    os.environ[_SETTINGS] = json.dumps({**settings, "folder": str(home.folder.absolute()), "store": home.url})
    host, port = address[:2]
    uvicorn.run("activecover.web.server:worker", factory=True, workers=workers, host=host, port=port, **config)


def worker() -> Guard:
    """The app of one process of several, made from what :func:`serve` has left for it."""
    # What this process starts in turn has no use for the store's password.
    told = json.loads(os.environ.pop(_SETTINGS))
    logging.getLogger("activecover.web").setLevel(logging.DEBUG if told["debug"] else logging.INFO)
    return _app(Workspace(told.pop("folder"), told.pop("store")), told)


def _app(home: Workspace, settings: dict[str, Any]) -> Guard:
    from activecover.web._access import Door
    from activecover.web._app import make_app

    return make_app(
        home,
        door=Door(**settings["door"]),
        hosts=None if settings["hosts"] is None else set(settings["hosts"]),
        lease=settings["lease"],
        largest_upload=settings["upload_limit"] << 20,
        memory=settings["memory"],
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket on an address; one that cannot be had is named."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # Only where the protocol is named does asyncio send small answers at once; else some wait for 40 ms.
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(128)
        except BaseException:
            listener.close()
            raise
        return listener
    except (OSError, OverflowError) as wrong:
        if getattr(wrong, "errno", None) == errno.EADDRINUSE:
            raise InputError(f"port {port} of {host} is taken: choose another with --port") from wrong
        raise InputError(
            f"{host}:{port}: cannot be listened on ({getattr(wrong, 'strerror', None) or wrong})"
        ) from wrong


def _require() -> None:
    for module in ("fastapi", "uvicorn", "prometheus_client"):
        require(module, extra="web", purpose="the page and the HTTP API")
