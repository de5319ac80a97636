"""The interface of all rules: from a record to a bound on recall, its assumptions, and its price."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError, check_count
from activecover.stopping._record import NO, Record
from activecover.stopping._tails import first_true

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
#: Which draws a rule needs in addition to the asks of the learner.
Design = Literal["none", "control", "audit", "insurance"]

#: A target counts as met if recall falls short of it by no more than this.
_ROUNDING = 1e-12
FIXED_POOL = "the pool does not change, and a label is never wrong"


@dataclass(frozen=True, slots=True)
class Assessment:
    """A rule's assessment of a record.

    Attributes
    ----------
    rule : str
        Name and version.
    stop : bool
        Whether the rule would stop here.
    recall_lower : float
        Lower bound on recall; it has the stated confidence if the rule is valid.
    recall_estimate : float or None
        Estimate of recall, if the rule makes one.
    remaining_upper : int
        Upper bound on the positives left, unsettled items and members of duplicate groups included.
    confidence : float
        Confidence of the bound.
    valid : bool
        Whether the bound holds whatever the learner does. If not, the rule is a heuristic.
    assumptions : tuple of str
        What the bound assumes.
    price : int or None
        Expected further labels until the target is certified; None if the rule cannot tell.
    reasoning : str
        An explanation of bound and price.
    """

    rule: str
    stop: bool
    recall_lower: float
    recall_estimate: float | None
    remaining_upper: int
    confidence: float
    valid: bool
    assumptions: tuple[str, ...]
    price: int | None
    reasoning: str

    def as_dict(self) -> dict[str, Any]:
        """The assessment as plain data, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Course:
    """A rule's bounds and estimates at every time of a record, from 0 asks on.

    ``total_upper`` bounds the positive rows of the pool (duplicate groups counted once); ``total_estimate`` is nan
    where there is no estimate. ``stop`` is the rule's own decision, or None if the bound decides.
    """

    total_upper: Floats
    total_estimate: Floats
    stop: Bools | None = None

    @classmethod
    def nothing(cls, record: Record, stop: Bools | None = None) -> Course:
        """A course without bounds or estimates."""
        times = len(record) + 1
        return cls(np.full(times, np.inf), np.full(times, np.nan), stop)


class Rule(ABC):
    """Decides when to stop, and bounds the recall at that point.

    Requirements for subclasses:

    - The constructor only stores its parameters, under their own names; ``target`` and ``confidence`` come
      first.
    - :meth:`follow` makes one pass over the record and never looks ahead: its result at
      time t is what it would be for the record's first t asks.
    - ``valid`` is True only if the bound holds whatever the learner does, with unsettled items counted as
      missed positives. ``anytime`` means that the rule may be evaluated after every label.
    """

    name: ClassVar[str] = ""
    version: ClassVar[int] = 1
    valid: ClassVar[bool] = False
    anytime: ClassVar[bool] = False
    design: ClassVar[Design] = "none"
    #: Whether the course depends on the target; if not, one pass serves all targets.
    course_per_target: ClassVar[bool] = True
    #: Certificates quote these texts and the explanations of stops and prices, and are verified word for word: another
    #: wording needs a new format of certificates.
    assumptions: ClassVar[tuple[str, ...]] = ()

    def __init__(self, target: float = 0.95, confidence: float = 0.95) -> None:
        self.target = target
        self.confidence = confidence

    @abstractmethod
    def follow(self, record: Record) -> Course:
        """Compute bounds, estimates and decisions at every time."""

    @abstractmethod
    def _price(self, record: Record, course: Course) -> tuple[int | None, str]:
        """Expected further labels, and an explanation; called only while the target is not reached."""

    def _why_stopped(self, record: Record) -> str:
        """Explain why the rule would stop at the end of a record."""
        return "the rule would stop here"

    @property
    def alpha(self) -> float:
        """The accepted probability of being wrong."""
        return 1.0 - self.confidence

    def recall_lower(self, record: Record, course: Course | None = None) -> Floats:
        """The bound on recall at every time."""
        found, missed = record.found_members, self._missed_members(record, course or self.follow(record))
        # Nothing found and nothing left: there are no positives, and all of them were found.
        return np.where(found + missed == 0, 1.0, found / np.maximum(found + missed, 1))

    def stops(self, record: Record, course: Course | None = None) -> Bools:
        """Whether the rule would stop, at every time."""
        course = course or self.follow(record)
        if course.stop is not None:
            return course.stop
        stops: Bools = self.recall_lower(record, course) >= self.target - _ROUNDING
        return stops

    def stop_time(self, record: Record) -> int | None:
        """After how many asks the rule would have stopped; None if it would not have."""
        return first_true(self.stops(record))

    def assess(self, record: Record) -> Assessment:
        """Assess the record as it stands.

        Examples
        --------
        >>> from activecover.stopping import ConfidenceSequence, Record
        >>> assessment = ConfidenceSequence(0.9).assess(Record.of([1] * 10 + [0] * 90, rows=100))
        >>> assessment.recall_lower, assessment.remaining_upper, assessment.stop
        (1.0, 0, True)
        """
        check_levels(self.target, self.confidence)
        course = self.follow(record)
        stop = bool(self.stops(record, course)[-1])
        missed = int(self._missed_members(record, course)[-1])
        found = int(record.found_members[-1])
        estimate = self._estimate(record, course)
        price, why = (0, self._why_stopped(record)) if stop else self._price(record, course)
        if price is not None:
            price = min(price, int(record.open_after[-1]))
        return Assessment(
            rule=f"{self.name}@{self.version}",
            stop=stop,
            recall_lower=float(self.recall_lower(record, course)[-1]),
            recall_estimate=estimate,
            remaining_upper=missed,
            confidence=self.confidence,
            valid=self.valid,
            assumptions=self.assumptions,
            price=price,
            reasoning=f"{_counted(record, found, missed)}; {why}",
        )

    def __or__(self, other: Rule) -> Rule:
        return AnyOf(self, other)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in inspect.signature(type(self)).parameters)
        return f"{type(self).__name__}({given})"

    def _missed_members(self, record: Record, course: Course) -> npt.NDArray[np.int64]:
        """Upper bound on the missing positives at every time, members of groups counted."""
        not_negative = record.rows - np.concatenate([[0], np.cumsum(record.outcome == NO)])
        total = np.floor(np.minimum(course.total_upper, not_negative) + 1e-9)
        # Unsettled rows count as missed whatever the bound says, even if they alone exceed it.
        missed = np.maximum(total - record.found, record.unsettled)
        # Which groups are missing is not known; in the worst case, the largest ones are.
        members = np.minimum(missed * record.largest_group, record.missed_members)
        return np.asarray(members, np.int64)

    def _estimate(self, record: Record, course: Course) -> float | None:
        total, found = float(course.total_estimate[-1]), int(record.found[-1])
        if np.isnan(total):
            return None
        total = max(total, float(record.possible[-1]))
        return 1.0 if total <= 0 else min(1.0, found / total)


