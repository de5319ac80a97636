"""Routes for those who look after a campaign: status, history, conflicts, exports."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from activecover.campaign import Campaign, Snapshot, named_positive
from activecover.errors import InputError
from activecover.intake import is_picture
from activecover.stopping import Assessment
from activecover.store import Ask, Line
from activecover.web import _models as models
from activecover.web._desk import Desk, Open
from activecover.web._map import Way
from activecover.web._routes import (
    LOOKING,
    RESPONSES,
    UNCHANGED,
    WITHHELD,
    Key,
    Limit,
    Me,
    Offset,
    One,
    Search,
    TheDesk,
    at_least,
    fresh,
    may_see_blind,
    name_of,
    once,
    promise_seen_by,
)
from activecover.workspace import Person, export_labels, sign_certificate

_FRONTIER = 60
_EXPORTS = {"csv": "text/csv", "jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet"}

router = APIRouter(prefix="/api", responses=RESPONSES, dependencies=[LOOKING])
_SETTLING = [at_least("adjudicator")]


@router.post("/campaigns/{name}/adjudicate", tags=["label"], dependencies=_SETTLING)
def adjudicate(one: One, me: Me, body: models.AdjudicateBody, key: Key = None) -> models.Done:
    """Decide on an item on which people disagree, or decide otherwise on one that was decided so."""
    by = name_of(me, body.by)
    act = lambda: one.campaign.adjudicate(body.id, body.label, by)  # noqa: E731
    written = once(one.campaign, key, {"adjudicated"}, {body.id: body.label}, act)
    return models.Done(counts=one.sight.counts(), repeated=bool(written))


@router.get("/campaigns/{name}/suspicious", tags=["look"])
def suspicious(one: One) -> dict[str, Any]:
    """Positives that deserve a second look, and why."""
    found = one.campaign.suspects()
    return {"suspicious": [{"item": one.showcase.item(doubt.item), "reason": doubt.reason} for doubt in found]}


@router.post("/campaigns/{name}/confirm", tags=["label"], dependencies=_SETTLING)
def confirm(one: One, me: Me, body: models.IdsBody, key: Key = None) -> models.Done:
    """Confirm that suspicious positives are positive."""
    by = name_of(me, body.by)
    written = once(one.campaign, key, {"confirmed"}, None, lambda: one.campaign.confirm(body.ids, by))
    return models.Done(counts=one.sight.counts(), repeated=bool(written))


@router.post("/campaigns/{name}/ungroup", tags=["label"], dependencies=_SETTLING)
def ungroup(one: One, me: Me, body: models.IdsBody, key: Key = None) -> models.Done:
    """Take items out of their groups of duplicates."""
    by = name_of(me, body.by)
    written = once(one.campaign, key, {"ungrouped"}, None, lambda: one.campaign.ungroup(body.ids, by))
    return models.Done(counts=one.sight.counts(), repeated=bool(written))


@router.get("/campaigns/{name}/status", tags=["look"], responses=UNCHANGED)
def status(one: One, request: Request, response: Response) -> Any:
    """The status of the campaign. With ``If-None-Match`` nothing is sent as long as nothing has changed."""
    return fresh(one, request, response, lambda: one.sight.status().as_dict())


@router.get("/campaigns/{name}/progress", tags=["look"], responses=UNCHANGED)
def progress(one: One, me: Me, request: Request, response: Response) -> Any:
    """Curves, people, and the bound on recall, which is for owners as long as it is not certified."""

    def make() -> dict[str, Any]:
        shown = not one.sight.blind or may_see_blind(me)
        return _progress(one.campaign.sight.snapshot(bound=shown), withheld=not shown)

    return fresh(one, request, response, make)


@router.get("/campaigns/{name}/assess", tags=["look"])
def assess(one: One, me: Me) -> dict[str, Any]:
    """What is proved of recall by now, on what assumptions, and the price of the target."""
    with promise_seen_by(one, me):
        return finite(one.campaign.assess())


@router.get("/campaigns/{name}/certificate", tags=["look"])
def certificate(desk: TheDesk, one: One, me: Me) -> dict[str, Any]:
    """The statement to keep, from a log that was found to be as it was written."""
    with promise_seen_by(one, me):
        return sign_certificate(desk.home, one.campaign.certificate(name=one.name))


@router.get("/campaigns/{name}/trace", tags=["look"])
def trace(one: One) -> dict[str, Any]:
    """What was asked and found, in order."""
    found = dataclasses.asdict(one.sight.trace())
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()}


@router.get("/campaigns/{name}/records", tags=["look"])
def records(one: One, offset: Offset = 0, limit: Limit = 1000) -> dict[str, Any]:
    """One record per item that was asked for: its label, who gave it, when, and why it was asked."""
    found = one.sight.records()
    return {"total": len(found), "records": found[offset : offset + limit]}


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
    wanted = search.casefold().strip()
    events = [line for line in one.sight.events(id) if not wanted or wanted in _words(line)]
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
    blind, found = one.sight.blind, _decisions(one, search.casefold().strip(), state)
    page = found[offset : offset + limit]
    gone = one.sight.withheld([ask.id for ask in page])
    shown = [_decision(one, ask, blind=blind, gone=ask.id in gone) for ask in page]
    return {"total": len(found), "items": shown}


@router.get("/campaigns/{name}/item", tags=["look"])
def item(one: One, id: str | None = None, row: Annotated[int | None, Query(ge=0, le=2**53)] = None) -> dict[str, Any]:
    """One item of the pool, by its id or its row."""
    return one.showcase.any_item(_row(one.campaign, id, row))


@router.get("/campaigns/{name}/conflicts", tags=["look"])
def conflicts(one: One) -> dict[str, Any]:
    """Items on which people disagree, with who said what."""
    found = one.campaign.conflicts()
    return {"conflicts": [{"item": one.showcase.item(item), "opinions": said} for item, said in found]}


@router.get("/campaigns/{name}/agreement", tags=["look"])
def agreement(one: One) -> dict[str, Any]:
    """The agreement of people who labelled the same items."""
    return dataclasses.asdict(one.campaign.agreement())


@router.get("/campaigns/{name}/export", tags=["look"], response_class=FileResponse)
def export(
    desk: TheDesk,
    one: One,
    format: Literal["csv", "jsonl", "parquet"] = "csv",
    which: Literal["labelled", "positive", "all"] = "labelled",
    raw: bool = False,
) -> FileResponse:
    """The labels as a file: who gave them, when, and why each item was asked for.

    In CSV an apostrophe stands before text that a spreadsheet would take for a formula, unless ``raw``.
    """
    today = datetime.date.today().isoformat()
    return sent_file(
        desk,
        lambda path: export_labels(one.campaign, path, which, blind=one.campaign.guarantee.blind, raw=raw),
        f"{one.name}-{today}.{format}",
        _EXPORTS[format],
    )


@router.get("/campaigns/{name}/map", tags=["look"], response_class=Response)
def map_points(one: One, me: Me, by: Way = "pca") -> Response:
    """The pool in two dimensions: a count (uint32), rows (uint32 each), places (float32 pairs)."""
    _check_map(one, me)
    return Response(one.map(by).bytes(), media_type="application/octet-stream")


@router.get("/campaigns/{name}/map/states", tags=["look"], responses=UNCHANGED)
def map_states(one: One, me: Me, request: Request, response: Response, by: Way = "pca") -> Any:
    """What was asked for and what would be next, each with its place on the map."""
    _check_map(one, me)
    return fresh(one, request, response, lambda: _map_states(one, by))


# -- inside -------------------------------------------------------------------------------------------


def sent_file(desk: Desk, write: Callable[[Path], Any], filename: str, kind: str) -> FileResponse:
    """A file that is made, sent, and removed."""
    folder = desk.workspace()
    path = folder / f"made{Path(filename).suffix}"
    try:
        write(path)
    except BaseException:
        desk.discard(folder)
        raise
    return FileResponse(path, media_type=kind, filename=filename, background=BackgroundTask(desk.discard, folder))


def finite(assessment: Assessment) -> dict[str, Any]:
    """An assessment as JSON can hold it."""
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in assessment.as_dict().items()}
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in plain.items()
    }


def _progress(shown: Snapshot, *, withheld: bool) -> dict[str, Any]:
    """A snapshot as the page takes it."""
    curve = dataclasses.asdict(shown.curve)
    curve["distance"] = [{"label": label, "distance": far} for label, far in curve.pop("distances")]
    return {
        "rows": shown.status.rows, **curve, "people": [dataclasses.asdict(person) for person in shown.people],
        "bound": None if shown.bound is None else finite(shown.bound.assessment),
        "bounds": [] if shown.bound is None else shown.bound.course,
        "withheld": WITHHELD if withheld else None,
        "status": shown.status.as_dict(), "agreement": dataclasses.asdict(shown.agreement),
    }  # fmt: skip


def _words(line: Line) -> str:
    return " ".join(str(line.get(key, "")) for key in ("event", "id", "by", "note", "source")).casefold()


def _decisions(one: Open, wanted: str, state: str | None) -> list[Ask]:
    """What was asked for, latest first; with what a search finds in ids, people, notes and contents."""
    found = [ask for ask in one.sight.decisions() if state is None or ask.state == state]
    if not wanted:
        return found
    gone = one.sight.withheld([ask.id for ask in found])
    return [ask for ask in found if _holds(one.campaign, ask, wanted, ask.id not in gone)]


def _holds(campaign: Campaign, ask: Ask, wanted: str, there: bool) -> bool:
    if any(wanted in text.casefold() for text in (ask.id, ask.by, ask.note or "")):
        return True
    values = campaign.pool.content(campaign.pool.row(ask.id)).values() if there else ()
    return any(wanted in str(value).casefold() for value in values if not is_picture(str(value)))


def _decision(one: Open, ask: Ask, *, blind: bool, gone: bool) -> dict[str, Any]:
    row = int(one.campaign.pool.rows([ask.id])[0])
    told = {"source": ask.source, "nearest": named_positive(ask.nearest), "number": ask.number}
    return {
        "id": ask.id, "state": ask.state, "by": ask.by, "opinions": ask.opinions, "judge": ask.judge, "note": ask.note,
        "content": {} if gone else one.showcase.content(row), "images": [] if gone else one.showcase.images(row),
        **(dict.fromkeys(told) if blind else told),
    }  # fmt: skip


def _row(campaign: Campaign, name: str | None, row: int | None) -> int:
    if name is not None:
        row = int(campaign.pool.rows([name])[0])
    if row is None or row >= len(campaign.pool):
        raise InputError(f"give an id, or a row below {len(campaign.pool)}")
    if campaign.pool.withdrawn[row] or campaign.eraser.withheld([campaign.pool.id(row)]):
        raise InputError(f"id {campaign.pool.id(row)!r} was erased from the pool")
    return row


def _check_map(one: Open, me: Person) -> None:
    """Refuse a map that would reveal control rows: forgotten rows are missing on it, and control rows are forgotten later."""
    if one.campaign.journal.ledger.forgets:
        with promise_seen_by(one, me):
            return


def _map_states(one: Open, by: Way) -> dict[str, Any]:
    pairs = one.sight.states()
    pairs += [(row, "frontier") for row in one.sight.upcoming(_FRONTIER)]
    gone = one.campaign.pool.withdrawn
    pairs = [(row, state) for row, state in pairs if not gone[row]]
    rows = [row for row, _ in pairs]
    places = one.map(by).place(rows)
    return {
        "rows": rows,
        "states": [state for _, state in pairs],
        "x": [round(float(value), 4) for value in places[:, 0]],
        "y": [round(float(value), 4) for value in places[:, 1]],
    }
