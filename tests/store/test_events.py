"""Events as types: every line that earlier versions wrote is read, and would be written the same."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from activecover.store import JsonlLog, Ready, events, line_of, read_event
from activecover.store._sealed import proposal_of, sealed_proposal

OLD = sorted((Path(__file__).parents[1] / "old").glob("*.tar.xz"))


def lines(path: Path) -> list[dict[str, Any]]:
    found = []
    with tarfile.open(path) as file:
        for member in file.getmembers():
            if "logs/" in member.name and member.name.endswith(".jsonl"):
                data = file.extractfile(member)
                assert data is not None
                found += [json.loads(line) for line in data]
    return found


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.name)
def test_every_line_of_earlier_versions_is_written_as_it_was_read(path: Path) -> None:
    found = lines(path)
    assert found
    for line in found:
        event = read_event(line)
        assert (event.seq, event.kind) == (line["seq"], line["event"])
        again = line_of(event)
        before = {name: value for name, value in line.items() if name not in ("seq", "chain")}
        if isinstance(event, events.Created):
            # Settings that a version did not have are filled in.
            assert before.items() <= again.items()
        else:
            assert again == before


def test_every_kind_has_a_name_of_its_own() -> None:
    assert len(events.KINDS) == 19
    assert events.KINDS["learner_changed"] is events.LearnerChanged


def test_a_positive_from_outside_is_a_number_and_an_item_is_not() -> None:
    def asked(nearest: str | int) -> events.Asked:
        return events.Asked(id="a", by="me", number=0, source="learner", batch=0, nearest=nearest)

    name = "known positive 1 from outside"
    for nearest in (1, "1", name):
        again = read_event(line_of(asked(nearest)))
        assert isinstance(again, events.Asked)
        assert again.nearest == nearest
        assert type(again.nearest) is type(nearest)


@pytest.mark.parametrize("nearest", [3, "3", "[3]", "known positive 3 from outside", None])
def test_proposals_for_other_processes_keep_the_type_of_the_nearest_positive(nearest: str | int | None) -> None:
    one = Ready("a", "learner", 4, 1.0, nearest)
    row = type("Row", (), sealed_proposal(1, 0, one))
    assert proposal_of(row) == one


def test_what_is_appended_in_a_turn_of_a_file_is_written_at_its_end(tmp_path: Path) -> None:
    log = JsonlLog(tmp_path / "log.jsonl")
    with log.turn():
        log.append([{"event": "told", "id": "a"}])
        log.append([{"event": "told", "id": "b"}])
        assert len(log) == 2
        assert not log.path.exists()
    whole = log.path.read_bytes()
    with pytest.raises(ValueError), log.turn():  # noqa: PT012 - the first append would last by itself
        log.append([{"event": "told", "id": "c"}])
        log.append([{"event": "told", "bad": float("nan")}])
    assert (len(log), log.path.read_bytes()) == (2, whole)
    assert log.head() == log.verify()
    log.append([{"event": "told", "id": "d"}])
    log.close()
    with JsonlLog(log.path) as again:
        assert [line["id"] for line in again.read()] == ["a", "b", "d"]
