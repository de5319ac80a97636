"""``activecover serve``: the page and the HTTP API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from activecover.cli._secrets import Store, StoreFile, secret_from, store_of, warn
from activecover.cli._show import out

#: Shorter tokens might be guessed.
_SHORT = 16


def serve(
    home: Annotated[
        Path | None,
        typer.Option("--home", help="Folder of the campaigns; default: ACTIVECOVER_HOME or ~/.activecover."),
    ] = None,
    store: Store = None,
    store_file: StoreFile = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; by default, only this machine.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 for any free one.")
    ] = 8321,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            help="File with a token for an unnamed owner; or set ACTIVECOVER_TOKEN. See also: activecover people.",
        ),
    ] = None,
    token: Annotated[
        str | None, typer.Option("--token", hidden=True, help="The token itself: other users can see it.")
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Require no token: every user of this machine is an owner.")
    ] = False,
    lease: Annotated[
        float | None,
        typer.Option("--lease", min=1, help="Seconds after which an unanswered item goes back; default: 1800."),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="Host name under which visitors reach this server; may be given several times."),
    ] = None,
    proxies: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy", help="Address of a proxy whose forwarding headers are trusted; may be given several times."
        ),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="Number of server processes.")] = 1,
    upload_limit: Annotated[
        int, typer.Option("--upload-limit", min=1, max=1 << 20, help="Size limit of uploads, in MB.")
    ] = 4096,
    memory: Annotated[
        int | None,
        typer.Option(
            "--memory",
            min=64,
            max=1 << 24,
            help="Memory limit for reading a file, in MB; default: 4096, or half of all memory.",
        ),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Log tracebacks of unexpected errors; they may contain text of items.")
    ] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> int:
    """Serve the page and the HTTP API."""
    from activecover.web.server import serve as run
    from activecover.workspace import Workspace

    with Workspace(home, store_of(store, store_file)) as place:
        run(
            place, host=host, port=port, token=_token(token, token_file), no_token=no_token, lease=lease,
            open_page=open_page, names=names or (), proxies=proxies or (),
            workers=workers, upload_limit=upload_limit, memory=memory, debug=debug,
            say=lambda line: out().print(Text(line), soft_wrap=True),
        )  # fmt: skip
    return 0


def _token(given: str | None, file: Path | None) -> str | None:
    """The token: as given, from a file, or from the environment; on the command line, other users can see it."""
    if given is not None:
        warn("every user of this machine can see --token: use --token-file or ACTIVECOVER_TOKEN")
    token = given or secret_from(file, "ACTIVECOVER_TOKEN", "token")
    if token is not None and len(token) < _SHORT:
        warn(f"the token has fewer than {_SHORT} characters and may be guessed: choose a longer one")
    return token
