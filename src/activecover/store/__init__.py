"""The label log: append-only events, the only truth of a campaign."""

from typing import TYPE_CHECKING, Any

from activecover.store._chain import START, first_break, head_of, heads
from activecover.store._groups import Groups
from activecover.store._ledger import FORMAT, Ask, Ledger
from activecover.store._log import Event, EventLog, JsonlLog, MemoryLog, events_of, lines_of, open_log
from activecover.store._names import check_name
from activecover.store._shared import Ready, SharedLog

if TYPE_CHECKING:
    from activecover.store._people import PersonRow, SessionRow, SqlPeople
    from activecover.store._sql import SqlLog, SqlStore

__all__ = [
    "FORMAT",
    "START",
    "Ask",
    "Event",
    "EventLog",
    "Groups",
    "JsonlLog",
    "Ledger",
    "MemoryLog",
    "PersonRow",
    "Ready",
    "SessionRow",
    "SharedLog",
    "SqlLog",
    "SqlPeople",
    "SqlStore",
    "check_name",
    "events_of",
    "first_break",
    "head_of",
    "heads",
    "lines_of",
    "open_log",
]


def __getattr__(name: str) -> Any:
    """What needs SQLAlchemy is imported when it is used: that takes longer than all else here."""
    if name in ("SqlLog", "SqlStore"):
        from activecover.store import _sql

        return getattr(_sql, name)
    if name in ("PersonRow", "SessionRow", "SqlPeople"):
        from activecover.store import _people

        return getattr(_people, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
