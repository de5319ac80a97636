"""The portfolio ``auto@5`` with all that only it needs, as it was: to be deleted when its successor has landed.

Nothing here is shared with the other learners, so that neither can change the other.
"""

from activecover.learners._auto5._auto import Auto
from activecover.learners._auto5._blend import Blend

__all__ = ["Auto", "Blend"]
