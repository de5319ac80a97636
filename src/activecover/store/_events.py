"""The events of a campaign: what each kind holds, and how a log's lines are read as events and events written.

A log stores *lines*: JSON objects, hashed as they stand. An :class:`Event` is what a line means. Reading checks every
field, so whatever gets an event may rely on its types. Fields that this version does not know are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from activecover.errors import LARGEST_COUNT, StoreError

#: What JSON can hold.
JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
#: An event as a log stores it. Its position is ``seq``, its kind ``event``.
Line: TypeAlias = "dict[str, JSON]"
#: The parameters of a rule or a learner, as its own room writes them.
Parameters: TypeAlias = dict[str, Any]

#: Of the events; a log of another format is refused.
FORMAT = 1

Count = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]
Time = int | float
Label = Literal[0, 1]
Key = Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]


def _tag(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("_")


class Event(Struct, kw_only=True, tag_field="event", tag=_tag):
    """Something that happened in a campaign.

    Examples
    --------
    >>> told = read_event({"seq": 7, "event": "told", "id": "a", "label": 1, "by": "ann"})
    >>> told.seq, told.label
    (7, 1)
    >>> line_of(told)
    {'event': 'told', 'id': 'a', 'by': 'ann', 'label': 1}
    """

    #: Its position in the log; the log gives it.
    seq: int = -1
    at: Time | None = None
    #: The name of the request that wrote it.
    request: str | None = None
    id: str | None = None
    by: str | None = None

    #: Fields that are written even if they are None.
    nulls: ClassVar[frozenset[str]] = frozenset()

    @property
    def kind(self) -> str:
        """What the log calls this kind of event."""
        return str(self.__struct_config__.tag)


class Created(Event, kw_only=True):
    """The campaign began, with these settings."""

    nulls = frozenset({"outside", "duplicates", "certify", "insure"})

    format: int
    rows: Count
    #: Hashes of the pool: of its ids, its vectors and its contents.
    pool: dict[str, str]
    learner: str
    seed: Count
    explore: Count | list[Count]
    #: A hash of the known positives from outside the pool.
    outside: str | None = None
    overlap: Annotated[int, Meta(ge=1, le=LARGEST_COUNT)] = 1
    forgets: bool | None = False
    duplicates: Parameters | None = None
    certify: Parameters | None = None
    #: The share of the asks that are random draws, under the name that logs have for it.
    insure: Time | None = None
    key: Key | None = None
    budget: Count | None = None
    target: Count | None = None
    lease: Time | None = None

    def __post_init__(self) -> None:
        _check_marks(self.pool)


class Known(Event, kw_only=True):
    """An item is known to be positive from the start."""

    id: str


class Asked(Event, kw_only=True):
    """Someone was asked for an item."""

    nulls = frozenset({"probability", "expires"})

    id: str
    by: str
    number: Count
    source: str
    #: The learner, or the stopping rule that needed the draw.
    rule: str | None = None
    #: The probability of being drawn; 1 if nothing was left to chance, None if unknown.
    probability: Time | None = None
    #: How many rows were open to the draw.
    open: Count | None = None
    #: How long the log was.
    position: Count | None = None
    batch: Count
    expires: Time | None = None
    #: The positive that it was proposed for: an item, or the number of one from outside the pool. Earlier versions
    #: wrote the latter as ``known positive 1 from outside``, which is the id of no item.
    nearest: str | int | None = None


class Told(Event, kw_only=True):
    """Someone labelled an item."""

    id: str
    by: str
    label: Label
    note: str | None = None


class Skipped(Event, kw_only=True):
    """Someone skipped an item."""

    id: str
    by: str


class Unsure(Event, kw_only=True):
    """Someone could not decide on an item."""

    id: str
    by: str


class Released(Event, kw_only=True):
    """Someone gave an item back, or their lease expired."""

    id: str
    by: str
    why: str | None = None


class Undone(Event, kw_only=True):
    """Someone's decision was taken back, and the item leased to them again."""

    nulls = frozenset({"expires"})

    id: str
    by: str
    expires: Time | None = None


class Shared(Event, kw_only=True):
    """Someone was asked for a further opinion on an item."""

    nulls = frozenset({"expires"})

    id: str
    by: str
    expires: Time | None = None


class Adjudicated(Event, kw_only=True):
    """Someone decided between opinions that differ."""

    id: str
    by: str
    label: Label


class Withdrawn(Event, kw_only=True):
    """An item was erased from the pool."""

    id: str


class Forgotten(Event, kw_only=True):
    """A negative was forgotten: its vector and contents were overwritten."""

    id: str


class Grown(Event, kw_only=True):
    """Rows were added to the pool."""

    rows: Count
    pool: dict[str, str]

    def __post_init__(self) -> None:
        _check_marks(self.pool)


class Grouped(Event, kw_only=True):
    """Duplicates were found among the first rows of the pool; the first of each group stands for the others."""

    rows: Count
    groups: list[Annotated[list[str], Meta(min_length=2)]]


class Ungrouped(Event, kw_only=True):
    """An item was taken out of its group of duplicates."""

    id: str
    by: str


class Confirmed(Event, kw_only=True):
    """Someone looked at a positive again and agreed."""

    id: str
    by: str


class Reached(Event, kw_only=True):
    """The learner proposed a control row that had been drawn before."""

    id: str
    number: Count
    source: str


class Outside(Event, kw_only=True):
    """Known positives from outside the pool were added: a hash of all of them, and how many there are."""

    outside: str
    rows: Count


class LearnerChanged(Event, kw_only=True):
    """From now on another learner proposes."""

    learner: str
    params: Parameters | None = None


KINDS: dict[str, type[Event]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        Created, Known, Asked, Told, Skipped, Unsure, Released, Undone, Shared, Adjudicated, Withdrawn, Forgotten,
        Grown, Grouped, Ungrouped, Confirmed, Reached, Outside, LearnerChanged,
    )
}  # fmt: skip


def read_event(line: Mapping[str, Any]) -> Event:
    """The event that a line of a log stands for; a damaged or unknown one is refused."""
    kind = line.get("event")
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise StoreError(f"event {line.get('seq')}: unknown kind {kind!r}; was it written by a newer version?")
    if cls is Created and line.get("format") != FORMAT:
        raise StoreError(
            f"event {line.get('seq')}: the label log has format {line.get('format')}, this version reads {FORMAT}"
        )
    try:
        return msgspec.convert(line, cls)
    except (msgspec.ValidationError, OverflowError) as wrong:
        name = _field_of(str(wrong), line)
        raise damaged(line.get("seq"), kind, f"{name} {line.get(name)!r} is damaged") from wrong


def line_of(event: Event) -> Line:
    """An event as a log stores it, without its position, which the log adds."""
    fields: Line = msgspec.to_builtins(event)
    del fields["seq"]
    return {name: value for name, value in fields.items() if value is not None or name in event.nulls}


def damaged(seq: object, kind: object, what: str) -> StoreError:
    """The error for an event that cannot be."""
    return StoreError(f"event {seq} ({kind}): {what}; restore the log from a copy")


def _check_marks(pool: Mapping[str, str]) -> None:
    if not {"ids", "vectors"} <= pool.keys():
        raise ValueError("`pool`")


def _field_of(message: str, line: Mapping[str, Any]) -> str:
    """The field that a message of msgspec is about."""
    found = re.search(r"`\$\.(\w+)", message) or re.search(r"`(\w+)`", message)
    return found[1] if found else next(iter(line))
