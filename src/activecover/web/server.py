"""Running the server."""

from __future__ import annotations

import errno
import logging
import secrets
import socket
import webbrowser
from collections.abc import Callable, Sequence

from activecover.errors import InputError
from activecover.extras import require
from activecover.home import Home


def serve(
    home: Home,
    *,
    host: str = "127.0.0.1",
    port: int = 8321,
    token: str | None = None,
    open_page: bool = False,
    lease: float | None = None,
    names: Sequence[str] = (),
    say: Callable[[str], None] = print,
) -> None:
    """Serve the campaigns of a home until interrupted.

    Off this machine a token is needed: one is made and said, once, where none is given. ``names`` are those
    by which others know the machine, where a proxy stands before the server.
    """
    _require()
    import uvicorn

    from activecover.web._app import make_app
    from activecover.web._guard import is_loopback

    local = is_loopback(host)
    # Before anything is said: a port that is taken is no place to invite people to.
    listener = listen(host, port)
    port = listener.getsockname()[1]
    if token is None and not local:
        token = secrets.token_urlsafe(24)
        say(f"token: {token}")
    hosts = {host, "localhost", "127.0.0.1", "::1", *names} if local or names else None
    app = make_app(home, token=token, hosts=hosts, lease=lease)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{'localhost' if host in ('0.0.0.0', '::') else shown}:{port}/"
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=10
    )
    logging.getLogger("activecover.web").setLevel(logging.INFO)
    say(f"serving {home.folder} at {address} (Ctrl-C ends it)")
    if open_page:
        webbrowser.open(address)
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # the server has ended what it was doing already
    finally:
        listener.close()


def listen(host: str, port: int) -> socket.socket:
    """A socket on an address; one that cannot be had is named."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
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
