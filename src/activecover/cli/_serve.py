"""``activecover serve``: the page and the HTTP API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from activecover.cli._show import out


def serve(
    home: Annotated[
        Path | None,
        typer.Option("--home", help="Folder of the campaigns; default: ACTIVECOVER_HOME or ~/.activecover."),
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", help="postgresql://… for teams; default: an SQLite file in the folder.")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Where to listen; by default this machine alone.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any that is free.")] = 8321,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="ACTIVECOVER_TOKEN",
            help="What makes an owner of whoever brings it along; see also: activecover people.",
        ),
    ] = None,
    lease: Annotated[
        float | None, typer.Option("--lease", min=1, help="Seconds after which an unanswered item goes back; 1800.")
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="A name by which a proxy's visitors know this server; may be repeated."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="Processes that share the work.")] = 1,
    upload_limit: Annotated[
        int, typer.Option("--upload-limit", min=1, max=1 << 20, help="Largest file that may be sent, in MB.")
    ] = 4096,
    memory: Annotated[
        int | None,
        typer.Option(
            "--memory", min=64, max=1 << 24, help="Memory that reading a file may take, in MB; 4096, or half of it all."
        ),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Log tracebacks of unexpected errors; they may quote contents of items.")
    ] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> int:
    """Serve the page and the HTTP API."""
    from activecover.home import Home
    from activecover.web.server import serve as run

    with Home(home, store) as place:
        run(
            place, host=host, port=port, token=token, lease=lease, open_page=open_page, names=names or (),
            workers=workers, upload_limit=upload_limit, memory=memory, debug=debug,
            say=lambda line: out().print(Text(line), soft_wrap=True),
        )  # fmt: skip
    return 0
