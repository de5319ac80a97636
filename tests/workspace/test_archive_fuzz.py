"""Archives that chance makes, of every kind of harm we know: nothing outside a fresh folder is touched by any."""

from __future__ import annotations

import json
import os
import stat
import struct
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forging import FORMAT_1, FORMAT_1_OWN, Forged, snapshot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from activecover.workspace import Workspace, archive, restore

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
EXAMPLES = 5000 if DEEP else 200
Draw = Callable[[st.SearchStrategy[Any]], Any]

PATHS = [
    "../victim/letter.txt", "../../victim", "/etc/passwd", "..", ".", "", "a/../../b", "C:\\x", "C:/x", "..\\..\\x", "a\0b", "a\nb", "pool/",
    "pool/../../../victim/letter.txt", "pool//x", "pool/./x", "~/x", "con", "pool/embedding/../../../victim/letter.txt",
    "x" * 300, "pool/" + "d/" * 200 + "x", "\u202eexe.txt", "é", "e\u0301", "ſ", "pool/VECTORS.npy", "POOL/pool.json", "pool/ﬁles", " ", "a.", "a ",
    "\ud800", "%2e%2e/x", "store.sqlite", "../store.sqlite", "pools/x", ".restore-x", "placing.json", "keys/signing.pem",
]  # fmt: skip
path = st.sampled_from(PATHS)
scalar = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=20), path, st.just([]), st.just({}),
    st.sampled_from([0, -1, 1, 2**31, 2**40, 2**63, 1e308, "\0" * 9]),
)  # fmt: skip
value = st.one_of(scalar, st.lists(scalar, max_size=3), st.dictionaries(st.text(max_size=5) | path, scalar, max_size=3))
BOMBS = [b"[" * 200_000, b"[" * 30_000_000, b"[]," * 20_000_000, b"{}," * 20_000_000, b"\0" * 150_000_000, b'"a"\n' * 20_000_000, b'{"a":' * 100_000, b"1" * 10_000_000, b'{"seq": 0, "event": "told"}\n' * 4_000_000]  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    found = [at] if at else []
    items = value.items() if isinstance(value, dict) else enumerate(value[:50]) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*at, key))
    return found


def replace_somewhere(target: Any, draw: Draw) -> None:
    """Put something else in one place of a JSON value, take it away, or add to it."""
    every = places(target)
    if not every:
        return
    at = draw(st.sampled_from(every))
    for key in at[:-1]:
        target = target[key]
    match draw(st.sampled_from(["value", "gone", "more", "same"])):
        case "value":
            target[at[-1]] = draw(value)
        case "gone":
            del target[at[-1]]
        case "more" if isinstance(target, dict):
            target[draw(path | st.text(max_size=8))] = draw(value)
        case "more":
            target.append(draw(value))
        case _:
            inner = target[at[-1]]
            target[at[-1]] = (
                inner + 1 if type(inner) in (int, float) else inner * 2 if isinstance(inner, str | list) else inner
            )


def manifest(forged: Forged, draw: Draw) -> None:
    replace_somewhere(forged.manifest, draw)


def name(forged: Forged, draw: Draw) -> None:
    forged.manifest["name"] = draw(path | st.text(max_size=30))


def settings_of(forged: Forged, draw: Draw) -> None:
    about = forged.manifest.get("about", forged.manifest.get("settings"))
    if isinstance(about, dict):
        about[draw(st.sampled_from(["pool", "own", "outside", "lease", "budget", "target", "template", "request"]))] = (
            draw(value)
        )


def pool(forged: Forged, draw: Draw) -> None:
    replace_somewhere(forged.pool, draw)


def pool_files(forged: Forged, draw: Draw) -> None:
    files = forged.pool.get("files")
    if isinstance(files, dict):
        part = {"size": draw(st.sampled_from([0, 1, 24, 2**40])), "blocks": []}
        files[draw(path | path.map(lambda each: f"embedding/{each}") | path.map(lambda each: f"statistics/{each}"))] = (
            part
        )


def pool_statistics(forged: Forged, draw: Draw) -> None:
    file = draw(st.sampled_from(["statistics/x-3.a.npy", "../victim/letter.txt", "vectors.npy"]))
    kept = {"rows": draw(st.integers(0, 50)), "facts": draw(value), "files": {file: [draw(st.sampled_from(["<i4", "<f8", "|O8"])), draw(st.integers(0, 3))]}, "parts": {file: "a"}}  # fmt: skip
    forged.pool["statistics"] = {"x": kept}
    if draw(st.booleans()):
        forged.pool["files"][file] = {"size": 0, "blocks": []}
        forged.files[f"pool/{file}"] = b"\0" * 128 + draw(st.binary(max_size=200))


