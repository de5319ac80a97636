"""A campaign knows how many events it has and their last hash; its name, settings and proposals are sealed."""

import sqlalchemy as sa
from alembic import op

from activecover.store._chain import START
from activecover.store._sealed import seal_of

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns and fill them for the campaigns that are there."""
    op.add_column("campaigns", sa.Column("length", sa.Integer, nullable=False, server_default="0"))
    op.add_column("campaigns", sa.Column("head", sa.Text, nullable=False, server_default=START))
    op.add_column("campaigns", sa.Column("seal", sa.Text, nullable=False, server_default=""))
    op.add_column("ready", sa.Column("seal", sa.Text, nullable=False, server_default=""))
    here = op.get_bind()
    # Proposals can be made again.
    here.execute(sa.delete(sa.table("ready")))
    names = ("id", "name", "about", "length", "head", "seal")
    campaigns = sa.table("campaigns", *map(sa.column, names))
    events = sa.table("events", sa.column("campaign"), sa.column("seq"), sa.column("chain"))
    for row in list(here.execute(sa.select(campaigns.c.id, campaigns.c.name, campaigns.c.about))):
        own = sa.select(events.c.seq, events.c.chain).where(events.c.campaign == row.id)
        last = here.execute(own.order_by(events.c.seq.desc()).limit(1)).first()
        length, head = (0, START) if last is None else (last.seq + 1, last.chain)
        filled = sa.update(campaigns).where(campaigns.c.id == row.id)
        here.execute(filled.values(length=length, head=head, seal=seal_of(row.name, row.about)))