class AnyOf(Rule):
    """Stop as soon as one of several rules does, as in ``ConfidenceSequence(0.95) | Budget(5000)``.

    The bound is the best one that a valid member proves; their error probabilities add up. Heuristics among the
    members can end the campaign but prove nothing.
    """

    name = "any-of"

    def __init__(self, *rules: Rule) -> None:
        if not rules:
            raise InputError("any-of: give at least one rule")
        self.rules: tuple[Rule, ...] = tuple(
            part for rule in rules for part in (rule.rules if isinstance(rule, AnyOf) else (rule,))
        )
        self._stating = [rule for rule in self.rules if rule.valid] or list(self.rules[:1])
        self.target = max(rule.target for rule in self._stating)
        self.confidence = max(0.0, 1.0 - sum(rule.alpha for rule in self._stating))

    @property
    def proves(self) -> bool:
        """Whether any member is valid."""
        return any(rule.valid for rule in self.rules)

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.rules))

    def follow(self, record: Record) -> Course:
        """Take the lowest bound among the members that state one; stop where any member stops."""
        courses = [rule.follow(record) for rule in self.rules]
        stops = [rule.stops(record, course) for rule, course in zip(self.rules, courses, strict=True)]
        stating = [course for rule, course in zip(self.rules, courses, strict=True) if rule in self._stating]
        upper = np.minimum.reduce([course.total_upper for course in stating])
        return Course(upper, stating[0].total_estimate, np.logical_or.reduce(stops))

    def assess(self, record: Record) -> Assessment:
        """Combine the members' assessments into one."""
        parts = [rule.assess(record) for rule in self.rules]
        stating = [part for part, rule in zip(parts, self.rules, strict=True) if rule in self._stating]
        best = max(stating, key=lambda part: part.recall_lower)
        prices = [part.price for part in parts if part.price is not None]
        return Assessment(
            rule=" | ".join(part.rule for part in parts),
            stop=any(part.stop for part in parts),
            recall_lower=best.recall_lower,
            recall_estimate=best.recall_estimate,
            remaining_upper=best.remaining_upper,
            confidence=self.confidence,
            valid=self.proves,
            assumptions=tuple(dict.fromkeys(text for part in stating for text in part.assumptions)),
            price=min(prices, default=None),
            reasoning=" | ".join(f"{part.rule}{' stops' if part.stop else ''}: {part.reasoning}" for part in parts),
        )

    def _price(self, record: Record, course: Course) -> tuple[int | None, str]:
        raise AssertionError("assess uses the prices of the members")


def check_levels(target: float, confidence: float) -> None:
    """Refuse a target or a confidence that is not strictly between 0 and 1."""
    for name, value in (("target", target), ("confidence", confidence)):
        if not (isinstance(value, int | float) and 0 < value < 1):
            raise InputError(f"{name} {value!r}: give a number between 0 and 1, such as 0.95")


def check_counts(**counts: int | None) -> None:
    """Refuse anything but a whole number from 1, or None."""
    for name, value in counts.items():
        check_count(name, value)


def running_lowest(values: Sequence[float] | Floats) -> Floats:
    """The lowest value so far: a bound that held once continues to hold."""
    return np.minimum.accumulate(np.asarray(values, np.float64))


def last_known(values: Floats) -> Floats:
    """The values, with each nan replaced by the last value before it."""
    places = np.where(np.isnan(values), 0, np.arange(len(values)))
    known: Floats = values[np.maximum.accumulate(places)]
    return known


def _counted(record: Record, found: int, missed: int) -> str:
    unsettled = int(record.unsettled[-1])
    if found == 0 and missed == 0:
        return "no positive was found and none can be left: recall is 1 by definition"
    text = f"{found:,} positives found in {len(record):,} labels, at most {missed:,} missed"
    if unsettled:
        text += f" (the {unsettled:,} skipped, unsure or leased ones counted as missed)"
    return text
