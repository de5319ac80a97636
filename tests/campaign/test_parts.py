"""A campaign is made of parts: what each promises, and that nothing else holds them together."""

from __future__ import annotations

import inspect
import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from activecover import Campaign, InputError, Pool, StoreError
from activecover.campaign._availability import Availability
from activecover.campaign._guarantee import Guarantee
from activecover.campaign._journal import Journal
from activecover.campaign._settings import Settings
from activecover.cli import main
from activecover.learners import LEARNERS, Learner
from activecover.store import JsonlLog, Line, MemoryLog, SqlStore, events, lines_of


def make_pool(rows: int = 12) -> Pool:
    return Pool([[float(row)] for row in range(rows)])


def test_the_facade_inherits_nothing_and_stays_small() -> None:
    assert Campaign.__mro__ == (Campaign, object)
    public = [name for name, each in vars(Campaign).items() if inspect.isfunction(each) and not name.startswith("_")]
    public += [name for name, each in vars(Campaign).items() if isinstance(each, property)]
    assert len(public) <= 27, sorted(public)
    folder = Path(inspect.getsourcefile(Campaign) or "").parent
    lengths = {path.name: len(path.read_text().splitlines()) for path in folder.glob("*.py")}
    assert max(lengths.values()) <= 500, lengths


# -- the journal -----------------------------------------------------------------------------------


def begin(log: MemoryLog | JsonlLog) -> Journal:
    journal = Journal(make_pool(), log, lambda: 5.0)
    settings = Settings.given(learner="explore-commit").filled(journal.pool)
    with journal.turn():
        journal.write([settings.created(rows=12, marks={"ids": "a", "vectors": "b"}, outside=None)])
    return journal


def ask_for(name: str) -> events.Asked:
    return events.Asked(id=name, by="ann", number=0, source="learner", batch=0)


def test_what_others_write_while_a_campaign_is_opened_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqlStore(tmp_path / "store.sqlite") as store:
        log = store.create("one")
        with Campaign(make_pool(), log=log, explore=0, known=["0"], learner="explore-commit") as first:
            late = store.open("one")
            read = late.read

            def slowly(since: int = 0) -> Iterator[Line]:
                lines = list(read(since))
                if not first.labels():
                    first.tell("1", True)
                return iter(lines)

            monkeypatch.setattr(late, "read", slowly)
            with Campaign(make_pool(), log=late) as second:
                assert second.labels() == {"1": True}


def test_what_a_failed_turn_wrote_is_gone_from_the_ledger_and_the_file(tmp_path: Path) -> None:
    journal = begin(JsonlLog(tmp_path / "log.jsonl"))
    with pytest.raises(RuntimeError), journal.turn():  # noqa: PT012 - the turn is what fails
        journal.write([ask_for("3")])
        assert "3" in journal.ledger.asks
        raise RuntimeError("stop")
    with journal.view() as ledger:
        assert not ledger.asks
    assert len(journal.log) == 1
    journal.log.close()
    assert len(JsonlLog(tmp_path / "log.jsonl")) == 1


def test_an_event_that_cannot_be_read_again_is_not_written() -> None:
    journal = begin(MemoryLog())
    with pytest.raises(StoreError, match="never asked for"), journal.turn():
        journal.write([events.Told(id="3", by="ann", label=1)])
    assert len(journal.log) == 1


def test_a_view_sees_what_another_process_wrote_and_takes_no_turn(tmp_path: Path) -> None:
    with (
        SqlStore(tmp_path / "store.sqlite") as store,
        SqlStore(tmp_path / "store.sqlite") as other,
        Campaign(make_pool(), log=store.create("one")) as writer,
        Campaign(make_pool(), log=other.open("one")) as reader,
    ):
        with writer.together():
            # A turn of the reader would wait here for ever.
            assert reader.status().labelled == 0
        writer.tell("3", True)
        assert reader.labels() == {"3": True}


# -- settings --------------------------------------------------------------------------------------


def test_limits_are_recorded_and_hold_when_the_log_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    Campaign(make_pool(), log=path, budget=5, target=3, lease=60).close()
    with Campaign(make_pool(), log=path) as resumed:
        assert (resumed.status().budget, resumed.status().target, resumed.settings.lease) == (5, 3, 60)
    with Campaign(make_pool(), log=path, budget=9) as raised:
        assert raised.status().budget == 9
    with pytest.raises(InputError, match="overlap 1, not 2: start a new log"):
        Campaign(make_pool(), log=path, overlap=2)


def test_a_campaign_without_rule_or_draws_promises_nothing() -> None:
    journal = begin(MemoryLog())
    guarantee = Guarantee(journal, None, None, None)
    assert (guarantee.blind, guarantee.certified(), guarantee.in_words()) == (False, None, None)
    assert Availability(journal).unasked() == 12


# -- one commit ------------------------------------------------------------------------------------


@contextmanager
def commits() -> Iterator[list[str]]:
    """The commits of SQLite databases, as they are sent."""
    found: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if statement == "COMMIT":
            found.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


