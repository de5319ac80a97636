"""The label log: append-only events, the only truth of a campaign."""

from activecover.store._chain import START, first_break, head_of, heads
from activecover.store._groups import Groups
from activecover.store._ledger import FORMAT, Ask, Ledger
from activecover.store._log import Event, EventLog, JsonlLog, MemoryLog, events_of, lines_of, open_log
from activecover.store._sql import Ready, SqlLog, SqlStore

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
    "Ready",
    "SqlLog",
    "SqlStore",
    "events_of",
    "first_break",
    "head_of",
    "heads",
    "lines_of",
    "open_log",
]