def array(forged: Forged, draw: Draw) -> None:
    arrays = sorted(
        each for each in forged.files if each.endswith((".npy", ".bin", ".jsonl", ".npz")) and each != "events.jsonl"
    )
    chosen = draw(st.sampled_from(arrays))
    data = bytearray(forged.files[chosen])
    match draw(st.sampled_from(["header", "bytes", "short", "long", "pickle", "empty"])):
        case "header":
            text = draw(st.sampled_from([
                "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
                "{'descr': '<f4', 'fortran_order': True, 'shape': (-1,), }", "__import__('os').system('touch /tmp/pwned')", "(" * 4000,
            ])).encode()  # fmt: skip
            data[:128] = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + text.ljust(117)[:117] + b"\n"
        case "bytes":
            for _ in range(draw(st.integers(1, 5))):
                at = draw(st.integers(0, max(0, len(data) - 1)))
                data[at : at + 8] = draw(st.sampled_from([b"\xff" * 8, b"\0" * 8, b"\0\0\xc0\x7f" * 2, b"\xff\xff\xff\x7f" * 2, b"{[\"'\\\n\xed\xa0"]))  # fmt: skip
        case "short":
            del data[draw(st.integers(0, len(data))) :]
        case "long":
            data += draw(st.binary(min_size=1, max_size=300))
        case "pickle":
            data = bytearray(b"\x80\x04\x95" + bytes(data))
        case _:
            data = bytearray()
    forged.files[chosen] = bytes(data)


def event(forged: Forged, draw: Draw) -> None:
    for _ in range(draw(st.integers(1, 3))):
        replace_somewhere(forged.events, draw)
    forged.events = [each if isinstance(each, dict) else {"event": each} for each in forged.events]


def created(forged: Forged, draw: Draw) -> None:
    if forged.events:
        fields = ["learner", "seed", "explore", "certify", "insure", "duplicates", "overlap", "forgets", "rows", "pool", "outside", "format"]  # fmt: skip
        forged.events[0][draw(st.sampled_from(fields))] = draw(value)


def events_order(forged: Forged, draw: Draw) -> None:
    if forged.events:
        at, other = (draw(st.integers(0, len(forged.events) - 1)) for _ in range(2))
        match draw(st.sampled_from(["swap", "twice", "drop", "none"])):
            case "swap":
                forged.events[at], forged.events[other] = forged.events[other], forged.events[at]
            case "twice":
                forged.events.insert(other, dict(forged.events[at]))
            case "drop":
                del forged.events[at:]
            case _:
                forged.events.clear()


def member(forged: Forged, draw: Draw) -> None:
    kind = draw(st.sampled_from(["extra", "listed", "renamed", "duplicate", "case", "gone", "swapped", "nfd"]))
    every = sorted(forged.files)
    chosen, other = draw(st.sampled_from(every)), draw(st.sampled_from(every))
    match kind:
        case "extra":
            forged.extra.append((draw(path), draw(st.binary(max_size=20)), {}))
        case "listed":
            forged.files[draw(path)] = draw(st.binary(max_size=20))
        case "renamed":
            forged.files[draw(path)] = forged.files.pop(chosen)
        case "duplicate":
            forged.extra.append((chosen, draw(st.binary(max_size=20)), {}))
        case "case":
            forged.extra.append((chosen.upper(), forged.files[chosen], {}))
        case "nfd":
            forged.files["pool/embedding/é"] = forged.files[unicodedata.normalize("NFD", "pool/embedding/é")] = b"x"
        case "gone":
            del forged.files[chosen]
            if draw(st.booleans()) and isinstance(forged.manifest.get("hashes"), dict):
                forged.manifest["hashes"].pop(chosen, None)
        case _:
            forged.files[chosen], forged.files[other] = forged.files[other], forged.files[chosen]


def entry(forged: Forged, draw: Draw) -> None:
    chosen = draw(st.sampled_from([*sorted(forged.files), "manifest.json"]))
    kinds = [stat.S_IFLNK | 0o777, stat.S_IFDIR | 0o755, stat.S_IFIFO | 0o600, stat.S_IFCHR | 0o600, stat.S_IFBLK, stat.S_IFSOCK, stat.S_IFREG | 0o4777]  # fmt: skip
    directory = draw(st.sampled_from([
        {"flag_bits": 1}, {"flag_bits": 0x41}, {"file_size": 2**40}, {"file_size": 3}, {"compress_size": 2**31}, {"compress_size": 0},
        {"header_offset": 0}, {"header_offset": 7}, {"CRC": 1}, {"compress_type": 12}, {"compress_type": 14}, {"compress_type": 99}, {"filename": "../x"},
        {"external_attr": 0x10}, {"extra": b"\x75\x70\x0c\0\x01\0\0\0\0../evil"}, {"extra": b"\1\0\x08\0" + b"\xff" * 8}, {},
    ]))  # fmt: skip
    forged.entries[chosen] = {
        "mode": draw(st.sampled_from(kinds)) if not directory else stat.S_IFREG | 0o600,
        "directory": directory,
    }
    if draw(st.booleans()) and not directory and chosen in forged.files:
        forged.files[chosen] = b"../victim/letter.txt"


def bomb(forged: Forged, draw: Draw) -> None:
    chosen = draw(st.sampled_from([*sorted(forged.files), "pool/embedding/x"]))
    forged.files[chosen] = draw(st.sampled_from(BOMBS))
    forged.entries[chosen] = {"raw": True}


