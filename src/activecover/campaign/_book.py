"""The log of a campaign and what it adds up to: turns, reading, writing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from activecover.campaign._brain import Brain
from activecover.campaign._grouping import erased_duplicates, grouping_of
from activecover.campaign._items import Why
from activecover.campaign._mixer import Mixer
from activecover.learners import Learner, Proposal
from activecover.pool import Duplicates, Pool, StoredPool, Vectors
from activecover.stopping import Assessment, Rule
from activecover.store import Event, EventLog, Ledger


class Book:
    """The state of a campaign: its pool, its log, and what follows from both."""

    def __init__(
        self,
        pool: Pool,
        *,
        lease: float | None,
        budget: int | None,
        target: int | None,
        outside: Vectors | None,
        think_ahead: bool,
        patience: float,
        clock: Callable[[], float],
    ) -> None:
        self.pool = pool
        self.budget = budget
        self.target = target
        self.log: EventLog
        self.seed: int
        self.rule: str
        self._lease = lease
        self._clock = clock
        self._think_ahead = think_ahead
        self._outside = outside
        self._patience = patience
        self._ledger = Ledger()
        #: Items known to be positive, by the one that stands for their group, with numbers before those of all asks.
        self._known: dict[str, int] = {}
        self._explore: int | list[int] = 0
        self._make_learner: Callable[[], Learner]
        #: What is to be certified, and what decides where asks come from where not all are the learner's.
        self._promise: Rule | None = None
        self._mixer: Mixer | None = None
        #: What was said last, and at which position; how many labels there were at the last look, and the bound then.
        self._assessed: tuple[int, Assessment] | None = None
        self._looked: tuple[int, float] | None = None
        self._lock = threading.RLock()
        self._note: str | None = None
        #: What was shown ahead of time, by its name.
        self._shown: dict[str, Proposal] = {}
        #: Why an item was proposed, as far as it was here.
        self._why: dict[str, Why] = {}
        self._brain: Brain | None = None
        self._server: threading.Thread | None = None
        self._closing = threading.Event()
        #: How much of the log the ledger has seen, and which items the learner has not seen yet.
        self._position = 0
        self._changed: dict[str, None] = {}
        self._wrote = self._stale = self._in_turn = False
        #: The name of the request whose turn it is.
        self._request: str | None = None
        #: The item that somebody looks at, if what follows it is being thought of.
        self._awaited: tuple[str, str, int, int, int] | None = None
        self._erased = (-1, False)
        #: The rows that others stand for, and the groups' version that this rests on.
        self._erased_duplicates = 0
        #: Positives that may be mistakes, the number of changed labels that this rests on, and whether while blind.
        self._doubted: tuple[int, bool, dict[str, str]] = (-1, False, {})
        self._duplicates = (0, np.zeros(0, np.int64))

    @contextmanager
    def once(self, request: str) -> Iterator[list[tuple[str, str | None, int | None]]]:
        """A turn for a request that bears a name; what a request of that name has written before, if any.

        Who does not know whether a request was heard makes it again under the same name. The name is kept
        with the events themselves, so that this is known after a crash too.

        Examples
        --------
        >>> from activecover import Campaign, Pool
        >>> campaign = Campaign(Pool([[0.0], [1.0]]))
        >>> for _ in range(2):
        ...     with campaign.once("a name") as written:
        ...         if not written:
        ...             campaign.tell("0", True)
        >>> written
        [('asked', '0', None), ('told', '0', 1)]
        """
        with self._turn():
            self._request = request
            try:
                yield list(self._ledger.requests.get(request, ()))
            finally:
                self._request = None

    def together(self) -> AbstractContextManager[None]:
        """A time in which nobody else writes: what is looked at in it still holds when something is written.

        Examples
        --------
        >>> from activecover import Campaign, Pool
        >>> campaign = Campaign(Pool([[0.0], [1.0]]))
        >>> with campaign.together():
        ...     if not campaign.labels():
        ...         campaign.tell("0", True)
        """
        return self._turn()

    @contextmanager
    def _turn(self, lasting: bool = True) -> Iterator[None]:
        """A time in which nobody else writes, with all that others have written taken in."""
        with self._lock:
            if self._in_turn:
                yield
                return
            self._in_turn, self._wrote = True, False
            try:
                with self.log.turn(lasting):
                    self._catch_up()
                    if lasting:
                        self._look_for_duplicates()
                    yield
            except BaseException:
                # What was written in a turn that failed may not have been kept.
                self._stale = self._stale or self._wrote
                raise
            finally:
                self._in_turn = False
            if self._wrote:
                self._afterwards()

    def _afterwards(self) -> None:
        """What follows once that is kept which was written in a turn."""

    def _catch_up(self) -> None:
        if self._stale:
            self._ledger = Ledger(self.log.read())
            self._position, self._stale = len(self.log), False
            self._assessed = self._looked = None
            self._changed.update(dict.fromkeys([*self._known, *self._ledger.asks]))
            if self._brain is not None:
                self._brain.follow_all(self._ledger)
        elif self.log.shared and len(self.log) > self._position:
            for event in self.log.read(self._position):
                self._apply(event)

    def _apply(self, event: Event, checked: bool = False) -> None:
        touched = [group[0] for group in event["groups"]] if event["event"] == "grouped" else []
        if "id" in event:
            # Whoever stands for it now may not do so afterwards.
            touched += [event["id"], self._ledger.groups.first(event["id"])]
        if not checked:
            self._ledger.check(event)
        self._ledger.take(event)
        self._position = event["seq"] + 1
        if isinstance(self.pool, StoredPool):
            # Someone else may have done it.
            if event["event"] in ("grown", "grouped"):
                self.pool.refresh()
            elif event["event"] in ("withdrawn", "forgotten"):
                if event["event"] == "withdrawn":
                    # Others that used the same pool keep theirs.
                    self.pool.follow()
                self.pool.erased(self.pool.rows([event["id"]]))
        self._changed.update(dict.fromkeys(touched))

    def _look_for_duplicates(self) -> None:
        """Put the rows by which the pool has grown into groups, and take erased ones out of theirs."""
        rule = (self._ledger.created or {}).get("duplicates")
        if rule is None:
            return
        if self._ledger.grouped_rows < len(self.pool):
            self._write([grouping_of(self.pool, Duplicates.from_dict(rule), self._ledger)])
        if self._erased_duplicates != self.pool.erasures:
            self._erased_duplicates = self.pool.erasures
            self._write([{"event": "withdrawn", "id": name} for name in erased_duplicates(self.pool, self._ledger)])

    def _write(self, events: Sequence[Event]) -> None:
        """Append events; only what the log has taken happens to the ledger and the learner."""
        if not events:
            return
        # A clock that is set back must not turn the order of events around.
        stamp = max(self._clock(), self._ledger.last_at)
        named = {} if self._request is None else {"request": self._request}
        stamped = [{"at": stamp, **event, **named} for event in events]
        asked = {event["id"] for event in stamped if event["event"] == "asked"}
        for event in stamped:
            # What could not be read again must not be written.
            if event.get("id") not in asked:
                self._ledger.check(event)
        written = self.log.append(stamped)
        self._wrote = True
        for event in written:
            self._apply(event, checked=event.get("id") not in asked)
