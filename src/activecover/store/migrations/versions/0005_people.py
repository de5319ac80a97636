"""People, their rights in single campaigns, and their sessions."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "people",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("role", sa.Text),
        sa.Column("mark", sa.Text, unique=True),
        sa.Column("removed", sa.Float),
    )
    op.create_table(
        "rights",
        sa.Column("person", sa.Integer, sa.ForeignKey("people.id"), primary_key=True),
        sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id"), primary_key=True),
        sa.Column("role", sa.Text, nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("mark", sa.Text, primary_key=True),
        sa.Column("person", sa.Integer, sa.ForeignKey("people.id")),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("seen", sa.Float, nullable=False),
        sa.Column("expires", sa.Float, nullable=False),
    )
