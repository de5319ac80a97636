"""Pool folders with full disks, damaged files and other problems."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stored_pools import FORK, KINDS, everything, make, names_of, same, texts_of, values_of

from activecover.errors import InputError, StoreError
from activecover.pool import Pool, PoolFolder


def limited(limit: int, work: Callable[[], Any]) -> str:
    """What is said in a child that may not write files beyond a size, as on a full disk."""
    hear, say = FORK.Pipe(duplex=False)

    def child() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            work()
            say.send("")
        except Exception as wrong:
            say.send(f"{type(wrong).__name__}: {wrong}")

    process = FORK.Process(target=child)
    process.start()
    said = str(hear.recv())
    process.join()
    return said


@KINDS
def test_no_room_for_more(kind: str, place: Path) -> None:
    said = limited(4000, lambda: PoolFolder.create(place, make(kind, 500)))
    assert said.startswith("StoreError")
    assert "the disk is full" in said
    assert "\n" not in said
    assert list(place.parent.iterdir()) == []
    folder = PoolFolder.create(place, make(kind))
    before = everything(place)
    more: dict[str, Any] = {"ids": names_of(500, 6), "contents": texts_of(500, 6)}
    assert "the disk is full" in limited(4000, lambda: folder.append(values_of(kind, 500, 6), **more))
    assert everything(place) == before
    assert "the disk is full" in limited(2, lambda: folder.erase([1]))
    assert everything(place) == before
    # What was begun is finished by whoever comes next.
    assert "the disk is full" in limited(10, lambda: folder.erase([2]))
    same(folder.load(), make(kind).without([2]))
    assert "the disk is full" in limited(100, lambda: folder.copy_to(place.parent / "two"))
    assert [path.name for path in place.parent.iterdir()] == ["one"]
    folder.append(values_of(kind, 500, 6), **more)
    folder.verify()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 kB, where the system lets us have one; else files may be of that size."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(disk)], capture_output=True)
    if mounted.returncode:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
        yield disk
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    else:
        yield disk
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_loses_nothing(small_disk: Path) -> None:
    place = small_disk / "pool"
    folder = PoolFolder.create(place, Pool(np.ones((10, 64), np.float32), contents={"t": ["x"] * 10}))
    with pytest.raises(StoreError, match="the disk is full"):
        PoolFolder.create(small_disk / "two", Pool(np.ones((5000, 64), np.float32)))
    for _ in range(100):
        rows = folder.rows
        try:
            folder.append(np.full((50, 64), rows, np.float32), contents={"t": [f"{rows}"] * 50})
        except StoreError as wrong:
            said = str(wrong)
            break
    assert "the disk is full" in said
    assert folder.rows == rows
    folder.verify()
    assert folder.load().content(rows - 1) == {"t": f"{rows - 50}"}
    assert [path.name for path in small_disk.iterdir()] == ["pool"]


@KINDS
def test_every_file_that_is_cut_or_missing_is_named(kind: str, place: Path) -> None:
    folder = PoolFolder.create(place, make(kind), embedding_files={"e.json": b"{}"})
    for path in folder.files()[1:]:
        whole = path.read_bytes()
        if len(whole) == 128:  # the origin of bits is empty
            continue
        path.write_bytes(whole[:-1])
        for use in (folder.load, folder.verify, lambda: folder.erase([0])):
            with pytest.raises(StoreError, match=f"{path.name}: cut off"):
                use()
        path.unlink()
        with pytest.raises(StoreError, match=f"{path.name}: missing"):
            folder.load()
        path.write_bytes(whole)
    same(folder.load(), make(kind))


@KINDS
def test_every_changed_byte_is_found(kind: str, place: Path) -> None:
    folder = PoolFolder.create(place, make(kind), embedding_files={"e.json": b"{}"})
    chance = random.Random(1)
    for path in folder.files():
        whole = path.read_bytes()
        for spot in {0, len(whole) - 1, *(chance.randrange(len(whole)) for _ in range(10))}:
            path.write_bytes(whole[:spot] + bytes([whole[spot] ^ 0x11]) + whole[spot + 1 :])
            with pytest.raises((StoreError, InputError)) as caught:
                folder.verify()
            assert "\n" not in str(caught.value)
        path.write_bytes(whole)
    folder.verify()


def test_damaged_contents_are_named_by_their_row(place: Path) -> None:
    folder = PoolFolder.create(place, make("dense"))
    data = (place / "contents.bin").read_bytes()
    (place / "contents.bin").write_bytes(data.replace(b'"M\xc3\xa4rker-00003', b"}M\xc3\xa4rker-00003"))
    pool = folder.load()
    assert pool.content(2)["year"] == 1902
    with pytest.raises(StoreError, match="contents of row 3 are damaged"):
        pool.content(3)


def test_sparse_entries_that_point_nowhere_are_refused(place: Path) -> None:
    folder = PoolFolder.create(place, make("sparse"))
    for name in ("indices.npy", "indptr.npy"):
        whole = (place / name).read_bytes()
        (place / name).write_bytes(whole[:131] + b"\x70" + whole[132:])
        with pytest.raises(StoreError, match=f"{name}: damaged"):
            folder.load()
        (place / name).write_bytes(whole)


def test_other_things_that_are_wrong(place: Path) -> None:
    with pytest.raises(InputError, match="no pool is stored here"):
        PoolFolder(place).load()
    with pytest.raises(InputError, match="no pool is stored here"):
        PoolFolder(place).erase([0])
    folder = PoolFolder.create(place, make("dense"))
    with pytest.raises(InputError, match="exists already"):
        PoolFolder.create(place, make("dense"))
    with pytest.raises(InputError, match="exists already"):
        folder.copy_to(place)
    written = json.loads((place / "pool.json").read_text())
    (place / "pool.json").write_text(json.dumps({**written, "format": 99}))
    with pytest.raises(StoreError, match=r"newer version \(format 99"):
        folder.load()
    (place / "pool.json").write_text(json.dumps({**written, "rows": 5}))
    with pytest.raises(StoreError, match=r"pool.json: damaged"):
        folder.load()
    (place / "pool.json").write_text("{")
    with pytest.raises(StoreError, match=r"pool.json: damaged"):
        folder.load()
    (place / "pool.json").write_text(json.dumps(written))
    (place / "erasing.json").write_text("[99]")
    with pytest.raises(StoreError, match=r"erasing.json: damaged"):
        folder.load()
    file = place.parent / "file"
    file.write_text("")
    with pytest.raises(StoreError, match="cannot be stored"):
        PoolFolder.create(file / "pool", make("dense"))


def test_a_folder_that_may_not_be_written_to(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = PoolFolder.create(place, make("dense"))
    real = os.open

    def refuse(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *more, **named)

    def refuse_open(self: Path, mode: str = "r", *more: Any, **named: Any) -> Any:
        if set(mode) & set("wa+"):
            raise PermissionError(13, "Permission denied")
        return open(self, mode, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(Path, "open", refuse_open)
    for use in (lambda: folder.erase([1]), lambda: folder.append([[1.0] * 4], ids=["x"], contents=texts_of(1))):
        with pytest.raises(StoreError, match=r"rows cannot be .* \(Permission denied\)"):
            use()
    same(folder.load(), make("dense"))
    folder.verify()


def test_only_one_process_stores_a_pool_in_a_place(place: Path) -> None:
    class Slow(Pool):
        def content(self, row: int) -> dict[str, Any]:
            if row == 3:
                with pytest.raises(StoreError, match="another process is storing"):
                    PoolFolder.create(place, make("dense"))
            return super().content(row)

    PoolFolder.create(place, Slow(values_of("dense", 6), ids=names_of(6), contents=texts_of(6)))
    same(PoolFolder(place).load(), make("dense"))
