"""Proposals that wait to be taken, and who waits for them."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables of the brain."""
    op.create_table(
        "ready",
        sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id"), primary_key=True),
        sa.Column("item", sa.Text, primary_key=True),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("labels", sa.Integer, nullable=False),
        sa.Column("probability", sa.Float),
        sa.Column("nearest", sa.Text),
    )
    op.create_table(
        "wanted",
        sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id"), primary_key=True),
        sa.Column("who", sa.Text, primary_key=True),
        sa.Column("amount", sa.Integer, nullable=False),
    )
