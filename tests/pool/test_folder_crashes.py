"""Pool folders after crashes at any moment of a change."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stored_pools import FORK, KINDS, everything, make, names_of, raw, same, texts_of, values_of

from activecover.pool import PoolFolder


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names of open files are read from /proc")
@KINDS
def test_all_is_on_the_disk_before_it_counts(kind: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def noting(name: str, path_of: Callable[..., Any]) -> None:
        real = getattr(os, name)

        def call(*given: Any, **named: Any) -> Any:
            done.append(f"{name} {Path(path_of(*given)).name}")
            return real(*given, **named)

        monkeypatch.setattr(os, name, call)

    noting("fsync", lambda handle: os.readlink(f"/proc/self/fd/{handle}"))
    noting("replace", lambda old, new: new)
    noting("rename", lambda old, new: new)
    noting("unlink", lambda path, **named: path)
    folder = PoolFolder.create(place, make(kind))
    names = {path.name for path in folder.files()} - {"pool.json"}
    ready = done.index("replace pool.json")
    assert {f"fsync {name}" for name in names} <= set(done[:ready])
    assert done[ready - 1 :] == [
        "fsync pool.json.tmp", "replace pool.json", "fsync .one.new", "fsync .one.new", "rename one", "fsync pools",
    ]  # fmt: skip
    done.clear()
    folder.append(values_of(kind, 1, 6), ids=["new"], contents=texts_of(1, 6))
    ready = done.index("replace pool.json")
    assert {f"fsync {name}" for name in names - {"origin.npy"}} <= set(done[:ready])
    assert done[ready + 1] == "fsync one"
    done.clear()
    folder.erase([1])
    vectors = ["data.npy", "indices.npy"] if kind == "sparse" else ["vectors.npy"]
    assert done == [
        "fsync erasing.json.tmp", "replace erasing.json", "fsync one",
        *(f"fsync {name}" for name in [*vectors, "contents.bin", "withdrawn.npy"]),
        "fsync pool.json.tmp", "replace pool.json", "fsync one", "unlink erasing.json",
    ]  # fmt: skip


def dies_at(step: int, work: Callable[[], Any]) -> bool:
    """Run in a child that dies at its so-many-th touch of the disk; whether it died."""

    def child() -> None:
        left = [step]

        def mortal(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*given: Any, **named: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)
                return real(*given, **named)

            return call

        for name in ("fsync", "pwrite", "replace", "rename", "unlink", "mkdir"):
            setattr(os, name, mortal(getattr(os, name)))
        work()
        os._exit(0)

    process = FORK.Process(target=child)
    process.start()
    process.join(60)
    assert process.exitcode in (0, 9)
    return process.exitcode == 9


@pytest.mark.usefixtures("no_sync")
@KINDS
def test_a_crash_at_any_touch_of_the_disk_while_adding(kind: str, tmp_path: Path) -> None:
    old, new = make(kind), make(kind, 8)
    steps = 0
    while True:
        folder = PoolFolder.create(tmp_path / f"pool{steps}", make(kind))
        more: dict[str, Any] = {"ids": names_of(2, 6), "contents": {k: v[6:] for k, v in texts_of(8).items()}}
        died = dies_at(steps, lambda folder=folder, more=more: folder.append(values_of(kind, 2, 6), **more))
        folder.verify()
        whole = len(folder.load()) == 8
        same(folder.load(), new if whole else old)
        assert whole or died
        if not whole:
            folder.append(values_of(kind, 2, 6), **more)
            folder.verify()
            same(folder.load(), new)
        if not died:
            break
        steps += 1
    assert steps > 5


@pytest.mark.usefixtures("no_sync")
@KINDS
@pytest.mark.parametrize("then", ["load", "erase", "append"])
def test_a_crash_at_any_touch_of_the_disk_while_erasing(kind: str, then: str, tmp_path: Path) -> None:
    steps, died = 0, True
    while died:
        folder = PoolFolder.create(tmp_path / f"p{steps}" / "pool", make(kind))
        died = dies_at(steps, lambda folder=folder: folder.erase([1, 4]))
        pending = (folder.folder / "erasing.json").exists()
        if then == "load":
            loaded = folder.load()
        elif then == "erase":
            folder.erase([1])
            loaded = folder.load()
        else:
            folder.append(values_of(kind, 1, 6), ids=["new"], contents=texts_of(1, 6))
            loaded = folder.load()
        if pending or not died:
            assert loaded.withdrawn.tolist()[:6] == [False, True, False, False, True, False]
            assert not (folder.folder / "erasing.json").exists()
        left = everything(folder.folder)
        for row in np.flatnonzero(loaded.withdrawn):
            assert raw(kind, make(kind), int(row)) not in left
            assert f"Märker-{row:05d}".encode() not in left
        folder.verify()
        steps += 1
    assert steps > 5


@pytest.mark.usefixtures("no_sync")
@KINDS
def test_a_crash_at_any_touch_of_the_disk_while_creating(kind: str, place: Path) -> None:
    steps = 0
    while dies_at(steps, lambda: PoolFolder.create(place, make(kind))) and not place.exists():
        steps += 1
    assert steps > 5
    same(PoolFolder(place).load(), make(kind))
    PoolFolder(place).verify()
    assert [path.name for path in place.parent.iterdir()] == ["one"]


def _add_and_erase(place: Path, kind: str, say: Any) -> None:
    folder = PoolFolder(place)
    for number in range(folder.rows, 100_000):
        contents = {"text": [f"Märker-{number:05d}-"], "year": [number]}
        folder.append(values_of(kind, 1, number), ids=[f"id{number}"], contents=contents)
        say.send(("added", number))
        if number % 2:
            folder.erase([number - 3])
            say.send(("erased", number - 3))


@pytest.mark.usefixtures("no_sync")
@KINDS
def test_killed_at_random_moments(kind: str, place: Path) -> None:
    chance = random.Random(5)
    PoolFolder.create(place, make(kind))
    added, erased = 5, set()
    for _ in range(10):
        hear, say = FORK.Pipe(duplex=False)
        process = FORK.Process(target=_add_and_erase, args=(place, kind, say))
        process.start()
        say.close()
        time.sleep(chance.uniform(0.02, 0.3))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        try:
            while True:
                what, number = hear.recv()
                added = max(added, number) if what == "added" else added
                erased |= {number} if what == "erased" else set()
        except EOFError:
            pass
        folder = PoolFolder(place)
        loaded = folder.load()
        folder.verify()
        assert len(loaded) in (added + 1, added + 2)
        gone = set(np.flatnonzero(loaded.withdrawn).tolist())
        assert erased <= gone <= erased | {row for row in range(len(loaded)) if row % 2 == 0}
        assert len(gone - erased) <= 1
        erased = gone
        left = everything(place)
        for row in range(len(loaded)):
            assert (f"Märker-{row:05d}-".encode() in left) == (row not in gone)
            assert (loaded.content(row)["text"] is None) == (row in gone)
        added = len(loaded) - 1
    assert added > 20
    assert erased
