"""The target method: every positive of the control sample must be found."""

from __future__ import annotations

from activecover.stopping._qbcb import ControlQuantile
from activecover.stopping._tails import smallest_control


class TargetMethod(ControlQuantile):
    """Stop once the review itself has found every one of r control positives.

    Then recall is at least ``(1 - confidence) ** (1 / r)``: where recall is below x, all of r blind positives
    have been reached with a probability below x to the power of r. Assumptions as for
    :class:`ControlQuantile`.

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
        """All of them, if they are enough for the target."""
        return r if r >= smallest_control(self.target, self.alpha) else None

    def planned(self) -> int:
        """The fewest positives with which the target can be met, unless a number was given."""
        return self.positives or smallest_control(self.target, self.alpha)

    def _proved(self, r: int) -> float:
        return float(self.alpha ** (1 / r))
