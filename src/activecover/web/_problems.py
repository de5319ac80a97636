"""What goes wrong, as JSON problem details (RFC 9457) with the line that the command line would print."""

from __future__ import annotations

import errno
import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from activecover.errors import ActiveCoverError, InputError, MissingExtraError, StoreError

log = logging.getLogger("activecover.web")

#: The kinds of problems: clients tell them apart by the last part.
KIND = "urn:activecover:"
_TITLES = {
    "input": "The request is wrong",
    "missing": "There is no such thing",
    "taken": "It is there already",
    "refused": "Not allowed",
    "busy": "The server is busy",
    "full": "The server's disk is full",
    "token": "Sign in",
    "store": "The store cannot be used now",
    "extra": "An optional part is not installed",
    "error": "Something went wrong in the server",
}
MEDIA_TYPE = "application/problem+json"
#: What a write to a disk without room fails with; the last one is a limit on the size of a file.
FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DISK_FULL = "the server has no room left on its disk: nothing was kept; try again when there is some"


class Problem(InputError):
    """A refusal with a status of its own."""

    def __init__(self, text: str, status: int, kind: str = "input") -> None:
        super().__init__(text)
        self.status = status
        self.kind = kind


class BodyProblem(HTTPException):
    """A refusal while a body is being read: FastAPI makes a 400 of every other kind of error there."""

    def __init__(self, text: str, status: int, kind: str = "input") -> None:
        super().__init__(status, text)
        self.kind = kind


def missing(text: str) -> Problem:
    """Something is not there."""
    return Problem(text, 404, "missing")


def body_of(kind: str, status: int, detail: str, request_id: str | None = None) -> dict[str, Any]:
    """The details of a problem."""
    # One line, whatever names it quotes.
    line = " ".join(detail.split())
    return {"type": KIND + kind, "title": _TITLES[kind], "status": status, "detail": line, "request": request_id}


def answer(request: Request, kind: str, status: int, detail: str) -> JSONResponse:
    """A problem as a response."""
    body = body_of(kind, status, detail, request.scope.get("activecover.request"))
    return JSONResponse(body, status_code=status, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Let every error of the app come out as problem details."""

    @app.exception_handler(ActiveCoverError)
    async def _ours(request: Request, wrong: ActiveCoverError) -> JSONResponse:
        kind, status = sort(wrong)
        return answer(request, kind, status, str(wrong))

    @app.exception_handler(RequestValidationError)
    async def _shape(request: Request, wrong: RequestValidationError) -> JSONResponse:
        first = wrong.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body") or "body"
        return answer(request, "input", 422, f"{place}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def _http(request: Request, wrong: HTTPException) -> JSONResponse:
        kind = "missing" if wrong.status_code in (404, 405) else getattr(wrong, "kind", "input")
        return answer(request, kind, wrong.status_code, str(wrong.detail))

    @app.exception_handler(Exception)
    async def _other(request: Request, wrong: Exception) -> JSONResponse:
        status, text, kind = said_of(wrong, request.scope.get("activecover.request"))
        return answer(request, kind, status, text)


def said_of(wrong: Exception, name: str | None) -> tuple[int, str, str]:
    """What a client is told of an error that nobody expected: a status, one line, and the kind of problem.

    The log says where it happened. The error's message may quote contents, so it is logged for debugging only.
    """
    if isinstance(wrong, OSError) and wrong.errno in FULL_DISK:
        log.error("request %s: no space left on the disk", name)
        return 507, DISK_FULL, "full"
    place = wrong.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "?" if place is None else f"{place.tb_frame.f_globals.get('__name__', '?')}:{place.tb_lineno}"
    log.error(
        "request %s: %s at %s", name, type(wrong).__name__, where,
        exc_info=wrong if log.isEnabledFor(logging.DEBUG) else None,
    )  # fmt: skip
    if isinstance(wrong, MemoryError):
        return 503, "the request needs more memory than the server has left", "busy"
    return 500, f"an unexpected error; the server's log has more under the number {name}", "error"


def sort(wrong: ActiveCoverError) -> tuple[str, int]:
    """The kind of problem that an error is, and its status."""
    if isinstance(wrong, Problem):
        return wrong.kind, wrong.status
    if isinstance(wrong, InputError):
        return "input", 422
    if isinstance(wrong, StoreError):
        return "store", 503
    if isinstance(wrong, MissingExtraError):
        return "extra", 501
    return "input", 422
