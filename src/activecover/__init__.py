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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from activecover.campaign import Campaign, Certificate, Item, Status, certify
    from activecover.errors import ActiveCoverError, InputError, MissingExtraError, ModelUnavailableError, StoreError
    from activecover.learners import Auto, ExploreCommit, Learner, Offline, make_learner
    from activecover.pool import Duplicates, Pool, load_pool
    from activecover.simulate import Simulation, simulate, simulate_one
    from activecover.stopping import (
        Budget,
        ConfidenceSequence,
        ControlQuantile,
        TargetMethod,
        TwoPhase,
        WeightedBetting,
    )
    from activecover.trace import Trace
    from activecover.web import Client
    from activecover.workspace import Workspace

__version__ = "0.1.0"

__all__ = [
    "ActiveCoverError",
    "Auto",
    "Budget",
    "Campaign",
    "Certificate",
    "Client",
    "ConfidenceSequence",
    "ControlQuantile",
    "Duplicates",
    "ExploreCommit",
    "InputError",
    "Item",
    "Learner",
    "MissingExtraError",
    "ModelUnavailableError",
    "Offline",
    "Pool",
    "Simulation",
    "Status",
    "StoreError",
    "TargetMethod",
    "Trace",
    "TwoPhase",
    "WeightedBetting",
    "Workspace",
    "certify",
    "load_pool",
    "make_learner",
    "simulate",
    "simulate_one",
]

#: The module of each public name. Modules are imported on first use, because importing NumPy, SciPy and Numba takes
#: a second, and the command must be able to answer Ctrl-C before then.
_MODULES = {
    "campaign": ("Campaign", "Certificate", "Item", "Status", "certify"),
    "errors": ("ActiveCoverError", "InputError", "MissingExtraError", "ModelUnavailableError", "StoreError"),
    "learners": ("Auto", "ExploreCommit", "Learner", "Offline", "make_learner"),
    "pool": ("Duplicates", "Pool", "load_pool"),
    "simulate": ("Simulation", "simulate", "simulate_one"),
    "stopping": (
        "Budget", "ConfidenceSequence", "ControlQuantile", "TargetMethod", "TwoPhase", "WeightedBetting",
    ),
    "trace": ("Trace",),
    "web": ("Client",),
    "workspace": ("Workspace",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
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
    """The package itself; ``simulate`` stays the function even after the module of that name has been imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULE_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
