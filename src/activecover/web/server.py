"""Running the server."""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import webbrowser
from collections.abc import Callable, Sequence
from typing import Any

from activecover.errors import InputError
from activecover.extras import require
from activecover.home import Home, People

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
    home: Home,
    *,
    host: str = "127.0.0.1",
    port: int = 8321,
    token: str | None = None,
    open_page: bool = False,
    lease: float | None = None,
    names: Sequence[str] = (),
    workers: int = 1,
    upload_limit: int = LARGEST_UPLOAD,
    memory: int | None = None,
    debug: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the campaigns of a home until interrupted.

    Off this machine a token is needed. Where there is none yet, someone named ``owner`` is let in, whose
    token is said once and kept as a hash. ``names`` are those by which others know the machine, where a
    proxy stands before the server; ``workers`` processes share the work; a file has ``upload_limit`` MB at most,
    and reading it takes ``memory`` MB at most (4096, or half of what the machine has).
    With ``debug`` the log has the whole traceback of an unexpected error, which may quote contents of items.
    """
    _require()
    import uvicorn

    from activecover.web._guard import is_loopback

    local = is_loopback(host)
    # Before anything is said: a port that is taken is no place to invite people to.
    listener = listen(host, port)
    port = listener.getsockname()[1]
    people = People(home.folder)
    # A proxy's visitors come from this machine, whoever they are.
    required = not local or bool(names)
    if required and token is None and not len(people):
        say(f"token of the owner, shown this once: {people.add('owner', 'owner')}")
    hosts = [host, "localhost", "127.0.0.1", "::1", *names] if local or names else None
    settings = {
        "required": required,
        "hosts": hosts,
        "lease": lease,
        "upload_limit": upload_limit,
        "memory": memory,
        "debug": debug,
    }
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{'localhost' if host in ('0.0.0.0', '::') else shown}:{port}/"
    config = {**PROTOCOL, "timeout_graceful_shutdown": 10}
    logging.getLogger("activecover.web").setLevel(logging.DEBUG if debug else logging.INFO)
    say(f"serving {home.folder} at {address} (Ctrl-C ends it)")
    if open_page:
        webbrowser.open(address)
    try:
        if workers == 1:
            app = _app(home, token, settings)
            uvicorn.Server(uvicorn.Config(app, **config)).run(sockets=[listener])
        else:
            listener.close()
            _serve_many(home, token, settings, config, workers, (host, port))
    except KeyboardInterrupt:
        pass  # the server has ended what it was doing already
    finally:
        listener.close()


def _serve_many(
    home: Home, token: str | None, settings: dict[str, Any], config: dict[str, Any], workers: int, address: Any
) -> None:
    """Several processes on one address; one that dies is replaced."""
    import uvicorn

    # They open the store themselves: a connection cannot be shared.
    home.close()
    told = {**settings, "folder": str(home.folder.absolute()), "store": home.url, "token": token}
    os.environ[_SETTINGS] = json.dumps(told)
    host, port = address[:2]
    uvicorn.run("activecover.web.server:worker", factory=True, workers=workers, host=host, port=port, **config)


def worker() -> Any:
    """The app of one process of several, made from what :func:`serve` has left for it."""
    told = json.loads(os.environ[_SETTINGS])
    logging.getLogger("activecover.web").setLevel(logging.DEBUG if told["debug"] else logging.INFO)
    return _app(Home(told.pop("folder"), told.pop("store")), told.pop("token"), told)


def _app(home: Home, token: str | None, settings: dict[str, Any]) -> Any:
    from activecover.web._app import make_app

    return make_app(
        home,
        token=token,
        required=settings["required"],
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
    for module in ("fastapi", "uvicorn"):
        require(module, extra="web", purpose="the page and the HTTP API")
