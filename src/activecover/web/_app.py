"""The app: routes, the page, and what stands around them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles

from activecover import __version__
from activecover.home import Home, People
from activecover.home._people import hash_of
from activecover.web import _labelling, _looking, _problems, _setting_up
from activecover.web._desk import DEFAULT_LEASE, Desk
from activecover.web._guard import LARGEST_UPLOAD, Access, Guard
from activecover.web._metrics import Metrics

_STATIC = Path(__file__).with_name("static")


def make_app(
    home: Home,
    *,
    token: str | None = None,
    required: bool = False,
    hosts: set[str] | None = None,
    lease: float | None = None,
    largest_upload: int = LARGEST_UPLOAD,
    memory: int | None = None,
) -> Guard:
    """The ASGI app for the campaigns of a home.

    Parameters
    ----------
    home : Home
        Where the campaigns live; the app closes it at its end.
    token : str, optional
        What makes an owner of whoever brings it along.
    required : bool
        Whether requests need a token even while none is known. Else they need one as soon as there is one,
        or someone in the home has one.
    hosts : set of str, optional
        Names by which the server may be addressed; any where not given.
    lease : float, optional
        Seconds after which an unanswered item goes back, for campaigns that do not say; half an hour by default.
    largest_upload : int
        Bytes that a file may have.
    memory : int, optional
        MB that reading an uploaded file may take.
    """
    desk, metrics = Desk(home, lease or DEFAULT_LEASE, memory), Metrics()
    access = Access(People(home.folder), None if token is None else hash_of(token), required=required)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()

    app = FastAPI(
        title="activecover",
        version=__version__,
        summary="Find every positive in a pool with the fewest labels.",
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        # Their pages load scripts from another host.
        docs_url=None,
        redoc_url=None,
    )
    app.state.desk = desk
    _problems.install(app)
    for part in (_labelling, _looking, _setting_up):
        app.include_router(part.router)

    @app.get("/health", tags=["server"])
    def health() -> dict[str, Any]:
        """Whether the server and its store are there."""
        desk.names()
        return {"status": "ok", "version": __version__}

    @app.get("/metrics", tags=["server"], response_class=PlainTextResponse)
    def prometheus() -> PlainTextResponse:
        """Figures for Prometheus."""
        text = metrics.text((one.name, one.reader.counts()) for one in desk.opened())
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    @app.get("/", include_in_schema=False)
    def page() -> HTMLResponse:
        return HTMLResponse((_STATIC / "index.html").read_text(encoding="utf-8"))

    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    return Guard(app, metrics, access, hosts, largest_upload)
