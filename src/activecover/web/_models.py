"""What requests and answers look like."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from activecover.workspace import Role

By = Annotated[str, Field(description="Who it is.", max_length=200)]
#: Passed on as it is: the campaign says in its own words what is no label.
Label = Annotated[Any, Field(description="Whether the item is positive.", json_schema_extra={"type": "boolean"})]
Shown = Annotated[str | None, Field(description="An item that `ahead` has shown them: it comes first, if it is free.")]
Ids = Annotated[str | list[str], Field(description="An id, or several.")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PersonBody(_Body):
    """Somebody."""

    name: Annotated[str, Field(max_length=200)]


class RoleBody(PersonBody):
    """Somebody, and what they may do."""

    role: Role | None


class NewPerson(RoleBody):
    """Somebody new: what they may do on the whole server, and in single campaigns."""

    role: Role | None = None
    rights: Annotated[dict[str, Role], Field(max_length=1000)] = {}


class AskBody(_Body):
    """Lease items."""

    k: Annotated[int, Field(ge=-(2**53), le=2**53, description="How many; annotators get 100 at most.")] = 1
    by: By = "me"
    shown: Shown = None


class AnswerBody(_Body):
    """Tell what an item is and ask for the next."""

    id: str
    label: Label
    by: By = "me"
    k: Annotated[int, Field(ge=1, le=2**53)] = 1
    shown: Shown = None


class TellBody(_Body):
    """Label items."""

    ids: Ids
    labels: Annotated[Any, Field(description="A label, or as many as there are ids.")]
    by: By = "me"
    change: bool = False
    note: Annotated[str | None, Field(max_length=10_000)] = None


class IdsBody(_Body):
    """Items to put aside."""

    ids: Ids
    by: By = "me"


class ReleaseBody(_Body):
    """Items to give back; all that someone has if none are named."""

    ids: str | list[str] | None = None
    by: By = "me"


class UndoBody(_Body):
    """Decisions to take back."""

    count: Annotated[int, Field(ge=-(2**53), le=2**53)] = 1
    by: Annotated[str | None, Field(max_length=200)] = None


class AdjudicateBody(_Body):
    """A decision between people who disagree."""

    id: str
    label: Label
    by: By = "me"


class NewCampaign(_Body):
    """A campaign on an uploaded file."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    upload: str
    embed: str = "auto"
    columns: list[str] | None = None
    id_column: str | None = None
    label_column: str | None = None
    show: list[str] | None = None
    metric: Literal["euclidean", "cosine", "jaccard"] | None = None
    header: bool = True
    learner: str | None = None
    explore: Annotated[int | None, Field(ge=0, le=10**9)] = None
    known: list[str] = []
    seed: Annotated[int | None, Field(ge=0, le=2**53)] = None
    overlap: Annotated[int | None, Field(ge=1, le=100)] = None
    lease: Annotated[float | None, Field(ge=1, le=10**9)] = None
    budget: Annotated[int | None, Field(ge=1, le=10**12)] = None
    target: Annotated[int | None, Field(ge=1, le=10**12)] = None
    certify: Annotated[str | None, Field(description="Recall and confidence to certify: 0.95@0.95.")] = None
    rule: Annotated[str | None, Field(description="By which rule; a blind control sample by default.")] = None
    insure: Annotated[float | None, Field(description="Share of the asks that stay random draws.")] = None
    duplicates: Annotated[bool, Field(description="Ask once for items that are the same.")] = False
    forget_negatives: bool = False
    template: str | None = None


class LearnerBody(_Body):
    """A learner, by name, and its parameters."""

    learner: Annotated[str, Field(max_length=200)]
    parameters: Annotated[dict[str, Any], Field(max_length=100)] = {}


class RestoreBody(_Body):
    """A campaign from an uploaded archive; with a public key, one that was signed with that key."""

    upload: str
    name: Annotated[str | None, Field(max_length=100)] = None
    key: Annotated[str | None, Field(max_length=200)] = None


class ForgetBody(_Body):
    """What to forget; with ``now`` also the last decisions, which can then no longer be undone."""

    now: bool = False


class Forgetting(BaseModel):
    """What a campaign has forgotten, what it could forget now, and what it keeps, by the reason."""

    forgets: bool
    forgotten: int
    final: list[str]
    kept: dict[str, list[str]]


class TemplateBody(_Body):
    """How items are shown: HTML with ``{{ column }}``; none for the page's own way."""

    template: str | None = None


class ProblemDetails(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: Annotated[str, Field(description="One line: what is wrong, where, what to do.")]
    request: str | None = None


class Myself(BaseModel):
    """The person that the server recognises; without a name, people say who they are."""

    name: str | None
    role: Annotated[Role | None, Field(description="On the whole server.")]
    rights: Annotated[dict[str, Role], Field(description="In single campaigns.")]
    session: Annotated[bool, Field(description="Whether there is a session to end.")] = False


class Member(BaseModel):
    """Somebody who may use the server."""

    name: str
    role: Role | None
    rights: dict[str, Role]


class Everyone(BaseModel):
    """All who may use the server."""

    people: list[Member]


class Token(BaseModel):
    """Somebody's token, which cannot be shown again."""

    name: str
    token: str


class Removed(BaseModel):
    """It is gone."""

    removed: str


class ItemView(BaseModel):
    """An item to decide on, and how to show it; why it was chosen is not for annotators."""

    id: str
    content: dict[str, Any]
    source: str | None
    distance: float | None
    nearest: str | None
    outside: Annotated[int | None, Field(description="Number of the nearest positive, if it is from outside.")] = None
    reason: str | None
    because: Annotated[str | None, Field(description="What the learner says of its choice.")] = None
    duplicates: Annotated[list[str], Field(description="Items that get the same label, as they are one with it.")] = []
    view: dict[str, Any]
    beside: dict[str, Any] | None


class Ahead(BaseModel):
    """What comes next, by answer, as far as it is known."""

    yes: ItemView | None = None
    no: ItemView | None = None
    aside: ItemView | None = None


class Items(BaseModel):
    """Items on someone's table, and how many there are of which state."""

    items: list[ItemView]
    counts: dict[str, int]
    stopped: str | None = None


class Done(BaseModel):
    """It is done, and kept."""

    counts: dict[str, int]
    ids: list[str] = []
    repeated: Annotated[bool, Field(description="An earlier request of the same key had done it.")] = False
