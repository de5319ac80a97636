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
from activecover.home import Home
from activecover.web import _problems
from activecover.web._api import router
from activecover.web._desk import DEFAULT_LEASE, Desk
from activecover.web._guard import Guard
from activecover.web._metrics import Metrics

_STATIC = Path(__file__).with_name("static")


def make_app(
    home: Home, *, token: str | None = None, hosts: set[str] | None = None, lease: float | None = None
) -> Guard:
    """The ASGI app for the campaigns of a home.

    Parameters
    ----------
    home : Home
        Where the campaigns live; the app closes it at its end.
    token : str, optional
        What requests must bring along; anyone may ask where not given.
    hosts : set of str, optional
        Names by which the server may be addressed; any where not given.
    lease : float, optional
        Seconds after which an unanswered item goes back, for campaigns that do not say; half an hour by default.
    """
    desk, metrics = Desk(home, lease or DEFAULT_LEASE), Metrics()

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
    app.include_router(router)

    @app.get("/health", tags=["server"])
    def health() -> dict[str, Any]:
        """Whether the server and its store are there."""
        return {"status": "ok", "version": __version__, "campaigns": len(desk.names())}

    @app.get("/metrics", tags=["server"], response_class=PlainTextResponse)
    def prometheus() -> PlainTextResponse:
        """Figures for Prometheus."""
        text = metrics.text((one.name, one.reader.counts()) for one in desk.opened())
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    @app.get("/frame/{name}", include_in_schema=False)
    def frame(name: str) -> HTMLResponse:
        page = desk.frames.get(name)
        if page is None:
            raise _problems.missing("this frame is gone: ask for the item again")
        return HTMLResponse(page)

    @app.get("/", include_in_schema=False)
    def page() -> HTMLResponse:
        return HTMLResponse((_STATIC / "index.html").read_text(encoding="utf-8"))

    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    return Guard(app, metrics, token, hosts)
