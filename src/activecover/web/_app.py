"""The app: routes, the page, and what stands around them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from fastapi.staticfiles import StaticFiles

from activecover import __version__
from activecover.web import _account, _labelling, _looking, _people, _problems, _setting_up
from activecover.web._access import Access, Door
from activecover.web._desk import DEFAULT_LEASE, Desk
from activecover.web._guard import LARGEST_UPLOAD, Guard
from activecover.web._metrics import Metrics
from activecover.web._routes import RESPONSES
from activecover.workspace import Workspace

_STATIC = Path(__file__).with_name("static")


def make_app(
    home: Workspace,
    *,
    door: Door | None = None,
    hosts: set[str] | None = None,
    lease: float | None = None,
    largest_upload: int = LARGEST_UPLOAD,
    memory: int | None = None,
) -> Guard:
    """The ASGI app for the campaigns of a home.

    Parameters
    ----------
    home : Workspace
        Where the campaigns live; the app closes it at its end.
    door : Door, optional
        Who may enter besides the people of the home; nobody where not given.
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
    access = Access(home.people, door or Door())

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
    app.state.desk, app.state.access = desk, access
    _problems.install(app)
    for part in (_account, _labelling, _looking, _setting_up, _people):
        app.include_router(part.router)
    app.include_router(_labelling.seeing)
    app.include_router(_account.page)

    @app.get("/health", tags=["server"])
    def health() -> dict[str, Any]:
        """Whether the server and its store are there."""
        desk.names()
        return {"status": "ok", "version": __version__}

    @app.get("/metrics", tags=["server"], response_class=PlainTextResponse, responses=RESPONSES)
    def prometheus() -> PlainTextResponse:
        """Figures for Prometheus."""
        text = metrics.text((one.name, one.sight.counts()) for one in desk.opened())
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    return Guard(app, metrics, access, hosts, largest_upload)
