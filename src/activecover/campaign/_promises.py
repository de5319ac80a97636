"""Items that a page has been shown ahead of time: nobody else gets them meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

#: As long as someone counts as being at work.
_KEPT = 600.0


class Promises:
    """Which items may come next for whom. They are not leased, as only one of them will be asked for.

    Examples
    --------
    >>> promises = Promises()
    >>> promises.make("ann", ["a", "b"])
    >>> sorted(promises.to_others("bob")), promises.to_others("ann")
    (['a', 'b'], set())
    >>> promises.are_kept("ann", "a"), promises.are_kept("bob", "a")
    (True, False)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[str, tuple[float, frozenset[str]]] = {}

    def make(self, who: str, ids: Iterable[str]) -> None:
        """Promise items to someone, instead of those promised before."""
        with self._lock:
            self._made[who] = (time.monotonic() + _KEPT, frozenset(ids))

    def are_kept(self, who: str, name: str) -> bool:
        """Whether an item is promised to someone."""
        with self._lock:
            until, ids = self._made.get(who, (0.0, frozenset()))
            return until > time.monotonic() and name in ids

    def to_others(self, who: str) -> set[str]:
        """Items that are promised to anybody else."""
        now = time.monotonic()
        with self._lock:
            self._made = {other: made for other, made in self._made.items() if made[0] > now}
            return {name for other, (_, ids) in self._made.items() if other != who for name in ids}
