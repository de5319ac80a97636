"""What all routes share: the person who asks, the campaign, idempotency keys, and ETags."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Response, params

from activecover.campaign import Campaign
from activecover.web import _models as models
from activecover.web._access import Access
from activecover.web._desk import Desk, Open
from activecover.web._problems import Problem, missing
from activecover.workspace import Person, Role

#: Shown in place of what would reveal the state of the control sample.
WITHHELD = "hidden while the guarantee is open"
#: What one request may ask for at once.
PAGE = 1000

_PROBLEM: dict[str, Any] = {
    "model": models.ProblemDetails,
    "content": {"application/problem+json": {}},
}


def problems(**texts: str) -> dict[int | str, dict[str, Any]]:
    """Refusals for the document of the API."""
    return {int(code[1:]): {**_PROBLEM, "description": text} for code, text in texts.items()}


RESPONSES = problems(
    _400="The body is no text",
    _401="No token, or a wrong one",
    _403="Not for this role, or asked for by a page of another site",
    _404="No such campaign",
    _413="Too large",
    _415="Of a kind that a form can send",
    _421="Addressed by a name that is not the server's",
    _422="The request is wrong",
    _429="Too many wrong tokens",
    _501="An optional part is not installed",
    _503="The store cannot be used now, or the server is busy",
    _507="The server's disk is full",
)
UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "As it was"}}


def desk_of(request: Request) -> Desk:
    """All campaigns."""
    desk: Desk = request.app.state.desk
    return desk


def access_of(request: Request) -> Access:
    """Tokens and sessions."""
    access: Access = request.app.state.access
    return access


def _account(request: Request) -> Person:
    """The person who asks, with all of their rights."""
    person: Person = request.scope["activecover.person"]
    return person


def _person(request: Request) -> Person:
    """The person who asks, with their rights in the campaign of the address, or on the whole server.

    Where they may do nothing in a campaign, the answer is that of one that does not exist.
    """
    person = _account(request)
    name = request.path_params.get("name")
    if name is None:
        return person
    inside = person.inside(name)
    if inside.role is None:
        known = ", ".join(visible_to(person, desk_of(request))) or "none"
        raise missing(f"there is no campaign {name!r} (there are: {known})")
    return inside


def _opened(request: Request, name: str, _: Annotated[Person, Depends(_person)]) -> Open:
    return desk_of(request).get(name)


def visible_to(person: Person, desk: Desk) -> list[str]:
    """The campaigns in which someone may do anything."""
    return [name for name in desk.names() if person.inside(name).role is not None]


TheDesk = Annotated[Desk, Depends(desk_of)]
One = Annotated[Open, Depends(_opened)]
Me = Annotated[Person, Depends(_person)]
Account = Annotated[Person, Depends(_account)]
TheAccess = Annotated[Access, Depends(access_of)]
_KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=128,
        pattern=r"^[\x21-\x7e]+$",
        description="A name for the request: made again under it, it counts once, after a restart too.",
    ),
]


def _own_key(request: Request, key: _KeyHeader = None) -> str | None:
    """The name of a request, for each person apart: one could be guessed, and would tell what its first user said."""
    name = _account(request).name
    return key if key is None or name is None else f"{key} {name}"


Key = Annotated[str | None, Depends(_own_key)]
Search = Annotated[str, Query(max_length=200)]
Offset = Annotated[int, Query(ge=0, le=2**53)]
Limit = Annotated[int, Query(ge=1, le=PAGE)]


def at_least(role: Role) -> params.Depends:
    """Only for people whose role includes this one."""

    def check(me: Me) -> None:
        if not me.may(role):
            raise _not_for(me, role)

    found: params.Depends = Depends(check)
    return found


def _looks(me: Me) -> None:
    if not me.may_look:
        raise _not_for(me, "adjudicator")


def _owns_server(person: Account) -> None:
    if not person.may("owner"):
        raise _not_for(person, "owner")


#: Only for owners of the whole server, where an answer is about other campaigns, too.
SERVER_OWNER = Depends(_owns_server)
#: Only for those who may see how a campaign stands: readers, too, but not annotators.
LOOKING = Depends(_looks)
#: For everyone who may do anything in the campaign.
INSIDE = Depends(_person)


def _not_for(me: Person, role: Role) -> Problem:
    mine = "someone without a role here" if me.role is None else f"{'an' if me.role[0] in 'ao' else 'a'} {me.role}"
    return Problem(f"this is not for {mine}: ask an {role}", 403, "refused")


def name_of(me: Person, by: str) -> str:
    """The name under which someone acts: annotators act under their own, others also for someone else."""
    if me.name is None:
        return by
    if by in ("me", me.name):
        return me.name
    if not me.may("adjudicator"):
        raise Problem(f"you are {me.name!r}: you cannot act for {by!r}", 403, "refused")
    return by


def may_see_blind(me: Person) -> bool:
    """Whether someone may see what rests on the control rows while a promise is open."""
    return me.may("owner")


def is_double_blind(one: Open, me: Person) -> bool:
    """Whether someone must learn nothing of what others said of the items that they label."""
    return me.name is not None and not me.may_look and one.campaign.journal.ledger.overlap > 1


def counts_for(one: Open, me: Person) -> dict[str, int]:
    """How many items are in which state; in double labelling, for annotators, of their own answers alone."""
    if me.name is not None and is_double_blind(one, me):
        return one.sight.counts_for(me.name)
    return one.sight.counts()


@contextmanager
def promise_seen_by(one: Open, me: Person) -> Iterator[None]:
    """A time in which what rests on the control rows may be looked at; refused to those who must not yet."""
    with one.campaign.together():
        if one.campaign.guarantee.blind and not may_see_blind(me):
            raise Problem(f"this is {WITHHELD}: ask an owner", 403, "refused")
        yield


def check_undecided(one: Open, me: Person, said: Mapping[str, Any]) -> None:
    """In double labelling an answer is final once the other one is in: otherwise it could be brought into line."""
    if me.name is None or not is_double_blind(one, me):
        return
    for name, own in _decided(one, said, me.name).items():
        if said[name] not in (0, 1) or bool(said[name]) != own:
            raise Problem(f"id {name!r} has all its answers: only an adjudicator can change them", 422, "input")


def _decided(one: Open, names: Iterable[str], by: str) -> dict[str, bool | None]:
    """Of some items, those that have all the opinions they need, with one person's opinion on each."""
    with one.campaign.journal.view() as ledger:
        asks = {name: ledger.asks.get(ledger.groups.first(name)) for name in names}
        full = {name: ask for name, ask in asks.items() if ask and len(ask.opinions) >= ledger.overlap}
        return {name: ask.opinions.get(by) for name, ask in full.items()}


