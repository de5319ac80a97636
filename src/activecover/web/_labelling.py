"""Routes for those who label: ask, tell, put aside, take back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from activecover.campaign import Item
from activecover.errors import InputError
from activecover.web import _models as models
from activecover.web._desk import Open
from activecover.web._routes import (
    INSIDE,
    RESPONSES,
    Key,
    Me,
    One,
    Written,
    at_least,
    check_theirs,
    check_undecided,
    counts_for,
    is_double_blind,
    name_of,
    once,
)
from activecover.workspace import Person

#: What readers see, too.
seeing = APIRouter(prefix="/api", responses=RESPONSES, dependencies=[INSIDE])
router = APIRouter(prefix="/api", responses=RESPONSES, dependencies=[at_least("annotator")])
Mark = Annotated[str, Query(max_length=64, description="In the address that an item came with: that it was shown.")]
_NOTHING_LEFT = "nothing is left to ask for"
_MOST_HELD = 100
_ANSWERS = {True: "yes", False: "no", None: "aside"}


@router.post("/campaigns/{name}/ask", tags=["label"])
def ask(one: One, me: Me, body: models.AskBody) -> models.Items:
    """Lease items to someone; asking again returns the same ones until they are told."""
    return _items(one, me, one.campaign.ask(_many(me, body.k), name_of(me, body.by), shown=body.shown))


@router.post("/campaigns/{name}/answer", tags=["label"])
def answer(one: One, me: Me, body: models.AnswerBody, key: Key = None) -> models.Items:
    """Tell what an item is and lease the next."""
    by = name_of(me, body.by)
    check_theirs(one, me, body.id)

    found: list[Item] = []
    k = _many(me, body.k)

    def act() -> None:
        with one.campaign.together():
            check_undecided(one, me, {body.id: body.label})
            found.extend(one.campaign.answer(body.id, body.label, by, k, shown=body.shown))

    once(one.campaign, key, {"asked", "told"}, {body.id: body.label}, act)
    # A repeated request gets what was leased the first time, and another process may have to propose first.
    return _items(one, me, found or one.campaign.ask(k, by))


@router.get("/campaigns/{name}/ahead", tags=["label"])
def ahead(one: One, me: Me, id: Annotated[str, Query(description="An item on someone's table.")]) -> models.Ahead:
    """The next item for each answer, so that it can be shown without waiting; nothing is leased by it."""
    check_theirs(one, me, id)
    one.campaign.pool.row(id)
    following = one.campaign.peek_next(id)
    return models.Ahead(**{_ANSWERS[answer]: _view(one, me, item) for answer, item in following.items()})


@router.post("/campaigns/{name}/tell", tags=["label"])
def tell(one: One, me: Me, body: models.TellBody, key: Key = None) -> models.Done:
    """Label items: all of them, or none."""
    by = name_of(me, body.by)
    check_theirs(one, me, body.ids)
    names = [body.ids] if isinstance(body.ids, str) else body.ids
    values = [body.labels] if isinstance(body.ids, str) else body.labels
    wanted = dict(zip(names, values, strict=False)) if isinstance(values, list) else {}

    def act() -> None:
        with one.campaign.together():
            check_undecided(one, me, wanted or dict.fromkeys(names, values))
            one.campaign.tell(body.ids, body.labels, by, change=body.change, note=body.note)

    return _done(one, me, once(one.campaign, key, {"asked", "told"}, wanted, act))


@router.post("/campaigns/{name}/skip", tags=["label"])
def skip(one: One, me: Me, body: models.IdsBody, key: Key = None) -> models.Done:
    """Put items aside; they come back when nothing else is left."""
    by = name_of(me, body.by)
    check_theirs(one, me, body.ids)
    return _done(
        one, me, once(one.campaign, key, {"skipped"}, _named(body.ids), lambda: one.campaign.skip(body.ids, by))
    )


@router.post("/campaigns/{name}/unsure", tags=["label"])
def unsure(one: One, me: Me, body: models.IdsBody, key: Key = None) -> models.Done:
    """Put items aside that cannot be decided on now."""
    by = name_of(me, body.by)
    check_theirs(one, me, body.ids)
    return _done(
        one, me, once(one.campaign, key, {"unsure"}, _named(body.ids), lambda: one.campaign.mark_unsure(body.ids, by))
    )


@router.post("/campaigns/{name}/release", tags=["label"])
def release(one: One, me: Me, body: models.ReleaseBody, key: Key = None) -> models.Done:
    """Give items back."""
    by = name_of(me, body.by)
    check_theirs(one, me, body.ids or ())
    wanted = None if body.ids is None else _named(body.ids)
    return _done(one, me, once(one.campaign, key, {"released"}, wanted, lambda: one.campaign.release(body.ids, by)))


@router.post("/campaigns/{name}/undo", tags=["label"])
def undo(one: One, me: Me, body: models.UndoBody, key: Key = None) -> models.Done:
    """Take back the last decisions; the items are on the table again."""
    by = body.by if body.by is None and me.may("adjudicator") else name_of(me, body.by or "me")
    undone: list[str] = []

    def act() -> None:
        with one.campaign.together():
            if by is not None and body.count > 0:
                check_undecided(one, me, dict.fromkeys(one.campaign.journal.ledger.last_decisions(body.count, by)))
            undone.extend(one.campaign.undo(body.count, by=by))

    return _done(one, me, once(one.campaign, key, {"undone"}, None, act), undone)


@seeing.get("/campaigns/{name}/image", tags=["label"], response_class=Response)
def image(one: One, me: Me, id: str, column: str = "image", shown: Mark = "") -> Response:
    """The picture in a column of an item."""
    data, kind = one.showcase.image(_visible(one, me, id, shown), column)
    return Response(data, media_type=kind)


@seeing.get("/campaigns/{name}/frame", tags=["label"], response_class=Response)
def frame(one: One, me: Me, id: str, shown: Mark = "") -> Response:
    """An item by the campaign's template, for a frame that runs nothing."""
    return Response(one.showcase.page(_visible(one, me, id, shown)), media_type="text/html; charset=utf-8")


