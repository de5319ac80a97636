"""The label log: append-only events, the only truth of a campaign."""

from typing import TYPE_CHECKING

from activecover.store import _events as events
from activecover.store._chain import START, first_break, head_of, heads
from activecover.store._events import FORMAT, JSON, Event, Line, line_of, read_event
from activecover.store._groups import Groups
from activecover.store._ledger import Ask, Ledger, State
from activecover.store._log import EventLog, JsonlLog, MemoryLog, events_of, lines_of, open_log
from activecover.store._names import check_name
from activecover.store._shared import Ready, SharedLog

if TYPE_CHECKING:
    from activecover.store._people import PersonRow, SessionRow, SqlPeople
    from activecover.store._sql import SqlStore
    from activecover.store._sql_log import SqlLog

__all__ = [
    "FORMAT",
    "JSON",
    "START",
    "Ask",
    "Event",
    "EventLog",
    "Groups",
    "JsonlLog",
    "Ledger",
    "Line",
    "MemoryLog",
    "PersonRow",
    "Ready",
    "SessionRow",
    "SharedLog",
    "SqlLog",
    "SqlPeople",
    "SqlStore",
    "State",
    "check_name",
    "events",
    "events_of",
    "first_break",
    "head_of",
    "heads",
    "line_of",
    "lines_of",
    "open_log",
    "read_event",
]


def __getattr__(name: str) -> object:
    """What needs SQLAlchemy is imported when it is used: that takes longer than all else here."""
    if name in ("SqlLog", "SqlStore"):
        from activecover.store import _sql, _sql_log

        return getattr(_sql if name == "SqlStore" else _sql_log, name)
    if name in ("PersonRow", "SessionRow", "SqlPeople"):
        from activecover.store import _people

        return getattr(_people, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
