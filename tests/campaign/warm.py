"""Imported by the process that all annotators are forked from: whatever takes time once is done here."""

import alembic.command  # noqa: F401
import numpy as np
import psycopg  # noqa: F401
import sqlalchemy.dialects.postgresql.psycopg
import sqlalchemy.dialects.sqlite  # noqa: F401

from activecover import Campaign, Pool
from activecover.store import SqlStore  # noqa: F401

# Compiled code is loaded at its first call.
with Campaign(Pool(np.random.default_rng(0).normal(size=(50, 4))), explore=3, overlap=1) as campaign:
    for _ in range(8):
        campaign.tell(campaign.ask()[0].id, True)
    campaign.status()