# -- inside -------------------------------------------------------------------------------------------


def _view(one: Open, me: Person, item: Item) -> models.ItemView:
    """An item as someone may see it: annotators see no provenance."""
    if me.may("adjudicator"):
        return models.ItemView(**one.showcase.item(item))
    if is_double_blind(one, me) and item.nearest not in one.sight.ledger.known:
        # That an item is positive by now would reveal the other opinions to those who answered it.
        item = replace(item, nearest=None)
    return models.ItemView(**one.showcase.item(item, blind=True, shown_to=me.name))


def _many(me: Person, k: int) -> int:
    """How many items someone may have at once: an annotator shall not take them all."""
    return k if me.may("adjudicator") else min(k, _MOST_HELD)


def _items(one: Open, me: Person, found: Sequence[Item]) -> models.Items:
    stopped = None
    if not found:
        stands = one.sight.status()
        stopped = stands.stopped or stands.note or _NOTHING_LEFT
        if is_double_blind(one, me):
            # Whether all is settled, or how many positives there are, would tell what others said.
            stopped = _NOTHING_LEFT
    views = [_view(one, me, item) for item in found]
    return models.Items(items=views, counts=counts_for(one, me), stopped=stopped)


def _done(one: Open, me: Person, written: Written, ids: Sequence[str] = ()) -> models.Done:
    again = [name for kind, name, _ in written if kind == "undone" and name is not None]
    return models.Done(counts=counts_for(one, me), ids=[*ids, *again], repeated=bool(written))


def _named(ids: str | Sequence[str]) -> dict[str, Any]:
    return dict.fromkeys([ids] if isinstance(ids, str) else ids)


def _visible(one: Open, me: Person, name: str, mark: str) -> int:
    """The row of an item that someone may see: annotators what they were given, and what was shown with it.

    To an id that is neither they get the same answer, whatever it is: positive, negative, open, or of no item at all.
    """
    if not me.may_look and not one.showcase.was_shown(mark, name, me.name):
        check_theirs(one, me, name)
    row = one.campaign.pool.row(name)
    if one.campaign.pool.withdrawn[row] or one.sight.withheld([name]):
        raise InputError(f"id {name!r} was erased from the pool")
    return row
