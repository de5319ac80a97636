"""The label log: what was acknowledged is there, whatever happens to the process or the disk."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activecover.errors import InputError, StoreError
from activecover.store import EventLog, JsonlLog, MemoryLog, heads, open_log

EVENTS = [{"event": "told", "id": name, "label": 1} for name in ("a", "bé", "c\nd", 'e"f')]


def numbered(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"seq": place, **event} for place, event in enumerate(events)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


@pytest.fixture(params=["memory", "file"])
def log(request: pytest.FixtureRequest, path: Path) -> EventLog:
    return open_log(path if request.param == "file" else None)


def test_append_and_read(log: EventLog) -> None:
    assert log.append(EVENTS[:2]) == numbered(EVENTS)[:2]
    assert log.append([]) == []
    assert log.append(EVENTS[2:]) == numbered(EVENTS)[2:]
    assert len(log) == 4
    assert list(log.read()) == numbered(EVENTS)
    assert list(log.read(3)) == numbered(EVENTS)[3:]
    assert list(log.read(9)) == []


def test_what_is_read_cannot_change_the_log(log: EventLog) -> None:
    next(iter(log.append(EVENTS[:1])))["id"] = "changed"
    next(iter(log.read()))["id"] = "changed"
    assert list(log.read()) == numbered(EVENTS[:1])


@pytest.mark.parametrize(
    "value",
    [float("nan"), object(), {1, 2}, "\ud800", b"bytes"],
    ids=["nan", "object", "set", "surrogate", "bytes"],
)
def test_what_no_file_can_hold_is_refused_whole(log: EventLog, value: Any) -> None:
    log.append(EVENTS[:1])
    with pytest.raises(InputError, match="'told' cannot be kept"):
        log.append([EVENTS[1], {"event": "told", "id": value}])
    assert list(log.read()) == numbered(EVENTS[:1])


def test_a_log_as_it_is(log: EventLog) -> None:
    assert open_log(log) is log


def test_reopen(path: Path) -> None:
    with JsonlLog(path) as log:
        assert not path.exists()
        log.append(EVENTS[:2])
    with JsonlLog(str(path)) as log:
        log.append(EVENTS[2:])
    with JsonlLog(path) as log:
        assert list(log.read()) == numbered(EVENTS)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [line.pop("chain") for line in lines] == list(heads(numbered(EVENTS)))
    assert lines == numbered(EVENTS)


def test_an_empty_file_is_an_empty_log(path: Path) -> None:
    path.touch()
    with JsonlLog(path) as log:
        assert len(log) == 0
        log.append(EVENTS)
    assert len(JsonlLog(path)) == 4


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["id", "by", "label", "at"]),
            st.text() | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False),
        )
    )
)
def test_anything_json_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, parts: list[Any]) -> None:
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    events = [{"event": "told", **part} for part in parts]
    with JsonlLog(path) as log:
        for event in events:
            log.append([event])
    with JsonlLog(path) as log:
        assert list(log.read()) == numbered(events)


def test_a_torn_end_at_every_place(path: Path) -> None:
    with JsonlLog(path) as log:
        for event in EVENTS:
            log.append([event])
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = whole[:cut].count(b"\n")
        with JsonlLog(path) as log:
            assert list(log.read()) == numbered(EVENTS)[:kept]
        assert path.read_bytes() == whole[:cut]
        with JsonlLog(path) as log:
            for event in EVENTS[kept:]:
                log.append([event])
        assert path.read_bytes() == whole


def test_a_crash_among_events_of_one_append_leaves_none_of_them(path: Path) -> None:
    with JsonlLog(path) as log:
        log.append(EVENTS[:1])
        one = len(path.read_bytes())
        log.append(EVENTS[1:])
    whole = path.read_bytes()
    for cut in range(one, len(whole)):
        path.write_bytes(whole[:cut])
        with JsonlLog(path) as log:
            assert list(log.read()) == numbered(EVENTS[:1])
        assert path.read_bytes() == whole[:cut]
        with JsonlLog(path) as log:
            log.append(EVENTS[1:])
        assert path.read_bytes() == whole


@settings(max_examples=200)
@given(at=st.integers(0, 10**6), value=st.integers(0, 255))
def test_damage_in_the_middle_is_refused_or_seen(tmp_path_factory: pytest.TempPathFactory, at: int, value: int) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.jsonl"
    lines = [json.dumps(event).encode() + b"\n" for event in numbered(EVENTS)]
    whole = bytearray(b"".join(lines))
    whole[at % (len(whole) - 1)] = value
    path.write_bytes(whole)
    with contextlib.suppress(StoreError), JsonlLog(path) as log:
        # A changed letter inside a text cannot be told; the events are still events, in sequence.
        assert [event["seq"] for event in log.read()] == [0, 1, 2, 3]
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "line", [b"", b"garbage", b"[]", b"{}", b"null", b'{"seq": 1}', b'{"seq": 7, "event": "told"}']
)
def test_a_bad_line_is_named(path: Path, line: bytes) -> None:
    lines = [json.dumps(event).encode() for event in numbered(EVENTS)]
    path.write_bytes(b"\n".join([lines[0], line, *lines[2:], b""]))
    with pytest.raises(StoreError, match=r"log\.jsonl line 2: "):
        JsonlLog(path)
    # The refusal lets go of the lock.
    path.write_bytes(b"\n".join([*lines, b""]))
    assert len(JsonlLog(path)) == 4


@pytest.mark.parametrize("end", [b"precious", b"{}", b'{"seq": 5, "event"', b" ", b"precious \n", b'{"key": 1} \n'])
def test_an_end_that_is_no_event_is_not_overwritten(path: Path, end: bytes) -> None:
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in numbered(EVENTS))
    for content in (end, lines + end):
        path.write_bytes(content)
        with pytest.raises(StoreError, match="is it the right file"):
            JsonlLog(path)
        assert path.read_bytes() == content


@pytest.mark.parametrize("end", [b"\0" * 50, b'{"seq": 4, "ev\0\0', b'{"s', b'{"seq": 4, "event": "told"} \n'])
def test_an_end_that_a_crash_leaves(path: Path, end: bytes) -> None:
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in numbered(EVENTS))
    path.write_bytes(lines + end)
    with JsonlLog(path) as log:
        assert len(log) == 4
        log.append(EVENTS[:1])
    assert [event["seq"] for event in JsonlLog(path).read()] == [0, 1, 2, 3, 4]


def test_where_a_log_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        JsonlLog(tmp_path)
    with pytest.raises(InputError, match="create it first"):
        JsonlLog(tmp_path / "nowhere" / "log.jsonl")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a file"):
        JsonlLog(tmp_path / "pipe")
    with JsonlLog(tmp_path / "nul\0.jsonl") as log, pytest.raises(InputError, match="cannot be opened"):
        log.append(EVENTS)


def test_a_log_begun_by_someone_else_meanwhile_is_not_overwritten(path: Path) -> None:
    late = JsonlLog(path)
    with JsonlLog(path) as first:
        first.append(EVENTS)
    with pytest.raises(StoreError, match="open it again"):
        late.append(EVENTS[:1])
    assert list(JsonlLog(path).read()) == numbered(EVENTS)


# -- with real processes -----------------------------------------------------------------------------


def child(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-B", "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


HOLD = """
import sys
from activecover.store import JsonlLog
log = JsonlLog(sys.argv[1])
log.append([{"event": "told", "id": "a"}])
print("ready", flush=True)
input()
"""


def test_one_process_at_a_time(path: Path) -> None:
    holder = child(HOLD, str(path))
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(StoreError, match="another process has this label log open; close it first"):
            JsonlLog(path)
    finally:
        holder.communicate("\n")
    with JsonlLog(path) as log:
        assert len(log.append(EVENTS[:1])) == 1
        assert len(log) == 2


FILL = """
import resource, signal, sys
from activecover.errors import StoreError
from activecover.store import JsonlLog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
log, limit = JsonlLog(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
saved = 0
try:
    while saved < 1000:
        log.append([{"event": "told", "id": str(saved)}])
        saved += 1
except StoreError as wrong:
    print(wrong, file=sys.stderr)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
refused = len(log)
log.append([{"event": "told", "id": "after"}])
print(saved, refused)
"""


@pytest.mark.parametrize("limit", [0, 1, 1000, 1017])
def test_a_full_disk(path: Path, limit: int) -> None:
    filler = child(FILL, str(path), str(limit))
    out, said = filler.communicate(timeout=60)
    assert filler.returncode == 0, said
    assert said.count("\n") == 1
    assert said.startswith(f"{path}: the label was not saved (File too large)")
    saved, held = map(int, out.split())
    assert saved == held
    assert (saved == 0) == (limit < 2)
    with JsonlLog(path) as log:
        assert [event["id"] for event in log.read()] == [*map(str, range(saved)), "after"]


def test_a_full_disk_at_the_first_event_leaves_no_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    log = JsonlLog(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(StoreError, match="No space left on device"):
            log.append(EVENTS)
    assert not path.exists()
    assert log.append(EVENTS) == numbered(EVENTS)


APPEND = """
import sys
from activecover.store import JsonlLog
log = JsonlLog(sys.argv[1])
for number in range(10**6):
    log.append([{"event": "told", "id": "x" * (number % 50)}])
    print(number, flush=True)
"""


@pytest.mark.parametrize("delay", [0.05, 0.2, 0.4])
def test_killed_while_appending(path: Path, delay: float) -> None:
    writer = child(APPEND, str(path))
    assert writer.stdout is not None
    first = writer.stdout.readline()
    time.sleep(delay)
    writer.send_signal(signal.SIGKILL)
    rest, _ = writer.communicate()
    # The last line may have been cut by the kill: then that answer never reached anyone.
    answered = (first + rest).split("\n")[:-1]
    with JsonlLog(path) as log:
        assert len(log) >= len(answered) > 0
        assert [event["id"] for event in log.read()] == ["x" * (number % 50) for number in range(len(log))]
        log.append(EVENTS)


def test_memory_log_says_what_it_is() -> None:
    assert "memory" in str(MemoryLog())


def test_a_forked_child_cannot_write_over_its_parent(tmp_path):
    path = tmp_path / "log.jsonl"
    log = JsonlLog(path)
    log.append([{"event": "told", "id": "before"}])
    child = os.fork()
    if child == 0:
        try:
            log.append([{"event": "told", "id": "child"}])
        except StoreError as wrong:
            os._exit(0 if "another process" in str(wrong) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    log.append([{"event": "told", "id": "after"}])
    log.close()
    with pytest.raises(StoreError, match="was closed"):
        log.append([{"event": "told", "id": "late"}])
    with JsonlLog(path) as again:
        assert [event["id"] for event in again.read()] == ["before", "after"]
