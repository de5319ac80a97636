"""The page, signing in and out, and the campaigns that are for someone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from activecover.web import _models as models
from activecover.web._access import NotKnown, client_of, cookie_name, credentials_of
from activecover.web._routes import RESPONSES, Account, TheAccess, TheDesk, counts_for, visible_to
from activecover.workspace import LIFETIME, Person

page = APIRouter(include_in_schema=False)
router = APIRouter(prefix="/api", responses=RESPONSES)
_PAGE = Path(__file__).with_name("static") / "index.html"


@page.get("/")
def show_page(request: Request, access: TheAccess) -> Response:
    """The page. A link that has the server's own token signs in, and leaves no trace of it in the address."""
    token = request.query_params.get("token")
    if token is None:
        return HTMLResponse(_PAGE.read_text(encoding="utf-8"))
    try:
        session = access.sign_in(client_of(request.scope), token, by_link=True)
    except NotKnown:
        return RedirectResponse("/?link=old", 303)
    answer = RedirectResponse("/", 303)
    _keep(request, answer, session)
    return answer


@router.get("/me", tags=["server"])
def me(account: Account, access: TheAccess, request: Request) -> models.Myself:
    """The person that the server recognises you as."""
    given = credentials_of(request.scope)
    return _myself(account, given.kind == "session" and access.known(given) is not None)


@router.post("/login", tags=["server"])
def login(account: Account, access: TheAccess, request: Request, response: Response) -> models.Myself:
    """Begin a session with the token that this request brings along; scripts cannot read the session's cookie."""
    given = credentials_of(request.scope)
    known = given.kind == "token" and access.known(given) is not None
    if known:
        _keep(request, response, access.sign_in(client_of(request.scope), given.value))
    return _myself(account, known)


@router.post("/logout", tags=["server"])
def logout(_: Account, access: TheAccess, request: Request, response: Response) -> models.Removed:
    """End the session, here and on the server."""
    access.sign_out(credentials_of(request.scope))
    response.delete_cookie(cookie_name(request.scope), httponly=True, samesite="strict")
    return models.Removed(removed="the session")


@router.get("/campaigns", tags=["campaigns"])
def list_campaigns(account: Account, desk: TheDesk) -> dict[str, Any]:
    """The campaigns that are for you, your role in each, and how many items of those that are open are in which state."""
    opened = {one.name: one for one in desk.opened()}
    found = []
    for name in visible_to(account, desk):
        me, one = account.inside(name), opened.get(name)
        found.append({"name": name, "role": me.role, "counts": None if one is None else counts_for(one, me)})
    return {"campaigns": found}


def _keep(request: Request, response: Response, session: str) -> None:
    """Give a session to a browser."""
    response.set_cookie(
        cookie_name(request.scope),
        session,
        max_age=int(LIFETIME),
        httponly=True,
        samesite="strict",
        # Only a proxy that was named can make this https.
        secure=request.url.scheme == "https",
    )


def _myself(person: Person, session: bool) -> models.Myself:
    return models.Myself(name=person.name, role=person.role, rights=dict(person.rights), session=session)
