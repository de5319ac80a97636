"""Find every positive in a pool of unlabelled items with the fewest label queries.

>>> import numpy as np
>>> from activecover import Campaign, Pool
>>> campaign = Campaign(Pool(np.array([[0.0], [0.1], [5.0]])), explore=0, known=["0"])
>>> campaign.ask()[0].id
'1'
"""

import sys
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from activecover.campaign import Campaign, Item, Status
    from activecover.errors import ActiveCoverError, InputError, MissingExtra, NotAvailable, StoreError
    from activecover.learners import LEARNERS, ExploreCommit, Learner, Offline, OneClass, Optimal, Passive, make_learner
    from activecover.pool import Pool, load_pool
    from activecover.simulate import Simulation, cover, simulate
    from activecover.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "LEARNERS",
    "ActiveCoverError",
    "Campaign",
    "ExploreCommit",
    "InputError",
    "Item",
    "Learner",
    "MissingExtra",
    "NotAvailable",
    "Offline",
    "OneClass",
    "Optimal",
    "Passive",
    "Pool",
    "Simulation",
    "Status",
    "StoreError",
    "Trace",
    "cover",
    "load_pool",
    "make_learner",
    "simulate",
]

#: Which module each name comes from. They are imported when first used: the command must be able to answer Ctrl-C
#: before NumPy, SciPy and Numba are there, which takes a second.
_MODULES = {
    "campaign": ("Campaign", "Item", "Status"),
    "errors": ("ActiveCoverError", "InputError", "MissingExtra", "NotAvailable", "StoreError"),
    "learners": (
        "LEARNERS", "ExploreCommit", "Learner", "Offline", "OneClass", "Optimal", "Passive", "make_learner",
    ),
    "pool": ("Pool", "load_pool"),
    "simulate": ("Simulation", "cover", "simulate"),
    "trace": ("Trace",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    if not name.startswith("_"):
        with suppress(ModuleNotFoundError):
            return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """The package itself: its ``simulate`` is the function, also after the module of that name has been imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _MODULE_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
