"""Damaged label logs, and logs of other campaigns, are refused and left unchanged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bad_input import (
    FIND,
    call,
    csv_with,
    refused,
    snapshot,
)

CREATED, KNOWN, ASKED, TOLD = 0, 1, 2, 3


def changed(number: int, /, **changes: Any) -> Callable[[list[bytes]], list[bytes]]:
    def change(lines: list[bytes]) -> list[bytes]:
        event = {key: value for key, value in (json.loads(lines[number]) | changes).items() if value is not ...}
        return [*lines[:number], json.dumps(event).encode(), *lines[number + 1 :]]

    return change


def last_asked(lines: list[bytes]) -> int:
    return max(number for number, line in enumerate(lines) if json.loads(line)["event"] == "asked")


def replaced(number: int, line: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: [*lines[:number], line, *lines[number + 1 :]]


LOGS: list[tuple[str, Callable[[list[bytes]], list[bytes]], str]] = [
    ("garbage in the middle", replaced(TOLD, b"\xff\x00garbage"), "line 4: damaged"),
    ("garbage at the end", lambda lines: [*lines, b"}{"], "damaged"),
    ("empty line", replaced(TOLD, b""), "line 4: damaged"),
    (
        "line cut short in the middle",
        lambda lines: [*lines[:3], lines[3][:20], *lines[4:]],
        "line 4: damaged",
    ),
    ("not an object", replaced(TOLD, b"[1, 2]"), "line 4: not event 3"),
    ("deep nesting", replaced(TOLD, b"[" * 100_000), "line 4: damaged"),
    ("endless number", replaced(TOLD, b'{"seq": ' + b"9" * 5000 + b"}"), "line 4: damaged"),
    ("line missing", lambda lines: lines[:3] + lines[4:], "line 4: not event 3"),
    ("line twice", lambda lines: lines[:3] + lines[2:], "line 4: not event 3"),
    ("lines swapped", lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "line 2: not event 1"),
    ("no beginning", lambda lines: [], "no beginning"),
    ("no kind", changed(TOLD, event=...), "line 4"),
    ("kind a number", changed(TOLD, event=7), "line 4"),
    ("unknown kind", changed(TOLD, event="sold"), "unknown kind 'sold'"),
    ("kind with a method's name", changed(TOLD, event="_apply"), "unknown kind"),
    (
        "created twice",
        lambda lines: changed(KNOWN, **json.loads(lines[0]) | {"seq": 1})(lines),
        "created once",
    ),
    ("newer format", changed(CREATED, format=2), "format 2"),
    ("no format", changed(CREATED, format=...), "format None"),
    ("another pool's vectors", changed(CREATED, pool={"ids": "0", "vectors": "0"}), "another pool"),
    ("pool of wrong type", changed(CREATED, pool=[]), "pool [] is damaged"),
    ("pool without parts", changed(CREATED, pool={}), "pool {} is damaged"),
    ("rows text", changed(CREATED, rows="6"), "rows '6' is damaged"),
    ("rows too many", changed(CREATED, rows=7), "7 rows"),
    ("rows too few", changed(CREATED, rows=5), "another pool"),
    ("rows negative", changed(CREATED, rows=-1), "rows -1 is damaged"),
    ("seed text", changed(CREATED, seed="x"), "seed 'x' is damaged"),
    ("seed missing", changed(CREATED, seed=...), "seed None is damaged"),
    ("seed beyond measure", changed(CREATED, seed=10**60), "seed 1000"),
    ("learner a list", changed(CREATED, learner=[]), "learner [] is damaged"),
    ("learner of one's own", changed(CREATED, learner="Mine(explore=3)"), "Mine(explore=3)"),
    ("explore text", changed(CREATED, explore="x"), "explore 'x' is damaged"),
    ("explore texts", changed(CREATED, explore=["x"]), "explore ['x'] is damaged"),
    ("explore rows twice", changed(CREATED, explore=[1, 1]), "different rows"),
    ("explore rows elsewhere", changed(CREATED, explore=[99]), "different rows"),
    ("outside of wrong type", changed(CREATED, outside=1), "outside 1 is damaged"),
    ("outside of another run", changed(CREATED, outside="00"), "from outside"),
    ("known unknown", changed(KNOWN, id="zz"), "'zz' is not in the pool"),
    ("known without id", changed(KNOWN, id=...), "id None is damaged"),
    ("asked number text", changed(ASKED, number="x"), "number 'x' is damaged"),
    ("asked number missing", changed(ASKED, number=...), "number None is damaged"),
    ("asked number a half", changed(ASKED, number=0.5), "number 0.5 is damaged"),
    ("asked number true", changed(ASKED, number=True), "number True is damaged"),
    ("asked number endless", changed(ASKED, number=10**30), "number 1000"),
    ("asked number negative", changed(ASKED, number=-1), "number -1 is damaged"),
    ("asked id a list", changed(ASKED, id=["a"]), "id ['a'] is damaged"),
    ("asked id unknown", changed(ASKED, id="zz"), "'c' was never asked for"),
    ("last id unknown", lambda lines: changed(last_asked(lines), id="zz")(lines), "'zz' is not in the pool"),
    ("asked batch text", changed(ASKED, batch="x"), "batch 'x' is damaged"),
    ("asked source missing", changed(ASKED, source=...), "source None is damaged"),
    ("asked by number", changed(ASKED, by=1), "by 1 is damaged"),
    ("asked expires text", changed(ASKED, expires="soon"), "expires 'soon' is damaged"),
    ("told label text", changed(TOLD, label="x"), "label 'x' is damaged"),
    ("told label missing", changed(TOLD, label=...), "label None is damaged"),
    ("told label 2", changed(TOLD, label=2), "label 2 is damaged"),
    ("told id missing", changed(TOLD, id=...), "id None is damaged"),
    ("told id not asked", changed(TOLD, id="zz"), "'zz' was never asked for"),
    ("told by nobody", changed(TOLD, by=...), "by None is damaged"),
    ("told of a known positive", changed(ASKED, id="a"), "log.jsonl"),
]


def unchained(line: bytes) -> bytes:
    """A line without the hash of its event, unless it is too damaged to have one."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(event, dict):
        return line
    event.pop("chain", None)
    # The blank at the end says that events were written together.
    return json.dumps(event).encode() + (b" " if line.endswith(b" ") else b"")


