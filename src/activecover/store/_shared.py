"""A log that several processes write to: one of them proposes, the others take."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from activecover.store._log import EventLog


@dataclass(frozen=True, slots=True)
class Ready:
    """A proposal that waits for someone to take it, and how many labels it rests on."""

    id: str
    source: str
    labels: int
    probability: float | None
    #: The positive that it is near to: an item, or the number of one from outside the pool.
    nearest: str | int | None


class SharedLog(EventLog):
    """What a campaign needs of a log that is not its alone."""

    shared = True

    @abstractmethod
    def put_ready(self, proposals: Sequence[Ready]) -> None:
        """Replace the proposals that wait to be taken."""

    @abstractmethod
    def take_ready(self, count: int, oldest: int) -> list[Ready]:
        """Take proposals that rest on at least ``oldest`` labels, best first."""

    @abstractmethod
    def want(self, who: str, count: int) -> None:
        """Tell the process that runs the learner that someone waits for proposals."""

    @abstractmethod
    def is_wanted(self, who: str) -> bool:
        """Whether someone still waits: nothing was laid out since :meth:`want`."""

    @abstractmethod
    def demand(self) -> tuple[int, int]:
        """How many proposals are waited for, and how many wait to be taken."""

    @abstractmethod
    def mark(self) -> object:
        """What to give to :meth:`wait`, taken before looking at what there is, so that nothing is missed."""

    @abstractmethod
    def wait(self, mark: object, seconds: float) -> bool:
        """Wait until something was written after the mark; False if the time is over, or after :meth:`wake`."""

    @abstractmethod
    def wake(self) -> None:
        """End the wait of another thread."""
