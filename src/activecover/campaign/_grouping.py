"""Which rows of a pool are duplicates, as the log records them."""

from __future__ import annotations

import numpy as np

from activecover.pool import Duplicates, Pool
from activecover.store import Ledger, events


def grouping_of(pool: Pool, rule: Duplicates, ledger: Ledger) -> events.Grouped:
    """The event that names the duplicates among the rows that no earlier event covers."""
    earlier = np.arange(ledger.grouped_rows)
    for first in ledger.groups.sizes():
        rows = pool.rows(ledger.groups.members(first))
        earlier[rows] = rows[0]
    groups = rule.groups(pool, earlier)
    found: dict[int, list[int]] = {}
    for row in np.flatnonzero(groups != np.arange(len(pool))).tolist():
        if row >= ledger.grouped_rows:
            found.setdefault(int(groups[row]), []).append(row)
    named = [[pool.id(row) for row in (first, *others)] for first, others in found.items()]
    return events.Grouped(rows=len(pool), groups=named)


def erased_duplicates(pool: Pool, ledger: Ledger) -> list[str]:
    """Members of groups that were erased from the pool, if the log does not record it yet."""
    groups = ledger.groups
    names = [name for first in groups.sizes() for name in groups.members(first)]
    gone = pool.withdrawn[pool.rows(names)]
    recorded = ledger.withdrawn.keys() | ledger.forgotten.keys()
    return [names[place] for place in np.flatnonzero(gone).tolist() if names[place] not in recorded]