def large_manifest(forged: Forged, draw: Draw) -> None:
    deep: Any = []
    for _ in range(draw(st.sampled_from([10, 500]))):
        deep = [deep]
    forged.manifest[draw(st.sampled_from(["about", "settings", "hashes", "x"]))] = draw(st.sampled_from([deep, {str(each): "0" * 64 for each in range(30_000)}, "x" * 5_000_000]))  # fmt: skip


def whole(forged: Forged, draw: Draw) -> None:
    def change(data: bytes) -> bytes:
        # Of an empty file all was cut off before.
        return _damaged(data, draw) if data else data

    forged.bytes.append(change)


def _damaged(data: bytes, draw: Draw) -> bytes:
    at = draw(st.integers(0, len(data)))
    match draw(st.sampled_from(["cut", "flip", "before", "behind", "comment", "end", "count", "twice", "zip64"])):
        case "cut":
            return data[:at]
        case "flip":
            changed = bytearray(data)
            changed[min(at, len(data) - 1)] ^= draw(st.integers(1, 255))
            return bytes(changed)
        case "before":
            return b"#!/bin/sh\n" + data
        case "behind":
            return data + b"x" * draw(st.integers(1, 40))
        case "comment":
            return data[:-2] + struct.pack("<H", 4) + b"hell"
        case "end":
            return data[:-12] + struct.pack("<2L", *(draw(st.sampled_from([0, 1, 2**31, 2**32 - 1])) for _ in range(2))) + data[-4:]  # fmt: skip
        case "count":
            return data[:-14] + struct.pack("<2H", *(draw(st.sampled_from([0, 1, 3, 0xFFFF])) for _ in range(2))) + data[-10:]  # fmt: skip
        case "twice":
            return data + data
        case _:
            record = b"PK\6\6" + struct.pack("<Q2H2L4Q", 44, 45, 45, 0, 0, 2**40, 2**40, 2**50, 0)
            return data[:-22] + record + b"PK\6\7" + struct.pack("<LQL", 0, len(data) - 22, 1) + data[-22:]


HARM = [
    manifest,
    name,
    settings_of,
    pool,
    pool_files,
    pool_statistics,
    array,
    event,
    created,
    events_order,
    member,
    entry,
    whole,
]
RARE = [bomb, large_manifest]


class Worker:
    """A process that takes archives in, with 512 MB more address space than it needs when idle."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in ("around/home", "around/victim/deep", "around/sent", "around/temporary"):
            (folder / part).mkdir(parents=True)
        (folder / "around/victim/letter.txt").write_text("dear diary")
        (folder / "around/victim/deep/key.txt").write_text("secret")
        self.around = folder / "around"
        self.ours = (self.around / "home", self.around / "sent", self.around / "temporary")
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("archive_worker.py")), str(self.around)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        self.before = snapshot(folder, self.ours)
        self.outcomes: dict[str, int] = {}

    def take(self, path: Path, how: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"path": str(path), "how": how}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the worker ended with code {self.process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        self.outcomes[answer["outcome"]] = self.outcomes.get(answer["outcome"], 0) + 1
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    running = Worker(tmp_path_factory.mktemp("hostile"))
    yield running
    print(running.outcomes)
    running.close()


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Sound archives of every format: those of the first, and the same as they are written today."""
    folder = tmp_path_factory.mktemp("sound")
    made = [FORMAT_1, FORMAT_1_OWN]
    with Workspace(folder / "home") as home:
        for old in (FORMAT_1, FORMAT_1_OWN):
            archive(home, restore(home, old), folder / old.name)
            made.append(folder / old.name)
    return made


def test_sound_archives_are_taken(worker: Worker, archives: list[Path]) -> None:
    for each in archives:
        sent = worker.around / "sent" / "a.zip"
        for how in ("restore", "archive"):
            Forged.read(each).write(sent)
            answer = worker.take(sent, how)
            assert answer == {"outcome": "taken", "text": None, "touched": [], "left": []}


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_archive_harms(worker: Worker, archives: list[Path], data: st.DataObject) -> None:
    draw = data.draw
    forged = Forged.read(draw(st.sampled_from(archives)))
    rare = draw(st.integers(0, 24)) == 24
    for _ in range(draw(st.integers(1, 3))):
        draw(st.sampled_from(RARE if rare else HARM))(forged, draw)
    for promise in ("rehash", "rechain", "recheck", "resign"):
        setattr(forged, promise, draw(st.integers(0, 9)) > 0)
    sent = worker.around / "sent" / "a.zip"
    try:
        forged.write(sent)
    except (TypeError, ValueError, AttributeError, KeyError, struct.error, OverflowError, RecursionError):
        return  # It cannot be put together.
    answer = worker.take(sent, draw(st.sampled_from(["restore", "restore", "archive", "verify"])))
    assert answer["outcome"] in ("taken", "verified", "refused"), answer
    assert answer["touched"] == [], answer
    assert answer["left"] == [], answer
    if answer["outcome"] == "refused":
        assert len(answer["text"].splitlines()) == 1, answer
        assert len(answer["text"]) < 1000, answer
    assert snapshot(worker.folder, worker.ours) == worker.before
