"""Each event keeps the hash of itself and all before it; those that are there already are chained."""

import json

import sqlalchemy as sa
from alembic import op

from activecover.store._chain import START, link

revision = "0003"
down_revision = "0002"

_AT_ONCE = 10_000


def upgrade() -> None:
    """Add the hashes, and compute those of earlier events."""
    op.add_column("events", sa.Column("chain", sa.Text, nullable=False, server_default=""))
    here = op.get_bind()
    events = sa.table("events", sa.column("campaign"), sa.column("seq"), sa.column("body"), sa.column("chain"))
    fill = (
        sa.update(events)
        .where(events.c.campaign == sa.bindparam("one"), events.c.seq == sa.bindparam("place"))
        .values(chain=sa.bindparam("hash"))
    )
    for campaign in list(here.scalars(sa.select(events.c.campaign).distinct())):
        head, since = START, 0
        own = sa.select(events.c.seq, events.c.body).where(events.c.campaign == campaign).order_by(events.c.seq)
        while rows := list(here.execute(own.where(events.c.seq >= since).limit(_AT_ONCE))):
            filled = []
            for row in rows:
                head = link(head, json.loads(row.body))
                filled.append({"one": campaign, "place": row.seq, "hash": head})
            here.execute(fill, filled)
            since = rows[-1].seq + 1
