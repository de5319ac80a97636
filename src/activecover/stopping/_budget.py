"""Stop when the budget is spent."""

from __future__ import annotations

from activecover.errors import check_count
from activecover.stopping._heuristic import Heuristic, from_then_on
from activecover.stopping._record import Record
from activecover.stopping._rule import Course


class Budget(Heuristic):
    """Stop after a number of labels. It says nothing about recall: combine it with a rule that does.

    Examples
    --------
    >>> from activecover.stopping import ConfidenceSequence
    >>> ConfidenceSequence(0.95, 0.9) | Budget(5000)
    ConfidenceSequence(target=0.95, confidence=0.9, prior=None, audits=1) | Budget(labels=5000)
    """

    name = "budget"
    assumptions = ()

    def __init__(self, labels: int) -> None:
        check_count("labels", labels)
        self.labels = labels
        self.target = 0.95
        self.confidence = 0.95

    def follow(self, record: Record) -> Course:
        """Stop once the budget is spent."""
        spent = self.labels if self.labels <= len(record) else None
        return Course.nothing(record, from_then_on(record, spent))

    def _price(self, record: Record, course: Course) -> tuple[int | None, str]:
        more = self.labels - len(record)
        return more, f"{more:,} labels are left of {self.labels:,}"