def check_theirs(one: Open, me: Person, ids: str | Sequence[str]) -> None:
    """Annotators decide on what they were given, and on nothing else."""
    if me.name is None or me.may("adjudicator"):
        return
    for name in [ids] if isinstance(ids, str) else ids:
        if not one.sight.served(name, me.name):
            raise Problem(f"id {name!r} is not on your table", 403, "refused")


Written = list[tuple[str, str | None, int | None]]


def once(
    campaign: Campaign,
    key: str | None,
    kinds: Collection[str],
    wanted: dict[str, Any] | None,
    act: Callable[[], None],
) -> Written:
    """Do something once for every key, and return what an earlier request of the same key wrote, if there was one."""
    if key is None:
        act()
        return []
    with campaign.once(key) as written:
        if not written:
            act()
            return []
    for kind, name, label in written:
        other = wanted is not None and (name not in wanted or (label is not None and bool(wanted[name]) != bool(label)))
        if kind not in kinds or other:
            raise Problem("this Idempotency-Key was used for another request: make a new one", 422)
    return written


def fresh(one: Open, request: Request, response: Response, make: Callable[[], Any]) -> Any:
    """An answer that is sent only if something was written since the last one."""
    _, position = one.sight.follow()
    person = _person(request)
    seen = "whole" if not one.sight.blind else "owner" if may_see_blind(person) else "part"
    tag = f'"{one.mark}-{position}-{len(one.campaign.pool)}-{seen}"'
    known = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
    if tag in known or "*" in known:
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return make()
