"""Find every positive in a pool of unlabelled items with the fewest label queries.

>>> import numpy as np
>>> from activecover import Campaign, Pool
>>> campaign = Campaign(Pool(np.array([[0.0], [0.1], [5.0]])), explore=0, known=["0"])
>>> campaign.ask()[0].id
'1'
"""

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
