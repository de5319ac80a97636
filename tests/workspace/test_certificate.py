"""Certificates: made from a log, verified from an archive elsewhere, and refused where anything was changed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from forging import Forged

from activecover.cli import main
from activecover.errors import InputError, StoreError
from activecover.pool import Pool
from activecover.stopping import ConfidenceSequence, ControlQuantile, Knee, WeightedBetting
from activecover.workspace import Workspace, archive, restore, verify_with_archive, verify_with_campaign

Events = list[dict[str, Any]]
RULE = ControlQuantile(0.7, 0.8)


def make(home: Workspace, name: str = "one", **settings: Any) -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(150, 2)) * 5
    vectors[:25] = random.normal(size=(25, 2)) + 4
    pool = Pool(vectors, ids=[f"item {row}" for row in range(150)])
    with home.new(name, pool, explore=10, seed=3, **settings) as campaign:
        while items := campaign.ask():
            campaign.tell([item.id for item in items], [int(item.id.split()[1]) < 25 for item in items])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """A certificate and the archive of its campaign."""
    folder = tmp_path_factory.mktemp("made")
    with Workspace(folder / "home") as home:
        make(home, certify=RULE)
        with home.open("one") as campaign:
            document = campaign.certificate(name="one").as_dict()
        archive(home, "one", folder / "one.zip")
    return document, folder / "one.zip"


def rewritten(source: Path, target: Path, change: Callable[[Events], None], *, chained: bool = False) -> Path:
    """An archive with other events, its own hashes made to fit and signed by a stranger; the chain only if told."""
    forged = Forged.read(source)
    change(forged.events)
    for place, event in enumerate(forged.events):
        event["seq"] = place
    forged.rechain = chained
    return forged.write(target)


def other_label(events: Events) -> None:
    told = [event for event in events if event["event"] == "told" and event["label"] == 0]
    told[5]["label"] = 1


def dropped(events: Events) -> None:
    del events[-4:-2]


def last_dropped(events: Events) -> None:
    del events[-2:]


def moved(events: Events) -> None:
    told = [place for place, event in enumerate(events) if event["event"] == "told"]
    events.append(events.pop(told[2]))


def added(events: Events) -> None:
    told = next(event for event in events if event["event"] == "asked")["id"]
    events.insert(20, {"event": "told", "id": told, "label": 1, "by": "me"})


def appended(events: Events) -> None:
    events.append({**events[-1]})


def test_an_archive_on_another_machine_bears_it_out(made: tuple[dict[str, Any], Path], tmp_path: Path) -> None:
    document, path = made
    assert document["certified"]
    assert verify_with_archive(document, path) == []
    # In a process and a folder of its own, from the command line.
    (tmp_path / "one.json").write_text(json.dumps(document))
    command = [sys.executable, "-m", "activecover", "certify", "--verify", "one.json", "--archive", str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "verified" in done.stdout
    assert "CERTIFIED: recall is at least" in done.stdout


@pytest.mark.parametrize("change", [other_label, dropped, moved, added, appended])
def test_a_tampered_log_is_found_out_by_its_chain(
    made: tuple[dict[str, Any], Path], tmp_path: Path, change: Callable[[Events], None]
) -> None:
    document, path = made
    wrong = rewritten(path, tmp_path / "wrong.zip", change)
    with pytest.raises(StoreError, match="does not fit its hash"):
        verify_with_archive(document, wrong)


@pytest.mark.parametrize("change", [other_label, dropped, last_dropped, moved, added])
def test_a_log_with_new_hashes_is_found_out_by_the_certificate(
    made: tuple[dict[str, Any], Path], tmp_path: Path, change: Callable[[Events], None]
) -> None:
    document, path = made
    wrong = rewritten(path, tmp_path / "wrong.zip", change, chained=True)
    problems = verify_with_archive(document, wrong)
    assert len(problems) == 1
    assert problems[0].startswith(("head: ", "events: "))


def test_a_campaign_that_went_on_still_bears_out_its_certificate(
    made: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    document, path = made
    with Workspace(tmp_path / "home") as home:
        name = restore(home, path)
        with home.open(name) as campaign:
            open_item = next(item for item in campaign.pool.ids if item not in campaign.labels())
            campaign.tell(open_item, False)
        archive(home, name, tmp_path / "later.zip")
    assert verify_with_archive(document, tmp_path / "later.zip") == []


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*path, key))]
    if isinstance(value, list):
        return [leaf for place, inner in enumerate(value) for leaf in leaves(inner, (*path, place))]
    return [path]


def test_whatever_is_changed_in_a_certificate_is_found_out(made: tuple[dict[str, Any], Path], tmp_path: Path) -> None:
    document, path = made
    with Workspace(tmp_path / "home") as home, home.open(restore(home, path)) as campaign:
        for place in leaves(document):
            if place[0] in ("campaign", "kind", "format"):
                continue
            wrong = json.loads(json.dumps(document))
            inner = wrong
            for key in place[:-1]:
                inner = inner[key]
            was = inner[place[-1]]
            inner[place[-1]] = (
                not was if isinstance(was, bool) else was + 1 if isinstance(was, int | float) else f"{was}0"
            )
            assert verify_with_campaign(wrong, campaign), f"{place}: {was!r} was changed, and nobody saw it"
        for change in ({"extra": 1}, {"events": 10**9}, {"events": "all"}, {"rule": None}):
            assert verify_with_campaign({**document, **change}, campaign)


@pytest.mark.parametrize(
    ("content", "words"), [("[]", "no activecover certificate"), ("{", "not JSON"), (None, "read")]
)
def test_what_is_no_certificate(
    made: tuple[dict[str, Any], Path], tmp_path: Path, content: str | None, words: str, capsys: Any
) -> None:
    file = tmp_path / "wrong.json"
    if content is not None:
        file.write_text(content)
    assert main(["certify", "--verify", str(file), "--archive", str(made[1])]) == 2
    complaint = capsys.readouterr().err
    assert words in complaint
    assert len(complaint.splitlines()) == 1


def test_a_tampered_store_is_refused(tmp_path: Path) -> None:
    with Workspace(tmp_path) as home:
        make(home, certify=RULE, budget=20)
        with home.store._engine.begin() as connection:
            changed = connection.execute(
                sa.text("UPDATE events SET body = replace(body, :was, :now) WHERE instr(body, :was)"),
                {"was": '"label":0', "now": '"label":1'},
            )
            assert changed.rowcount
        with pytest.raises(StoreError, match=r"event \d+ does not fit its hash"):
            home.open("one")
        with pytest.raises(StoreError, match="does not fit its hash"):
            archive(home, "one", tmp_path / "one.zip")
        assert not (tmp_path / "one.zip").exists()


@pytest.mark.parametrize("rule", [ConfidenceSequence(0.7, 0.8), WeightedBetting(0.7, 0.8), None])
def test_other_rules_and_campaigns_without_a_promise(tmp_path: Path, rule: Any) -> None:
    with Workspace(tmp_path) as home:
        make(home, certify=rule, budget=None if rule else 40)
        with home.open("one") as campaign:
            certificate = campaign.certificate(name="one")
        archive(home, "one", tmp_path / "one.zip")
    assert certificate.certified == (rule is not None)
    assert certificate.as_dict()["planned"] == (rule is not None)
    if rule is None:
        assert any("chosen without looking" in text for text in certificate.sentences())
    assert verify_with_archive(json.loads(json.dumps(certificate.as_dict())), tmp_path / "one.zip") == []


def test_the_chain_and_the_certificate_hold_after_forgetting(tmp_path: Path) -> None:
    with Workspace(tmp_path) as home:
        make(home, certify=RULE, forget_negatives=True)
        with home.open("one") as campaign:
            forgotten = set(campaign.eraser.status().forgotten)
            assert len(forgotten) > 20
            # What the learner has not come by is still there.
            assert not forgotten & {ask.id for ask in campaign.journal.ledger.asks.values() if ask.hidden}
            certificate = campaign.certificate(name="one")
            assert certificate.certified
            campaign.forget(0)
            campaign.log.verify()
        archive(home, "one", tmp_path / "one.zip")
    assert verify_with_archive(certificate.as_dict(), tmp_path / "one.zip") == []


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pool.csv"
    file.write_text("name,x,y\n" + "".join(f"{row},{row % 7},{row % 3}\n" for row in range(40)))
    at = ["--home", str(tmp_path / "home")]
    new = ["new", "one", "--pool", str(file), "--id-col", "name", "--explore", "5", "--seed", "0", *at]
    assert main([*new, "--certify", "0.6@0.6", "--rule", "target", "--insure", "0.2"]) == 0
    assert main(["certify", "one", *at]) == 1
    assert "NOT CERTIFIED" in capsys.readouterr().out
    with Workspace(tmp_path / "home") as home, home.open("one") as campaign:
        while items := campaign.ask():
            campaign.tell([item.id for item in items], [int(item.id) % 7 == 0 for item in items])
    assert main(["status", "one", *at]) == 0
    shown = capsys.readouterr().out
    assert "recall 0.6 with confidence 0.6 by target: certified" in shown
    assert "uniform draws" in shown
    assert main(["certify", "one", "--out", str(tmp_path / "one.json"), "--json", *at]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == json.loads((tmp_path / "one.json").read_text())
    assert (said["rule"]["rule"], said["seed"], len(said["head"])) == ("target@1", 0, 64)
    assert main(["certify", "one", "--verify", str(tmp_path / "one.json"), *at]) == 0
    said["assessment"]["recall_lower"] = 0.99
    (tmp_path / "one.json").write_text(json.dumps(said))
    assert main(["certify", "one", "--verify", str(tmp_path / "one.json"), *at]) == 1
    assert "does NOT verify: assessment" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["certify"], "name a campaign"),
        (["certify", "--verify", "x.json"], "give either --archive"),
        (["certify", "one", "--archive", "x.zip"], "--archive is for verifying"),
        (["certify", "one", "--verify", "x", "--rule", "knee"], "--rule is for making"),
        (["new", "one", "--pool", "x.csv", "--rule", "qbcb"], "says how to certify: say what"),
        (["new", "one", "--pool", "x.csv", "--certify", "0.9@0.9", "--rule", "knee"], "knee proves nothing"),
        (["new", "one", "--pool", "x.csv", "--certify", "most"], "0.95@0.95"),
    ],
)
def test_bad_commands(arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--home", str(tmp_path)]) == 2
    complaint = capsys.readouterr().err
    assert words in complaint
    assert len(complaint.splitlines()) == 1


def test_a_rule_that_proves_nothing_is_no_promise(tmp_path: Path) -> None:
    with Workspace(tmp_path) as home, pytest.raises(InputError, match="knee proves nothing"):
        make(home, certify=Knee())
    with Workspace(tmp_path) as home:
        assert home.names() == []
