"""The tables, and bringing an older database up to date."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from activecover.errors import StoreError
from activecover.store._chain import START

metadata = sa.MetaData()

campaigns = sa.Table(
    "campaigns",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("about", sa.Text, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    #: How many events there are, and the hash of all of them: rows that go missing are noticed.
    sa.Column("length", sa.Integer, nullable=False, server_default="0"),
    sa.Column("head", sa.Text, nullable=False, server_default=START),
    #: The hash of name and settings.
    sa.Column("seal", sa.Text, nullable=False, server_default=""),
)
#: The only truth. Rows are added, and never changed.
events = sa.Table(
    "events",
    metadata,
    sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
    #: The hash of this event and all before it.
    sa.Column("chain", sa.Text, nullable=False, server_default=""),
)
#: Proposals that wait to be taken; the brain replaces them as labels come in.
ready = sa.Table(
    "ready",
    metadata,
    sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id"), primary_key=True),
    sa.Column("item", sa.Text, primary_key=True),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("labels", sa.Integer, nullable=False),
    sa.Column("probability", sa.Float),
    sa.Column("nearest", sa.Text),
    #: The hash of all the rest.
    sa.Column("seal", sa.Text, nullable=False, server_default=""),
)
#: Who waits for proposals.
wanted = sa.Table(
    "wanted",
    metadata,
    sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id"), primary_key=True),
    sa.Column("who", sa.Text, primary_key=True),
    sa.Column("amount", sa.Integer, nullable=False),
)

#: Who may use a server. One who was removed keeps a row without a mark (the keyed hash of a token).
people = sa.Table(
    "people",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    #: On the whole server.
    sa.Column("role", sa.Text),
    sa.Column("mark", sa.Text, unique=True),
    sa.Column("removed", sa.Float),
)
#: What people may do in single campaigns.
rights = sa.Table(
    "rights",
    metadata,
    sa.Column("person", sa.Integer, sa.ForeignKey("people.id"), primary_key=True),
    sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id"), primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
)
#: Browsers that are signed in, by keyed hashes of session ids and of the tokens they were begun with.
sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("mark", sa.Text, primary_key=True),
    sa.Column("person", sa.Integer, sa.ForeignKey("people.id")),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("seen", sa.Float, nullable=False),
    sa.Column("expires", sa.Float, nullable=False),
)

#: The newest schema, and all before it, oldest first.
REVISIONS = ("0001", "0002", "0003", "0004", "0005")
_MIGRATIONS = Path(__file__).with_name("migrations")


def prepare(connection: sa.Connection, store: object) -> None:
    """Make the tables if there are none; bring those of an earlier version up to date."""
    found = revision(connection)
    if found == REVISIONS[-1]:
        return
    if found is not None and found not in REVISIONS:
        raise StoreError(
            f"{store}: this store has schema {found}, made by a newer version of activecover; this one knows up to "
            f"{REVISIONS[-1]}: upgrade activecover"
        )
    connection.rollback()
    try:
        upgrade(connection)
    except (ValueError, TypeError, KeyError, RecursionError) as wrong:
        raise StoreError(
            f"{store}: cannot be brought up to date, as it is damaged ({wrong}); restore the store from a backup"
        ) from wrong


def revision(connection: sa.Connection) -> str | None:
    """The schema version of a database; None if it has none yet."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    return None if found is None else str(found)


def upgrade(connection: sa.Connection, target: str = "head") -> None:
    """Run the migrations that are missing, all of them or none."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["connection"] = connection
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7, 7)"))
    if revision(connection) != target:
        command.upgrade(config, target)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("COMMIT")
    connection.commit()
