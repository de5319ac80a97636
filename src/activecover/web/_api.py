"""The routes below /api: parse, call, show."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from activecover.campaign import Campaign, Item
from activecover.errors import InputError, StoreError
from activecover.home import archive, export_labels, restore
from activecover.learners import LEARNERS
from activecover.store import Ask
from activecover.web import _models as models
from activecover.web._desk import Desk, Open
from activecover.web._problems import Problem
from activecover.web._show import plain

T = TypeVar("T")
#: What one request may ask for at once.
_PAGE = 1000
_FRONTIER = 60
_EXPORTS = {"csv": "text/csv", "jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet"}

_PROBLEM: dict[str, Any] = {
    "model": models.ProblemDetails,
    "content": {"application/problem+json": {}},
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    code: {**_PROBLEM, "description": text}
    for code, text in {
        401: "No token, or a wrong one",
        404: "No such campaign",
        409: "It is there already",
        413: "Too large",
        422: "The request is wrong",
        501: "An optional part is not installed",
        503: "The store cannot be used now",
    }.items()
}

router = APIRouter(prefix="/api", responses=_RESPONSES)


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def _opened(request: Request, name: str) -> Open:
    return _desk(request).get(name)


TheDesk = Annotated[Desk, Depends(_desk)]
One = Annotated[Open, Depends(_opened)]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=128,
        pattern=r"^[\x21-\x7e]+$",
        description="A name for the request: made again under it, it counts once, after a restart too.",
    ),
]
Search = Annotated[str, Query(max_length=200)]
Offset = Annotated[int, Query(ge=0, le=2**53)]
Limit = Annotated[int, Query(ge=1, le=_PAGE)]


# -- campaigns ----------------------------------------------------------------------------------------


@router.get("/campaigns", tags=["campaigns"])
def list_campaigns(desk: TheDesk) -> dict[str, Any]:
    """All campaigns, and of those that are open how many items are in which state."""
    counts = {one.name: one.reader.counts() for one in desk.opened()}
    return {"campaigns": [{"name": name, "counts": counts.get(name)} for name in desk.names()]}


@router.post("/campaigns", status_code=201, tags=["campaigns"])
def create_campaign(desk: TheDesk, body: models.NewCampaign) -> dict[str, Any]:
    """Begin a campaign on an uploaded file."""
    made = desk.create(**body.model_dump())
    pool = made.campaign.pool
    return {"name": made.name, "rows": len(pool), "dimensions": pool.dimensions, "metric": pool.metric}


@router.delete("/campaigns/{name}", tags=["campaigns"])
def remove_campaign(
    desk: TheDesk, name: str, confirm: Annotated[str, Query(description="The name again.")]
) -> dict[str, Any]:
    """Remove a campaign for good; download its archive before."""
    if confirm != name:
        raise InputError(f"to remove {name!r}, confirm it by its name")
    desk.remove(name)
    return {"removed": name}


@router.get("/campaigns/{name}/archive", tags=["campaigns"], response_class=FileResponse)
def archive_campaign(desk: TheDesk, one: One) -> FileResponse:
    """Download a campaign, with its pool, as one portable file."""
    folder = desk.workspace()
    path = folder / "campaign.zip"
    try:
        archive(desk.home, one.name, path)
    except BaseException:
        desk.discard(folder)
        raise
    filename = f"{one.name}.activecover.zip"
    return FileResponse(
        path, media_type="application/zip", filename=filename, background=BackgroundTask(desk.discard, folder)
    )


@router.post("/restore", status_code=201, tags=["campaigns"])
def restore_campaign(desk: TheDesk, body: models.RestoreBody) -> dict[str, Any]:
    """Take in a campaign from an uploaded archive."""
    path = desk.taken_in(body.upload)
    name = restore(desk.home, path, body.name)
    path.unlink(missing_ok=True)
    return {"name": name}


@router.post("/uploads", status_code=201, tags=["set up"])
async def upload(desk: TheDesk, request: Request, name: Annotated[str, Query(max_length=300)]) -> dict[str, Any]:
    """Send a file: the body is its bytes."""
    kept, size = await desk.take_upload(name, request.stream())
    return {"upload": kept, "bytes": size}


@router.get("/uploads/{upload}/preview", tags=["set up"])
def preview(desk: TheDesk, upload: str, header: bool = True) -> dict[str, Any]:
    """What a file holds, and what would be made of it."""
    return desk.preview(upload, header)


@router.get("/learners", tags=["set up"])
def list_learners() -> list[dict[str, str]]:
    """What can decide which item is next."""
    return [{"name": entry.name, "summary": entry.summary} for entry in LEARNERS]


# -- labelling ----------------------------------------------------------------------------------------


@router.post("/campaigns/{name}/ask", tags=["label"])
def ask(one: One, body: models.AskBody) -> models.Items:
    """Lease items to someone; asking again returns the same ones until they are told."""
    return _items(one, one.campaign.ask(body.k, body.by))


@router.post("/campaigns/{name}/answer", tags=["label"])
def answer(one: One, body: models.AnswerBody, key: Key = None) -> models.Items:
    """Tell what an item is and lease the next."""
    wanted = {body.id: body.label}
    _once(one.campaign, key, {"asked", "told"}, wanted, lambda: one.campaign.tell(body.id, body.label, body.by))
    return _items(one, one.campaign.ask(body.k, body.by))


@router.get("/campaigns/{name}/ahead", tags=["label"])
def ahead(one: One, id: Annotated[str, Query(description="An item on the table.")]) -> dict[str, Any]:
    """The next item for either answer, so that it can be shown without waiting; nothing is leased by it."""
    found = one.campaign.ahead(id)
    return {"yes" if label else "no": one.showcase.item(item) for label, item in found.items()}


@router.post("/campaigns/{name}/tell", tags=["label"])
def tell(one: One, body: models.TellBody, key: Key = None) -> models.Done:
    """Say of items whether they are positive: all of them, or none."""
    names = [body.ids] if isinstance(body.ids, str) else body.ids
    values = [body.labels] if isinstance(body.ids, str) else body.labels
    wanted = dict(zip(names, values, strict=False)) if isinstance(values, list) else {}

    def act() -> None:
        one.campaign.tell(body.ids, body.labels, body.by, change=body.change, note=body.note)

    return _done(one, _once(one.campaign, key, {"asked", "told"}, wanted, act))


@router.post("/campaigns/{name}/skip", tags=["label"])
def skip(one: One, body: models.IdsBody, key: Key = None) -> models.Done:
    """Put items aside; they come back when nothing else is left."""
    act = lambda: one.campaign.skip(body.ids, body.by)  # noqa: E731
    return _done(one, _once(one.campaign, key, {"skipped"}, _named(body.ids), act))


@router.post("/campaigns/{name}/unsure", tags=["label"])
def unsure(one: One, body: models.IdsBody, key: Key = None) -> models.Done:
    """Say that items cannot be decided on now."""
    act = lambda: one.campaign.unsure(body.ids, body.by)  # noqa: E731
    return _done(one, _once(one.campaign, key, {"unsure"}, _named(body.ids), act))


@router.post("/campaigns/{name}/release", tags=["label"])
def release(one: One, body: models.ReleaseBody, key: Key = None) -> models.Done:
    """Give items back."""
    wanted = None if body.ids is None else _named(body.ids)
    act = lambda: one.campaign.release(body.ids, body.by)  # noqa: E731
    return _done(one, _once(one.campaign, key, {"released"}, wanted, act))


@router.post("/campaigns/{name}/undo", tags=["label"])
def undo(one: One, body: models.UndoBody, key: Key = None) -> models.Done:
    """Take back the last decisions; the items are on the table again."""
    undone: list[str] = []
    act = lambda: undone.extend(one.campaign.undo(body.count, by=body.by))  # noqa: E731
    written = _once(one.campaign, key, {"undone"}, None, act)
    return _done(one, written, undone)


@router.post("/campaigns/{name}/adjudicate", tags=["label"])
def adjudicate(one: One, body: models.AdjudicateBody, key: Key = None) -> models.Done:
    """Decide on an item on which people disagree."""
    act = lambda: one.campaign.adjudicate(body.id, body.label, body.by)  # noqa: E731
    return _done(one, _once(one.campaign, key, {"adjudicated"}, {body.id: body.label}, act))


# -- looking ------------------------------------------------------------------------------------------


@router.get("/campaigns/{name}/status", tags=["look"], responses={304: {"description": "As it was"}})
def status(one: One, request: Request, response: Response) -> Any:
    """How the campaign stands. With ``If-None-Match`` nothing is sent as long as nothing has changed."""
    return _fresh(one, request, response, lambda: one.campaign.status().as_dict())


@router.get("/campaigns/{name}/progress", tags=["look"], responses={304: {"description": "As it was"}})
def progress(one: One, request: Request, response: Response) -> Any:
    """Curves, people, and the bound on recall."""
    return _fresh(
        one,
        request,
        response,
        lambda: {
            **one.reader.progress(),
            "status": one.campaign.status().as_dict(),
            "agreement": dataclasses.asdict(one.campaign.agreement()),
        },
    )


@router.get("/campaigns/{name}/trace", tags=["look"])
def trace(one: One) -> dict[str, Any]:
    """What was asked and found, in order."""
    found = dataclasses.asdict(one.campaign.trace())
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()}


@router.get("/campaigns/{name}/labels", tags=["look"])
def labels(one: One, offset: Offset = 0, limit: Annotated[int, Query(ge=1, le=100_000)] = 100_000) -> dict[str, Any]:
    """The labels, in the order asked, a page at a time."""
    found = list(one.campaign.labels().items())
    return {"total": len(found), "labels": found[offset : offset + limit]}


@router.get("/campaigns/{name}/history", tags=["look"])
def history(
    one: One,
    search: Search = "",
    id: str | None = None,
    offset: Offset = 0,
    limit: Limit = 100,
    newest: bool = False,
) -> dict[str, Any]:
    """What happened, a page at a time; nothing is ever removed from it."""
    events = one.reader.events(search, id)
    if newest:
        events.reverse()
    return {"total": len(events), "events": events[offset : offset + limit]}


@router.get("/campaigns/{name}/items", tags=["look"])
def items(
    one: One,
    search: Search = "",
    state: Literal["positive", "negative", "skipped", "unsure", "leased", "waiting", "conflict"] | None = None,
    offset: Offset = 0,
    limit: Limit = 50,
) -> dict[str, Any]:
    """What was asked for, latest first."""
    found = one.reader.decisions(search, state)
    return {"total": len(found), "items": [_decision(one, ask) for ask in found[offset : offset + limit]]}


@router.get("/campaigns/{name}/item", tags=["look"])
def item(one: One, id: str | None = None, row: Annotated[int | None, Query(ge=0, le=2**53)] = None) -> dict[str, Any]:
    """One item of the pool, by its id or its row."""
    return one.showcase.any_item(_row(one.campaign, id, row))


@router.get("/campaigns/{name}/image", tags=["look"], response_class=Response)
def image(one: One, id: str) -> Response:
    """The image of an item."""
    data, kind = one.showcase.image(_row(one.campaign, id, None))
    return Response(data, media_type=kind)


@router.get("/campaigns/{name}/conflicts", tags=["look"])
def conflicts(one: One) -> dict[str, Any]:
    """Items on which people disagree, with who said what."""
    found = one.campaign.conflicts()
    return {"conflicts": [{"item": one.showcase.item(item), "opinions": said} for item, said in found]}


@router.get("/campaigns/{name}/agreement", tags=["look"])
def agreement(one: One) -> dict[str, Any]:
    """How far people agree who labelled the same items."""
    return dataclasses.asdict(one.campaign.agreement())


@router.get("/campaigns/{name}/export", tags=["look"], response_class=FileResponse)
def export(
    desk: TheDesk,
    one: One,
    format: Literal["csv", "jsonl", "parquet"] = "csv",
    which: Literal["labelled", "positive", "all"] = "labelled",
) -> FileResponse:
    """The labels as a file: who gave them, when, and why each item was asked for."""
    folder = desk.workspace()
    path = folder / f"labels.{format}"
    try:
        export_labels(one.campaign, path, which)
    except BaseException:
        desk.discard(folder)
        raise
    today = datetime.date.today().isoformat()
    return FileResponse(
        path,
        media_type=_EXPORTS[format],
        filename=f"{one.name}-{today}.{format}",
        background=BackgroundTask(desk.discard, folder),
    )


@router.get("/campaigns/{name}/map", tags=["look"], response_class=Response)
def map_points(one: One) -> Response:
    """The pool in two dimensions: a count (uint32), rows (uint32 each), places (float32 pairs)."""
    return Response(one.map.bytes(), media_type="application/octet-stream")


@router.get("/campaigns/{name}/map/states", tags=["look"], responses={304: {"description": "As it was"}})
def map_states(one: One, request: Request, response: Response) -> Any:
    """What was asked for and what would be next, each with its place on the map."""
    return _fresh(one, request, response, lambda: _map_states(one))


@router.put("/campaigns/{name}/template", tags=["set up"])
def set_template(desk: TheDesk, name: str, body: models.TemplateBody) -> dict[str, Any]:
    """Show items by a template, in a frame that runs nothing."""
    desk.set_template(name, body.template)
    return {"template": body.template}


# -- inside -------------------------------------------------------------------------------------------


def _once(
    campaign: Campaign,
    key: str | None,
    kinds: Collection[str],
    wanted: dict[str, Any] | None,
    act: Callable[[], None],
) -> list[tuple[str, str | None, int | None]]:
    """Do something, once for every key; what an earlier request of the same key wrote, if there was one."""
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
            raise Problem(f"Idempotency-Key {key!r} was used for another request: make a new one", 422)
    return written


def _named(ids: str | Sequence[str]) -> dict[str, Any]:
    return dict.fromkeys([ids] if isinstance(ids, str) else ids)


def _done(one: Open, written: Sequence[tuple[str, str | None, int | None]], ids: Sequence[str] = ()) -> models.Done:
    again = [name for kind, name, _ in written if kind == "undone" and name is not None]
    return models.Done(counts=one.reader.counts(), ids=[*ids, *again], repeated=bool(written))


def _items(one: Open, found: Sequence[Item]) -> models.Items:
    views = [models.ItemView(**one.showcase.item(item)) for item in found]
    stopped = None
    if not found:
        stands = one.campaign.status()
        stopped = stands.stopped or stands.note or "nothing is left to ask for"
    return models.Items(items=views, counts=one.reader.counts(), stopped=stopped)


def _fresh(one: Open, request: Request, response: Response, make: Callable[[], Any]) -> Any:
    """An answer that is sent only if something was written since the last one."""
    _, position = one.reader.follow()
    tag = f'"{id(one.campaign) & 0xFFFFFFFF:x}-{position}-{len(one.campaign.pool)}"'
    known = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
    if tag in known or "*" in known:
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return make()


def _decision(one: Open, ask: Ask) -> dict[str, Any]:
    row = int(one.campaign.pool.rows([ask.id])[0])
    return {
        "id": ask.id, "state": ask.state, "by": ask.by, "opinions": ask.opinions, "note": ask.note,
        "source": ask.source, "nearest": ask.nearest, "number": ask.number,
        "content": plain(one.campaign.pool.content(row)),
    }  # fmt: skip


def _row(campaign: Campaign, name: str | None, row: int | None) -> int:
    if name is not None:
        row = int(campaign.pool.rows([name])[0])
    if row is None or row >= len(campaign.pool):
        raise InputError(f"give an id, or a row below {len(campaign.pool)}")
    if campaign.pool.withdrawn[row]:
        raise InputError(f"id {campaign.pool.id(row)!r} was erased from the pool")
    return row


def _map_states(one: Open) -> dict[str, Any]:
    pairs = one.reader.map_states()
    try:
        proposed = one.campaign.learner.propose(_FRONTIER, one.reader.held())
        pairs += [(row, "frontier") for row in proposed.rows.tolist()]
    except StoreError:
        pass  # another process runs the learner: where it goes next is not known here
    gone = one.campaign.pool.withdrawn
    pairs = [(row, state) for row, state in pairs if not gone[row]]
    rows = [row for row, _ in pairs]
    places = one.map.place(rows)
    return {
        "rows": rows,
        "states": [state for _, state in pairs],
        "x": [round(float(value), 4) for value in places[:, 0]],
        "y": [round(float(value), 4) for value in places[:, 1]],
    }