@pytest.mark.parametrize(("change", "says"), [case[1:] for case in LOGS], ids=[case[0] for case in LOGS])
def test_a_damaged_log_is_refused_and_kept(
    folder: Path, log: bytes, change: Callable[[list[bytes]], list[bytes]], says: str
) -> None:
    lines = change(log.split(b"\n")[:-1]) or [
        b'{"seq": 0, "event": "known", "id": "a"}',
    ]
    # As a log is from before there were hashes, which would give all of this away at once: that is seen next.
    (folder / "log.jsonl").write_bytes(b"\n".join(map(unchained, lines)) + b"\n")
    said = refused(FIND, folder)
    assert "log.jsonl" in said
    assert says in said
    (folder / "log.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    assert "log.jsonl" in refused(FIND, folder)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--seed 6", "seed 5, not 6"),
        ("--explore 4", "explore 3, not 4"),
        ("--learner offline", "learner 'auto@"),
        ("--known b", "other known positives"),
        ("--metric cosine", "another pool"),
        ("--columns x", "another pool"),
        ("--known-vectors p.npy", "outside"),
    ],
)
def test_a_log_of_other_settings(folder: Path, log: bytes, options: str, says: str) -> None:
    (folder / "log.jsonl").write_bytes(log)
    said = refused(f"{FIND} {options}", folder)
    assert "log.jsonl" in said
    assert says in said


def test_a_log_of_another_pool(folder: Path, log: bytes) -> None:
    (folder / "log.jsonl").write_bytes(log)
    (folder / "p.csv").write_bytes(csv_with(2, "c,0,1.5,yes"))
    assert "another pool" in refused(FIND, folder)


def test_a_log_that_another_process_has_open(folder: Path, log: bytes) -> None:
    (folder / "log.jsonl").write_bytes(log)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from activecover.store import JsonlLog; log = JsonlLog('log.jsonl'); print(flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        holder.stdout.readline()
        assert "another process" in refused(FIND, folder)
    finally:
        holder.communicate(b"\n")


def test_a_torn_end_is_no_damage_and_looking_changes_nothing(folder: Path, log: bytes) -> None:
    # The log ends with an item on the table, so that there is nothing to write before the first answer.
    for torn in (b"", b"{", b'{"seq": 13, "event": "to', b"\0" * 100):
        (folder / "log.jsonl").write_bytes(log + torn)
        before = snapshot(folder)
        assert call(FIND)[0] == 0
        assert snapshot(folder) == before