def test_an_answer_is_one_commit(tmp_path: Path) -> None:
    with SqlStore(tmp_path / "store.sqlite") as store, Campaign(make_pool(), log=store.create("one"), explore=2) as one:
        (item,) = one.ask()
        for label in (True, False, True):
            with commits() as found:
                (item,) = one.answer(item.id, label)
            assert len(found) == 1


def test_an_answer_in_the_terminal_is_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = tmp_path / "pool.csv"
    pool.write_text("x\n" + "\n".join(map(str, range(12))))
    Campaign(make_pool(), log=tmp_path / "log.jsonl").close()
    synced: list[int] = []
    fsync = os.fsync
    counts: list[int] = []

    def keys() -> Iterator[str]:
        for key in "ynyq":
            counts.append(len(synced))
            yield f"{key}\n"

    answers = keys()
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), fsync(handle)))
    monkeypatch.setattr(
        "sys.stdin", type("Typed", (), {"isatty": lambda _: False, "readline": lambda _: next(answers)})()
    )
    assert main(["find", "--pool", str(pool), "--log", str(tmp_path / "other.jsonl")]) == 0
    assert [after - before for before, after in itertools.pairwise(counts)] == [1, 1, 1]


# -- reading is free -------------------------------------------------------------------------------


def test_reading_and_labelling_by_command_build_no_learner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = tmp_path / "pool.csv"
    pool.write_text("id,x\n" + "\n".join(f"r{row},{row % 977}.5" for row in range(50_000)))
    where = ["--home", str(tmp_path / "home")]
    new = ["new", "one", "--pool", str(pool), "--id-col", "id", "--learner", "explore-commit", "--budget", "40"]
    assert main([*new, *where]) == 0
    assert main(["next", "one", *where, "--json"]) == 0
    asked = capsys.readouterr().out.split('"id": "')[1].split('"')[0]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a learner was built")

    monkeypatch.setattr(Learner, "begin", refuse)
    for command in (
        ["status", "one"], ["skip", "one", asked], ["label", "one", "r7=yes", "r9=no"], ["undo", "one"],
        ["history", "one"], ["export", "one", str(tmp_path / "labels.csv")],
    ):  # fmt: skip
        assert main([*command, *where]) == 0
    assert "r7" in (tmp_path / "labels.csv").read_text()


def test_open_campaigns_that_nobody_uses_ask_the_database_for_nothing(tmp_path: Path) -> None:
    stopped = threading.Event()
    with SqlStore(tmp_path / "store.sqlite") as store:
        opened = [Campaign(make_pool(), log=store.create(f"c{number}")) for number in range(8)]
        for campaign in opened:
            campaign.ask()
            campaign.status()
        stopped.wait(0.5)
        found: list[str] = []

        def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
            found.append(statement)

        sa.event.listen(sa.Engine, "before_cursor_execute", note)
        try:
            stopped.wait(4)
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", note)
        assert len(found) < 8, found
        for campaign in opened:
            campaign.close()


# -- changing the learner --------------------------------------------------------------------------


def old_version(path: Path) -> None:
    """A log as an earlier version wrote it, with a learner that is gone."""
    log = JsonlLog(path)
    lines = list(log.read())
    log.close()
    lines[0]["learner"] = "explore-commit@0"
    path.write_bytes(lines_of(lines))


def test_a_campaign_whose_learner_is_gone_is_read_and_goes_on_with_another(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with Campaign(make_pool(), "explore-commit", log=path, explore=2) as campaign:
        campaign.tell(["3", "4"], [True, False])
    old_version(path)
    with Campaign(make_pool(), log=path) as campaign:
        assert campaign.labels() == {"3": True, "4": False}
        assert campaign.status().learner == "explore-commit@0"
        assert [record["id"] for record in campaign.records()] == ["3", "4"]
        with pytest.raises(InputError, match=r"explore-commit@0.*change_learner"):
            campaign.ask()
        campaign.change_learner("knn-posterior", n_neighbors=3)
        (item,) = campaign.ask()
    with Campaign(make_pool(), log=path) as resumed:
        assert resumed.learner_name == LEARNERS["knn-posterior"].versioned
        assert resumed.proposals.learner.get_params()["n_neighbors"] == 3  # type: ignore[union-attr]
        assert [each.id for each in resumed.ask()] == [item.id]
        assert resumed.log.verify() == resumed.log.head()


def test_another_process_follows_a_change_of_the_learner(tmp_path: Path) -> None:
    with (
        SqlStore(tmp_path / "store.sqlite") as store,
        SqlStore(tmp_path / "store.sqlite") as other,
        Campaign(make_pool(), "passive", log=store.create("one")) as running,
    ):
        running.ask()
        with Campaign(make_pool(), log=other.open("one")) as second:
            second.change_learner("explore-commit")
        assert type(running.proposals.learner).__name__ == "ExploreCommit"


def test_a_learner_that_cannot_be_is_refused_and_nothing_is_written() -> None:
    campaign = Campaign(make_pool(), "explore-commit", forget_negatives=True)
    for name, parameters, message in (
        ("nobody", {}, "unknown learner"),
        ("knn-posterior", {}, "learns from negatives"),
        ("explore-commit", {"colour": 1}, "colour"),
    ):
        with pytest.raises(InputError, match=message):
            campaign.change_learner(name, **parameters)
    assert len(campaign.log) == 1
