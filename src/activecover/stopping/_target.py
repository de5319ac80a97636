"""The target method: every positive of the control sample must be found."""

from __future__ import annotations

from activecover.stopping._qbcb import ControlQuantile
from activecover.stopping._tails import smallest_control


class TargetMethod(ControlQuantile):
    """Stop once the review itself has found every one of r control positives.

    Recall is then at least ``(1 - confidence) ** (1 / r)``: if recall is below x, the probability of having reached
    all of r blind positives is below ``x ** r``. The assumptions are those of :class:`ControlQuantile`.

    References
    ----------
    G. V. Cormack, M. R. Grossman: Engineering quality and reliability in technology-assisted review. SIGIR 2016.

    Examples
    --------
    >>> TargetMethod(0.9).planned()
    29
    """

    name = "target"

    def needed(self, r: int) -> int | None:
        """All of them; None if even all are not enough."""
        return r if r >= smallest_control(self.target, self.alpha) else None

    def planned(self) -> int:
        """The given number of positives, or else the fewest that can certify the target."""
        return self.positives or smallest_control(self.target, self.alpha)

    def _proved(self, r: int) -> float:
        return float(self.alpha ** (1 / r))
