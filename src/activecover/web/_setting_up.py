"""Routes for owners: begin campaigns, keep them, remove them."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse

from activecover.errors import InputError
from activecover.learners import LEARNERS
from activecover.stopping import RULES, parse_guarantee, valid_rules
from activecover.web import _models as models
from activecover.web._desk import calling
from activecover.web._looking import sent_file
from activecover.web._routes import RESPONSES, SERVER_OWNER, Key, One, TheDesk, at_least, problems
from activecover.workspace import PublicKey, archive, privacy_check, restored

router = APIRouter(prefix="/api", responses=RESPONSES, dependencies=[at_least("owner")])
_TAKEN = problems(_409="It is there already")


@router.post("/campaigns", status_code=201, tags=["campaigns"], responses=_TAKEN)
def create_campaign(desk: TheDesk, body: models.NewCampaign, key: Key = None) -> dict[str, Any]:
    """Begin a campaign on an uploaded file."""
    if body.rule is not None and body.certify is None:
        raise InputError("rule says how to certify: say what with certify, as in 0.95@0.95")
    promise = None if body.certify is None else parse_guarantee(body.certify, body.rule or "qbcb")
    how = body.model_dump(exclude={"rule", "insure"})
    made = desk.create(**{**how, "random_share": body.insure, "certify": promise}, request=key)
    pool = made.campaign.pool
    return {"name": made.name, "rows": len(pool), "dimensions": pool.dimensions, "metric": pool.metric}


@router.delete("/campaigns/{name}", tags=["campaigns"])
def remove_campaign(
    desk: TheDesk, name: str, confirm: Annotated[str, Query(description="The name again.")]
) -> models.Removed:
    """Remove a campaign for good; download its archive before."""
    if confirm != name:
        raise InputError(f"to remove {name!r}, confirm it by its name")
    desk.remove(name)
    return models.Removed(removed=name)


@router.post("/campaigns/{name}/learner", tags=["campaigns"])
def change_learner(one: One, body: models.LearnerBody) -> models.LearnerBody:
    """Let another learner propose from now on; all labels are kept."""
    one.campaign.change_learner(body.learner, **body.parameters)
    return models.LearnerBody(learner=one.campaign.learner_name, parameters=body.parameters)


@router.get("/campaigns/{name}/forgetting", tags=["campaigns"])
def forgetting(one: One) -> models.Forgetting:
    """How many negatives are forgotten, and which are not, and why."""
    return _forgetting(one)


@router.post("/campaigns/{name}/forget", tags=["campaigns"])
def forget(desk: TheDesk, one: One, body: models.ForgetBody) -> models.Forgetting:
    """Overwrite negatives that are final; they can no longer be undone."""
    desk.forget(one.name, now=body.now)
    return _forgetting(one)


@router.get("/campaigns/{name}/privacy", tags=["campaigns"], dependencies=[SERVER_OWNER])
def privacy(desk: TheDesk, one: One) -> dict[str, Any]:
    """Whether anything is left of what was forgotten, in all files of the home."""
    return privacy_check(desk.home, one.name).as_dict()


@router.get("/campaigns/{name}/archive", tags=["campaigns"], response_class=FileResponse)
def archive_campaign(desk: TheDesk, one: One) -> FileResponse:
    """Download a campaign, with its pool, as one portable file."""
    return sent_file(
        desk, lambda path: archive(desk.home, one.name, path), f"{one.name}.activecover.zip", "application/zip"
    )


@router.post("/restore", status_code=201, tags=["campaigns"], responses=_TAKEN)
def restore_campaign(desk: TheDesk, body: models.RestoreBody) -> dict[str, Any]:
    """Take in a campaign from an uploaded archive: all of it is checked before anything is kept."""
    key = None if body.key is None else PublicKey.decode(body.key)
    path = desk.taken_in(body.upload)
    with calling(path, "the archive"):
        name, signer = restored(desk.home, path, body.name, key=key)
    path.unlink(missing_ok=True)
    return {"name": name, "signature": signer.note("archive")}


@router.post(
    "/uploads",
    status_code=201,
    tags=["set up"],
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
        }
    },
)
async def upload(desk: TheDesk, request: Request, name: Annotated[str, Query(max_length=300)]) -> dict[str, Any]:
    """Send a file: the body is its bytes."""
    length = request.headers.get("content-length", "")
    kept, size = await desk.take_upload(name, request.stream(), int(length) if length.isdigit() else 0)
    return {"upload": kept, "bytes": size}


@router.delete("/uploads/{upload}", tags=["set up"])
def drop_upload(desk: TheDesk, upload: str) -> models.Removed:
    """Erase a file that is not going to be used; what is not used for an hour is erased anyway."""
    desk.drop_upload(upload)
    return models.Removed(removed=upload)


@router.get("/uploads/{upload}/preview", tags=["set up"])
def preview(desk: TheDesk, upload: str, header: bool = True) -> dict[str, Any]:
    """What a file holds, and what would be made of it."""
    return desk.preview(upload, header)


@router.get("/learners", tags=["set up"])
def list_learners() -> list[dict[str, str]]:
    """What can decide which item is next."""
    return [{"name": entry.name, "summary": entry.summary} for entry in LEARNERS]


@router.get("/rules", tags=["set up"])
def list_rules() -> list[dict[str, str]]:
    """What can prove how much was found."""
    return [{"name": entry.name, "summary": entry.summary} for entry in RULES if entry.name in valid_rules()]


def _forgetting(one: One) -> models.Forgetting:
    stands = one.campaign.eraser.status()
    return models.Forgetting(**{**dataclasses.asdict(stands), "forgotten": len(stands.forgotten)})


@router.put("/campaigns/{name}/template", tags=["set up"])
def set_template(desk: TheDesk, name: str, body: models.TemplateBody) -> models.TemplateBody:
    """Show items by a template, in a frame that runs nothing."""
    desk.set_template(name, body.template)
    return body
