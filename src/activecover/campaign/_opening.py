"""Beginning a campaign, and checking that a log belongs to what it is opened with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from activecover.campaign._grouping import grouping_of
from activecover.campaign._journal import NOT_KEPT, Journal, marks_of
from activecover.campaign._settings import Settings
from activecover.errors import ActiveCoverError, InputError, StoreError
from activecover.learners import Learner, make_learner
from activecover.pool import Duplicates, Pool, StoredPool, Vectors, VectorsLike
from activecover.store import Event, EventLog, Ledger, events


def create(journal: Journal, settings: Settings, known: Sequence[str], outside: Vectors | None) -> list[Event]:
    """The first events of a campaign, which the ledger of the journal already holds."""
    pool = journal.pool
    marks = marks_of(pool, forgets=bool(settings.forget_negatives))
    created = settings.created(rows=len(pool), marks=marks, outside=_mark(pool, outside))
    first: list[Event] = [created]
    if settings.duplicates is not None:
        first.append(grouping_of(pool, Duplicates.from_dict(settings.duplicates), Ledger()))
    journal.ledger = Ledger(first)
    _number(journal, known)
    return [*first, *(events.Known(id=name) for name in dict.fromkeys(known))]


def check_same(journal: Journal, given: Settings, known: Sequence[str], outside: Vectors | None) -> Settings:
    """The settings that hold for a log that was loaded; one that belongs to another pool or settings is refused."""
    ledger, pool = journal.ledger, journal.pool
    created = ledger.created
    if created is None:
        raise StoreError("the label log has no beginning; restore it from a copy")
    if created.rows > len(pool):
        raise InputError(f"the label log is of a pool of {created.rows} rows, this one has {len(pool)}")
    _check_pool(pool, created)
    if (ledger.outside or created.outside) != _mark(pool, outside):
        raise InputError("the label log was made with other known positives from outside: give the same ones")
    recorded = Settings.of(created)
    settings = given.reopened(recorded, ledger.learner)
    if known and list(dict.fromkeys(known)) != list(ledger.known):
        raise InputError("the label log was made with other known positives: start a new log")
    pool.rows(list(ledger.asks))
    _number(journal, list(ledger.known))
    return settings


def build_of(journal: Journal, settings: Settings, own: Learner | None) -> Callable[[], Learner]:
    """What builds the learner that the log names; a learner of the user's own has to be given."""
    if own is None and "(" in journal.ledger.learner:
        raise InputError(f"the label log was made with a learner of your own: give it again ({journal.ledger.learner})")

    def build() -> Learner:
        ledger = journal.ledger
        if own is not None and ledger.learner_changed is None:
            return own
        params = {} if ledger.learner_changed is None else ledger.learner_changed.params or {}
        return make_learner(ledger.learner, explore=_sample(journal, settings.explore), **params)

    return build


def encode_outside(pool: Pool, vectors: VectorsLike) -> Vectors:
    """Known positives from outside the pool as its own rows are stored."""
    try:
        return pool.encode(vectors)
    except InputError as wrong:
        raise InputError(f"known positives from outside: {wrong}") from wrong


def _number(journal: Journal, known: Sequence[str]) -> None:
    journal.pool.rows(known)
    for place, name in enumerate(dict.fromkeys(known)):
        journal.known.setdefault(journal.ledger.groups.first(name), -1 - place)


def _sample(journal: Journal, explore: int | list[int] | None) -> int | list[int]:
    """Rows chosen for exploration, each by the row that stands for it."""
    groups, pool = journal.ledger.groups, journal.pool
    if explore is None or isinstance(explore, int) or not len(groups):
        return explore or 0
    names = dict.fromkeys(groups.first(pool.id(row)) for row in explore)
    return [int(row) for row in pool.rows(list(names))]


def _check_pool(pool: Pool, created: events.Created) -> None:
    """Refuse a pool that is not the one the log names, or not as it was stored."""
    known = {part: mark for part, mark in created.pool.items() if mark != NOT_KEPT}
    differs = []
    if pool.withdrawn.any() or len(known) < len(created.pool):
        # Rows are erased, or will be, so hashes of all rows no longer hold. The folder's own are kept up to date.
        contents, _ = known.pop("contents", None), known.pop("vectors", None)
        if isinstance(pool, StoredPool):
            pool.folder.verify()
            differs = ["contents"] if contents and pool.folder.contents_hash not in (None, contents) else []
    now = pool.fingerprint(created.rows, contents="contents" in known)
    differs += [part for part in ("contents", "vectors", "ids") if part in known and now.get(part) != known[part]]
    for part in reversed(differs):
        raise InputError(f"the label log belongs to another pool (its {part} differ): open it with the same file")


def _mark(pool: Pool, outside: Vectors | None) -> str | None:
    return None if outside is None else pool.digest(outside)


@contextmanager
def naming(log: EventLog) -> Iterator[None]:
    """Prefix errors with the log's name."""
    try:
        yield
    except ActiveCoverError as wrong:
        raise type(wrong)(f"{log}: {wrong}") from wrong
