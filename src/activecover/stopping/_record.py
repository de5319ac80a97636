"""What rules see of a campaign: its asks in order, and nothing about the items themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError, StoreError
from activecover.store import Ask, Ledger
from activecover.trace import Trace

#: Where an ask came from; "given" marks rows chosen in some unknown way.
SOURCES = ("explore", "learner", "control", "audit", "insurance", "given")
EXPLORE, LEARNER, CONTROL, AUDIT, INSURANCE, GIVEN = range(len(SOURCES))
#: The outcome of an ask. Skipped, unsure and leased items are unsettled: each may be a missed positive.
NO, YES, UNSETTLED = 0, 1, -1
#: Never reached by the review itself.
NEVER = np.iinfo(np.int64).max

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Record:
    """The asks of a campaign, one per row, in the order of their draws.

    Time is counted in asks: "at time t" means after t of them. A row that was asked again keeps the position
    of its first draw.

    Parameters
    ----------
    source : array of int
        Indices into ``SOURCES``.
    outcome : array of int
        1 yes, 0 no, -1 unsettled.
    probability : array of float
        Probability with which the row was drawn, among the rows open to its source; 1 for a deterministic choice,
        nan if unknown.
    open_rows : array of int
        How many rows could have been drawn at that moment.
    reached : array of int
        The time at which the review itself reached the row: for a control row, when the learner proposed it; for
        all others, when they were asked.
    control : array of bool
        Whether the row belongs to the control sample. The source of such a row can be another one, if the learner
        asked for it before its turn came.
    size : array of int
        Members of the duplicate group that the row stands for.
    distance : array of float
        Distance of the row to the nearest positive when it was proposed; nan if unknown.
    rows : int
        Rows of the pool, duplicate groups counted once.
    members : int
        Rows of the pool, all members of the groups counted.
    largest_rest : int
        Members of the largest group that was not asked for.
    positives : int, optional
        Members of the pool that are positive; known only in simulations.

    Examples
    --------
    >>> record = Record.of([1, 0, 1], rows=10)
    >>> record.found.tolist(), record.open_after.tolist()
    ([0, 1, 1, 2], [10, 9, 8, 7])
    """

    source: npt.NDArray[np.int8]
    outcome: npt.NDArray[np.int8]
    probability: Floats
    open_rows: Ints
    reached: Ints
    control: Bools
    size: Ints
    distance: Floats
    rows: int
    members: int
    largest_rest: int = 1
    positives: int | None = None

    def __len__(self) -> int:
        return len(self.outcome)

    @classmethod
    def of(
        cls,
        outcome: npt.ArrayLike,
        *,
        rows: int,
        source: npt.ArrayLike | str = "learner",
        probability: npt.ArrayLike | None = None,
        open_rows: npt.ArrayLike | None = None,
        reached: npt.ArrayLike | None = None,
        control: npt.ArrayLike | None = None,
        size: npt.ArrayLike | None = None,
        distance: npt.ArrayLike | None = None,
        members: int | None = None,
        largest_rest: int = 1,
        positives: int | None = None,
    ) -> Record:
        """Build a record; omitted arrays are derived from the order, with random draws taken to be uniform."""
        outcomes = np.asarray(outcome, np.int8)
        count = len(outcomes)
        if isinstance(source, str):
            source = np.full(count, _code(source))
        sources = np.asarray(source, np.int8)
        left = rows - np.arange(count) if open_rows is None else np.asarray(open_rows, np.int64)
        chosen = np.isin(sources, (LEARNER, GIVEN))
        if probability is None:
            probability = np.where(chosen, np.where(sources == GIVEN, np.nan, 1.0), 1 / np.maximum(left, 1))
        if reached is None:
            reached = np.where(sources == CONTROL, NEVER, np.arange(1, count + 1))
        sizes = np.ones(count, np.int64) if size is None else np.asarray(size, np.int64)
        if members is None:
            members = rows - count + int(sizes.sum())
        record = cls(
            sources,
            outcomes,
            np.asarray(probability, np.float64),
            np.asarray(left, np.int64),
            np.asarray(reached, np.int64),
            sources == CONTROL if control is None else np.asarray(control, bool),
            sizes,
            np.full(count, np.nan) if distance is None else np.asarray(distance, np.float64),
            int(rows),
            int(members),
            int(largest_rest),
            positives,
        )
        record._check()
        return record

    @classmethod
    def from_trace(cls, trace: Trace, distance: npt.ArrayLike | None = None) -> Record:
        """The record of a simulated run: its sample was drawn uniformly, the rest chosen by the learner."""
        source = np.where(trace.explored, EXPLORE, LEARNER)
        return cls.of(trace.positive, rows=trace.pool_rows, source=source, distance=distance, positives=trace.positives)

    @classmethod
    def from_ledger(
        cls,
        ledger: Ledger,
        *,
        rows: int | None = None,
        sizes: Mapping[str, int] | None = None,
        control: Collection[str] | None = None,
    ) -> Record:
        """The record of a live campaign.

        Parameters
        ----------
        ledger : Ledger
            The state that the campaign's events add up to.
        rows : int, optional
            Present number of rows in the pool; by default from the log. Items known beforehand are not part of the
            search, and duplicates that the log records are counted with the item that stands for them.
        sizes : mapping, optional
            Members of the duplicate groups, by the id that stands for each; by default from the log.
        control : collection of str, optional
            Ids of the control sample, from whichever source they were asked; by default those with the source
            "control".
        """
        if rows is None:
            last = ledger.grown or ledger.created
            if last is None:
                raise StoreError("the log does not say how many rows the pool has; give rows")
            rows = int(last.rows)
        known = set(map(ledger.groups.first, ledger.known))
        asks = sorted((ask for name, ask in ledger.asks.items() if name not in known), key=_first_number)
        # A row that went back unanswered is open again and left out, unless it was drawn at random: random draws
        # must not be forgotten.
        asks = [ask for ask in asks if ask.state != "open" or _first(ask).probability != 1]
        numbers = np.array([_first_number(ask) for ask in asks], np.int64)
        firsts = [_first(ask) for ask in asks]
        group = ledger.groups.sizes() if sizes is None else sizes
        asked = {ask.id for ask in asks} | known
        rest = [size for name, size in group.items() if name not in asked]
        # An item that was withdrawn before anyone saw it can neither be found nor missed.
        left = rows - len(ledger.groups) - len(known) - len(set(ledger.withdrawn) - asked)
        return cls.of(
            [_OUTCOME.get(ask.state, UNSETTLED) for ask in asks],
            rows=left,
            source=np.array([_code(first.source) for first in firsts], np.int8),
            probability=[np.nan if first.probability is None else first.probability for first in firsts],
            open_rows=[left - place if first.open is None else first.open for place, first in enumerate(firsts)],
            reached=[_reached(ask, numbers, place + 1) for place, ask in enumerate(asks)],
            control=[first.source == "control" if control is None else first.id in control for first in firsts],
            size=[group.get(ask.id, 1) for ask in asks],
            members=left + sum(size - 1 for name, size in group.items() if name not in known),
            largest_rest=max(rest, default=1),
        )

    def head(self, time: int) -> Record:
        """The record as it was at ``time``."""
        arrays = ("source", "outcome", "probability", "open_rows", "reached", "control", "size", "distance")
        gone = self.size[time:]
        cut = {name: getattr(self, name)[:time] for name in arrays}
        cut["reached"] = np.where(cut["reached"] > time, NEVER, cut["reached"])
        return replace(self, **cut, largest_rest=max(self.largest_rest, int(gone.max(initial=1))))

    @cached_property
    def found(self) -> Ints:
        """Rows found positive, at each time from 0 on."""
        return _running(self.outcome == YES)

    @cached_property
    def found_members(self) -> Ints:
        """Members found positive, at each time."""
        return _running((self.outcome == YES) * self.size)

    @cached_property
    def possible(self) -> Ints:
        """Rows asked that are or may be positive (yes or unsettled), at each time."""
        return _running(self.outcome != NO)

    @cached_property
    def unsettled(self) -> Ints:
        """Rows asked but not settled, at each time."""
        return _running(self.outcome == UNSETTLED)

    @cached_property
    def open_after(self) -> Ints:
        """Rows never asked for, at each time."""
        left: Ints = self.rows - np.arange(len(self) + 1)
        return left

    @cached_property
    def missed_members(self) -> Ints:
        """Upper bound on missed members, at each time: all members that are not settled."""
        settled: Ints = self.members - _running((self.outcome != UNSETTLED) * self.size)
        return settled

    @cached_property
    def largest_group(self) -> Ints:
        """Members of the largest group that is not settled, at each time."""
        later = np.concatenate([np.maximum.accumulate(self.size[::-1])[::-1], [0]])
        unsettled = np.maximum.accumulate(np.where(self.outcome == UNSETTLED, self.size, 1), axis=0)
        held = np.concatenate([[1], unsettled]) if len(self) else np.ones(1, np.int64)
        largest: Ints = np.maximum(np.maximum(later, held), self.largest_rest).astype(np.int64)
        return largest

    @cached_property
    def current(self) -> Bools:
        """Which asks were drawn from the pool at its present size; earlier draws say nothing about added rows."""
        whole: Bools = self.open_rows + np.arange(len(self)) >= self.rows
        return whole

    def uniform(self, chosen: Bools) -> bool:
        """Whether the chosen asks were drawn uniformly, according to the record."""
        share = self.probability[chosen] * self.open_rows[chosen]
        return bool(np.all(np.abs(share - 1) < 1e-6))

    def _check(self) -> None:
        for name in ("source", "probability", "open_rows", "reached", "control", "size", "distance"):
            if len(getattr(self, name)) != len(self):
                raise InputError(f"record: {len(getattr(self, name))} values of {name} for {len(self)} asks")
        if len(self) > self.rows:
            raise InputError(
                f"record: {len(self)} rows asked in a pool of {self.rows}; give the present size of the pool"
            )
        if not np.isin(self.outcome, (NO, YES, UNSETTLED)).all():
            raise InputError("record: outcomes are 1 (yes), 0 (no) or -1 (unsettled)")
        if np.any((self.probability < 0) | (self.probability > 1)):
            raise InputError("record: a probability lies outside 0 to 1")
        if np.any(self.size < 1) or self.members < self.size.sum() + self.rows - len(self):
            raise InputError("record: a duplicate group has no member, or the pool has fewer members than its groups")


_OUTCOME = {"positive": YES, "negative": NO}


def _code(source: str) -> int:
    return SOURCES.index(source) if source in SOURCES else GIVEN


def _first(ask: Ask) -> Ask:
    return ask.first or ask


def _first_number(ask: Ask) -> int:
    return _first(ask).number


def _reached(ask: Ask, numbers: Ints, own: int) -> int:
    if _first(ask).source != "control":
        return own
    if ask.hidden:
        return int(NEVER)
    # By then, all rows with a lower number had been drawn.
    number = ask.number if ask.reached is None else ask.reached
    return max(own, int(np.searchsorted(numbers, number)))


def _running(values: npt.ArrayLike) -> Ints:
    return np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
