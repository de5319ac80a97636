"""Routes for owners: who may use the server, and who may do what in a campaign."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from activecover.web import _models as models
from activecover.web._problems import Problem
from activecover.web._routes import RESPONSES, TheDesk, at_least, problems

router = APIRouter(prefix="/api", responses=RESPONSES, dependencies=[at_least("owner")])
Who = Annotated[str, Query(description="Somebody's name.", max_length=200)]


@router.get("/people", tags=["people"])
def list_people(desk: TheDesk) -> models.Everyone:
    """The people who may use the server, and their roles."""
    people = desk.home.people.all()
    return models.Everyone(
        people=[models.Member(name=str(one.name), role=one.role, rights=dict(one.rights)) for one in people]
    )


@router.post("/people", status_code=201, tags=["people"], responses=problems(_409="There is one of this name"))
def add_person(desk: TheDesk, body: models.NewPerson) -> models.Token:
    """Let someone in; their token is in this answer and nowhere else."""
    people = desk.home.people
    if any(one.name == body.name for one in people.all()):
        raise Problem(f"there is a {body.name!r} already: choose another name, or rotate their token", 409, "taken")
    return models.Token(name=body.name, token=people.add(body.name, body.role, body.rights))


@router.delete("/people", tags=["people"])
def remove_person(desk: TheDesk, name: Who) -> models.Removed:
    """Let someone in no longer, and end their sessions."""
    desk.home.people.remove(name)
    return models.Removed(removed=name)


@router.post("/people/rotate", tags=["people"])
def rotate_token(desk: TheDesk, body: models.PersonBody) -> models.Token:
    """Give someone a new token in place of the old one, and end their sessions."""
    return models.Token(name=body.name, token=desk.home.people.rotate(body.name))


@router.put("/people/role", tags=["people"])
def set_role(desk: TheDesk, body: models.RoleBody) -> models.RoleBody:
    """Say what someone may do on the whole server; null for nothing but what they may do in single campaigns."""
    desk.home.people.set_role(body.name, body.role)
    return body


@router.get("/campaigns/{name}/rights", tags=["people"])
def list_rights(desk: TheDesk, name: str) -> dict[str, Any]:
    """The people of a campaign, and their roles."""
    desk.check_exists(name)
    found = [(one, one.inside(name).role) for one in desk.home.people.all()]
    return {
        "rights": [
            {"name": one.name, "role": role, "granted": one.rights.get(name)} for one, role in found if role is not None
        ]
    }


@router.put("/campaigns/{name}/rights", tags=["people"])
def set_right(desk: TheDesk, name: str, body: models.RoleBody) -> models.RoleBody:
    """Say what someone may do in a campaign; null takes away what they were granted there."""
    desk.check_exists(name)
    if body.role is None:
        desk.home.people.revoke(body.name, name)
    else:
        desk.home.people.grant(body.name, name, body.role)
    return body
