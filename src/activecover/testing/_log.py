"""The event log's contract."""

from __future__ import annotations

from collections.abc import Callable

from activecover.store import START, EventLog, head_of


def check_log(make: Callable[[], EventLog], *, reopen: Callable[[], EventLog] | None = None) -> None:
    """Hold an event log to its contract.

    Parameters
    ----------
    make : callable
        Opens a new, empty log.
    reopen : callable, optional
        Opens the same log again after it was closed, for logs that last.

    Examples
    --------
    >>> from activecover.store import MemoryLog
    >>> check_log(MemoryLog)
    """
    log = make()
    assert len(log) == 0, "a new log is not empty"
    assert list(log.read()) == [], "a new log has events"
    assert log.head() == START, "a new log has a head"
    assert log.append([]) == [], "appending nothing gave something"
    first = log.append([{"event": "told", "id": "a", "label": 1}])
    assert first == [{"seq": 0, "event": "told", "id": "a", "label": 1}], "an event came back changed"
    several = log.append([{"event": "told", "id": name} for name in ("ü", "\n", '"')])
    assert [event["seq"] for event in several] == [1, 2, 3], "positions do not count up"
    assert list(log.read()) == [*first, *several], "what was read is not what was appended"
    assert list(log.read(since=2)) == several[1:], "reading from a position gave other events"
    next(iter(log.read()))["id"] = "changed"
    assert next(iter(log.read()))["id"] == "a", "a reader can change the log"
    try:
        log.append([{"event": "told"}, {"event": "told", "bad": float("nan")}])
    except ValueError:
        assert len(log) == 4, "half of a refused append was taken"
    else:
        raise AssertionError("an event that is not JSON was taken")
    assert log.head() == log.verify() == head_of([*first, *several]), "the head is not the hash of the events"
    log.close()
    if reopen is not None:
        with reopen() as again:
            assert list(again.read()) == [*first, *several], "a reopened log has other events"
            more = again.append([{"event": "told"}])
            assert more[0]["seq"] == 4, "a reopened log does not go on counting"
            assert again.verify() == head_of([*first, *several, *more]), "a reopened log does not go on with its chain"
