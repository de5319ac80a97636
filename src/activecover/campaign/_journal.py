"""The log of a campaign and the ledger that it adds up to: turns to write, views to read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from activecover.pool import Pool, StoredPool, Vectors
from activecover.store import Event, EventLog, Ledger, SharedLog, events, line_of

#: What the log holds in place of a hash that would reveal something about forgotten rows.
NOT_KEPT = "not kept"
#: What a request wrote: kind, item, label.
Written = list[tuple[str, str | None, int | None]]


class Journal:
    """Everything that is written of a campaign, and what it adds up to.

    Contract:

    - In a :meth:`turn` nobody else writes, the ledger is up to date, and all that is written lasts at its end, or
      none of it does. Turns nest: only the outermost one commits.
    - A :meth:`view` is up to date too, and takes no turn: it waits for no other process and writes nothing.
    - The ledger never holds an event that the log did not take.

    Parameters
    ----------
    pool : Pool
        The items.
    log : EventLog
        Where events are stored.
    clock : callable
        The time, in seconds.
    """

    def __init__(self, pool: Pool, log: EventLog, clock: Callable[[], float]) -> None:
        self.pool = pool
        self.log = log
        self.clock = clock
        self.ledger = Ledger()
        #: Items known to be positive, by the one that stands for their group, with numbers before those of all asks.
        self.known: dict[str, int] = {}
        self.lock = threading.RLock()
        #: How much of the log the ledger has seen, and how often it was rebuilt from the start.
        self.position = self.rebuilt = 0
        #: Called at the start of each lasting turn, and after one in which something was written.
        self.before: list[Callable[[], None]] = []
        self.after: list[Callable[[], None]] = []
        self._changed: dict[str, None] | None = {}
        self._wrote = self._stale = self._in_turn = False
        self._request: str | None = None

    @property
    def shared_log(self) -> SharedLog:
        """The log, if other processes may write to it."""
        assert isinstance(self.log, SharedLog)
        return self.log

    @property
    def in_turn(self) -> bool:
        """Whether a turn of this process is going on."""
        return self._in_turn

    @property
    def state(self) -> tuple[int, int]:
        """Differs whenever the ledger does."""
        return self.rebuilt, self.position

    @contextmanager
    def turn(self, lasting: bool = True) -> Iterator[None]:
        """A time in which nobody else writes, with all that others have written folded in."""
        with self.lock:
            if self._in_turn:
                yield
                return
            self._in_turn, self._wrote = True, False
            try:
                with self.log.turn(lasting):
                    self._catch_up()
                    for step in self.before if lasting else ():
                        step()
                    yield
            except BaseException:
                # What was written in a turn that failed may not have been kept.
                self._stale = self._stale or self._wrote
                raise
            finally:
                self._in_turn = False
            for step in self.after if self._wrote else ():
                step()

    @contextmanager
    def view(self) -> Iterator[Ledger]:
        """The ledger, up to date, for as long as it is looked at; other processes may write meanwhile."""
        with self.lock:
            if not self._in_turn:
                self._catch_up()
            yield self.ledger

    @contextmanager
    def once(self, request: str) -> Iterator[Written]:
        """A turn for a request with a name, and what an earlier request of that name has written."""
        with self.turn():
            self._request = request
            try:
                yield list(self.ledger.requests.get(request, ()))
            finally:
                self._request = None

    def restart(self) -> None:
        """Begin with an empty ledger."""
        self.ledger, self.position, self._changed = Ledger(), 0, None

    def load(self) -> None:
        """Fold the whole log."""
        # Others may write meanwhile: what was not read is not behind this ledger.
        lines = list(self.log.read())
        self.ledger, self.position = Ledger(lines), len(lines)
        self._changed = None

    def write(self, new: Sequence[Event]) -> None:
        """Append events in a turn; the ledger gets what the log has taken."""
        if not new:
            return
        # A clock that was set back must not turn the order of events around.
        stamp = max(self.clock(), self.ledger.last_at)
        asked = {event.id for event in new if isinstance(event, events.Asked)}
        for event in new:
            event.at = stamp if event.at is None else event.at
            event.request = self._request
            # What could not be read again must not be written.
            if event.id not in asked:
                self.ledger.check(event)
        lines = self.log.append([line_of(event) for event in new])
        self._wrote = True
        for event, line in zip(new, lines, strict=True):
            event.seq = int(str(line["seq"]))
            if event.id in asked:
                self.ledger.check(event)
            self._fold(event)

    def take_changed(self) -> list[str] | None:
        """The items that changed since the last call; None if any may have."""
        changed, self._changed = self._changed, {}
        return None if changed is None else list(changed)

    def record_growth(self) -> None:
        """Write that the pool has grown."""
        with self.turn():
            marks = marks_of(self.pool, forgets=self.ledger.forgets)
            self.write([events.Grown(rows=len(self.pool), pool=marks)])

    def record_external(self, vectors: Vectors, count: int) -> None:
        """Write that known positives from outside the pool were added: all there are now, and how many are new."""
        with self.turn():
            self.write([events.Outside(outside=self.pool.digest(vectors), rows=count)])

    def _catch_up(self) -> None:
        if self._stale:
            self.load()
            self._stale = False
            self.rebuilt += 1
        elif self.log.shared and len(self.log) > self.position:
            for line in self.log.read(self.position):
                event = events.read_event(line)
                self.ledger.check(event)
                self._fold(event)

    def _fold(self, event: Event) -> None:
        touched = [group[0] for group in event.groups] if isinstance(event, events.Grouped) else []
        if event.id is not None:
            # Another item may stand for it afterwards.
            touched += [event.id, self.ledger.groups.first(event.id)]
        self.ledger.take(event)
        self.position = event.seq + 1
        self._follow_pool(event)
        if self._changed is not None:
            self._changed.update(dict.fromkeys(touched))

    def _follow_pool(self, event: Event) -> None:
        """Take over what another process did to the files of the pool."""
        if not isinstance(self.pool, StoredPool):
            return
        if isinstance(event, events.Grown | events.Grouped):
            self.pool.refresh()
        elif isinstance(event, events.Withdrawn | events.Forgotten):
            if isinstance(event, events.Withdrawn):
                # Other campaigns that used the same pool keep theirs.
                self.pool.follow()
            self.pool.erased(self.pool.rows([event.id]))


def marks_of(pool: Pool, *, forgets: bool) -> dict[str, str]:
    """Hashes of a pool as a log may keep them: a hash of all rows would reveal something of those to be forgotten."""
    marks = pool.fingerprint(contents=True)
    return {part: NOT_KEPT if forgets and part != "ids" else mark for part, mark in marks.items()}
