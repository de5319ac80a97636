"""Pools on disk: the same bits come back, erased rows are in no file, and no crash or full disk loses a row."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from activecover.errors import InputError, StoreError
from activecover.pool import PackedBits, Pool, PoolFolder
from activecover.pool._parts import BLOCK

KINDS = pytest.mark.parametrize("kind", ["dense", "sparse", "bits"])
FORK = multiprocessing.get_context("fork")


def values_of(kind: str, rows: int, first: int = 0) -> Any:
    """Rows with bytes that no other row has: numbers for dense and sparse, bits for bits."""
    if kind == "bits":
        marks = [np.frombuffer(f"ROW{first + row:05d}".encode(), np.uint8) for row in range(rows)]
        return PackedBits(np.stack(marks), 64)
    dense = np.zeros((rows, 4), np.float32)
    # Not to be centred, but for one column.
    dense[:, 0], dense[:, 2] = 1000.25 * np.arange(first + 1, first + rows + 1), 0.5
    dense[:, 3] = np.arange(first, first + rows) % 2
    return sparse.csr_array(dense) if kind == "sparse" else dense


def texts_of(rows: int, first: int = 0) -> dict[str, list[Any]]:
    return {
        "text": [f"Märker-{first + row:05d}-" + "x" * (row % 7) for row in range(rows)],
        "year": [1900 + row for row in range(rows)],
    }


def names_of(rows: int, first: int = 0) -> list[str]:
    return [f"id{first + row}\n" for row in range(rows)]


def make(kind: str, rows: int = 6) -> Pool:
    metric = "jaccard" if kind == "bits" else "euclidean"
    return Pool(values_of(kind, rows), metric=metric, ids=names_of(rows), contents=texts_of(rows))


def raw(kind: str, pool: Pool, row: int) -> bytes:
    """The bytes that a row's vector has in a file."""
    stored = pool.take([row])
    return bytes((stored.data[:1] if kind == "sparse" else stored[0, :1]).tobytes())


def plain(vectors: Any) -> list[bytes]:
    if sparse.issparse(vectors):
        return [part.tobytes() for part in (vectors.data, vectors.indices, vectors.indptr)]
    return [np.ascontiguousarray(vectors).tobytes()]


def same(one: Pool, other: Pool) -> None:
    assert (one.kind, one.metric, one.dimensions, one.columns) == (
        other.kind, other.metric, other.dimensions, other.columns,
    )  # fmt: skip
    assert one.vectors.dtype == other.vectors.dtype
    assert plain(one.vectors) == plain(other.vectors)
    assert one.origin.tobytes() == other.origin.tobytes()
    assert one.ids == other.ids
    assert (one._names is None) == (other._names is None)
    assert repr({k: list(v) for k, v in one.contents.items()}) == repr({k: list(v) for k, v in other.contents.items()})
    assert one.withdrawn.tolist() == other.withdrawn.tolist()
    assert one.fingerprint(contents=True) == other.fingerprint(contents=True)


def everything(folder: Path) -> bytes:
    """The raw bytes of every file, hidden ones and neighbours included."""
    return b"\n".join(path.read_bytes() for path in sorted(folder.parent.rglob("*")) if path.is_file())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "pools" / "one"


# -- what comes back ---------------------------------------------------------------------------------


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    kind = draw(st.sampled_from(["dense", "sparse", "bits"]))
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 70 if kind == "bits" else 5)))
    ids = draw(st.none() | st.lists(NAMES, min_size=shape[0], max_size=shape[0], unique=True))
    column = st.lists(VALUES, min_size=shape[0], max_size=shape[0])
    contents = draw(st.dictionaries(st.text(max_size=3), column, max_size=2))
    more: dict[str, Any] = {"ids": ids, "contents": contents}
    if draw(st.booleans()):
        more["columns"] = [f"c{number}" for number in range(shape[1])]
    if kind == "bits":
        return Pool(draw(hnp.arrays(bool, shape)), metric="jaccard", **more)
    offset = draw(st.sampled_from([0.0, 1e6]))
    matrix = draw(hnp.arrays(np.float32, shape, elements=st.floats(-100, 100, width=32))) + np.float32(offset)
    metric = draw(st.sampled_from(["euclidean", "cosine"]))
    if metric == "cosine":
        matrix[:, 0] += 1000
    return Pool(sparse.csr_array(matrix) if kind == "sparse" else matrix, metric=metric, **more)


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=4)
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=9)


@given(pools(), st.data())
def test_all_that_is_stored_comes_back_bit_by_bit(pool: Pool, data: st.DataObject) -> None:
    # Syncs take most of the time, and nothing is lost here without them.
    with tempfile.TemporaryDirectory() as scratch, mock.patch("os.fsync"):
        folder = PoolFolder.create(Path(scratch) / "pool", pool, about={"source": "x.csv"})
        same(folder.load(), pool)
        folder.verify()
        copy = folder.copy_to(Path(scratch) / "copy")
        same(copy.load(), pool)
        erased = data.draw(st.lists(st.integers(0, len(pool) - 1)))
        copy.erase(erased)
        loaded = copy.load(writable=True)
        same(loaded, pool.without(erased))
        more = data.draw(st.lists(st.integers(0, len(pool) - 1), min_size=1))
        rows = pool.take(more)
        contents = {name: [values[row] for row in more] for name, values in pool.contents.items()}
        ids = None if pool._names is None else [f"new {number} of some length" for number in range(len(more))]
        copy.append(rows, ids=ids, contents=contents, encoded=True)
        copy.verify()
        same(loaded, copy.load())
        expected = pool.without(erased)
        expected._matrix.append(rows)
        assert plain(loaded.vectors) == plain(expected.vectors)
        assert repr(loaded.content(len(pool))) == repr(pool.content(more[0]))
        same(folder.load(), pool)
        tight = copy.copy_to(Path(scratch) / "tight", compact=True)
        tight.verify()
        assert tight.load().ids == loaded.ids
        assert repr([tight.load().content(row) for row in range(len(loaded))]) == repr(
            [loaded.content(row) for row in range(len(loaded))]
        )


@KINDS
def test_arrays_are_plain_npy_files_that_grow(kind: str, place: Path) -> None:
    folder = PoolFolder.create(place, make(kind))
    folder.append(values_of(kind, 3, 6), ids=names_of(3, 6), contents=texts_of(3, 6))
    assert np.load(place / "withdrawn.npy").tolist() == [False] * 9
    if kind == "sparse":
        assert len(np.load(place / "indptr.npy")) == 10
        assert len(np.load(place / "data.npy")) == len(np.load(place / "indices.npy"))
    else:
        assert len(np.load(place / "vectors.npy")) == 9


@KINDS
def test_added_rows_are_those_of_a_pool_in_memory(kind: str, place: Path) -> None:
    pool, folder = make(kind), PoolFolder.create(place, make(kind))
    loaded, reader = folder.load(writable=True), PoolFolder(place).load()
    for each in (pool, loaded):
        added = each.extend(values_of(kind, 2, 6), ids=names_of(2, 6), contents=texts_of(2, 6))
        assert added.tolist() == [6, 7]
    same(loaded, pool)
    same(folder.load(), pool)
    assert len(reader) == 6
    assert reader.refresh()
    same(reader, pool)
    assert not reader.refresh()
    assert reader.rows(["id7\n"]).tolist() == [7]


def test_numbers_become_ids_with_the_first_rows_that_have_any(place: Path) -> None:
    folder = PoolFolder.create(place, Pool([[0.0], [1.0]]))
    assert folder.append([[2.0]]).tolist() == [2]
    assert not (place / "ids.jsonl").exists()
    folder.append([[3.0]], ids=["x"])
    assert folder.load().ids == ["0", "1", "2", "x"]
    with pytest.raises(InputError, match="give ids"):
        folder.append([[4.0]])
    with pytest.raises(InputError, match="'x' appears twice"):
        folder.append([[4.0]], ids=["x"])
    with pytest.raises(InputError, match="2 ids for 1 rows"):
        folder.append([[4.0]], ids=["y", "z"])
    with pytest.raises(InputError, match="content columns: none"):
        folder.append([[4.0]], ids=["y"], contents={"text": ["a"]})
    with pytest.raises(InputError, match="nan is not a finite"):
        folder.append([[np.nan]], ids=["y"])
    with pytest.raises(InputError, match="not encoded by"):
        folder.append(np.ones((1, 2), np.float32), ids=["y"], encoded=True)
    assert folder.rows == 4
    folder.verify()


@KINDS
def test_a_pool_loaded_to_read_changes_in_memory_alone(kind: str, place: Path) -> None:
    pool, folder = make(kind), PoolFolder.create(place, make(kind))
    before = everything(place)
    loaded = folder.load()
    for each in (pool, loaded):
        each.withdraw([1])
        each.extend(values_of(kind, 2, 6), ids=names_of(2, 6), contents=texts_of(2, 6))
        each.withdraw([7])
    same(loaded, pool)
    assert loaded.content(6) == pool.content(6)
    assert loaded.content(1) == {"text": None, "year": None}
    assert everything(place) == before
    with pytest.raises(InputError, match="changed in memory"):
        loaded.refresh()
    folder.erase([0])
    pool.withdraw([0])
    same(loaded, pool)


def test_contents_are_read_like_lists(place: Path) -> None:
    column = PoolFolder.create(place, make("dense")).load().contents["year"]
    assert column == [1900, 1901, 1902, 1903, 1904, 1905]
    assert (column[-1], column[np.int64(1)], column[1:3], len(column)) == (1905, 1901, [1901, 1902], 6)
    assert column != [1900]
    assert "6 stored" in repr(column)
    with pytest.raises(IndexError):
        column[6]
    with pytest.raises(TypeError, match="never removed"):
        del column[0]
    with pytest.raises(TypeError, match="at its end"):
        column.insert(0, 1)


def test_a_loaded_pool_can_be_sent_to_another_process(place: Path) -> None:
    loaded = PoolFolder.create(place, make("dense")).load()
    same(pickle.loads(pickle.dumps(loaded)), make("dense"))
    assert type(loaded.without([1])) is Pool


def test_what_goes_with_the_pool(place: Path) -> None:
    files = {"embedding.json": b"{}", "arrays.npz": b"\0" * 2_000_000}
    folder = PoolFolder.create(place, make("dense"), embedding_files=files, about={"source": "ä.csv", "n": [1]})
    for each in (folder, folder.copy_to(place.parent / "copy"), folder.copy_to(place.parent / "c", compact=True)):
        assert each.embedding_files() == files
        assert each.about == {"source": "ä.csv", "n": [1]}
        assert (each.embedding_folder / "embedding.json").read_bytes() == b"{}"
        names = {path.relative_to(each.folder).as_posix() for path in each.files()}
        found = {path.relative_to(each.folder).as_posix() for path in each.folder.rglob("*") if path.is_file()}
        assert names == found
        assert each.size() == sum(path.stat().st_size for path in each.files())
    for name in ("../x", "a/b", "", ".."):
        with pytest.raises(InputError, match="plain file name"):
            PoolFolder.create(place.parent / "two", make("dense"), embedding_files={name: b""})
    with pytest.raises(InputError, match="JSON"):
        PoolFolder.create(place.parent / "two", make("dense"), about={"x": object()})
    with pytest.raises(InputError, match="row 0: its contents cannot be stored"):
        PoolFolder.create(place.parent / "two", Pool([[1.0]], contents={"x": [b"bytes"]}))
    assert sorted(path.name for path in place.parent.iterdir()) == ["c", "copy", "one"]


# -- erasing -----------------------------------------------------------------------------------------


@KINDS
def test_erased_rows_are_in_no_file_and_gone_from_loaded_pools(kind: str, place: Path) -> None:
    pool = make(kind, 40)
    folder = PoolFolder.create(place, pool)
    writing, reading, elsewhere = folder.load(writable=True), folder.load(), PoolFolder(place).load()
    marks = [(raw(kind, pool, row), f"Märker-{row:05d}".encode()) for row in range(40)]
    assert all(vector in everything(place) and text in everything(place) for vector, text in marks)
    chosen = [0, 7, 8, 39]
    writing.withdraw(chosen)
    left = everything(place)
    for row, (vector, text) in enumerate(marks):
        assert (vector in left, text in left) == (row not in chosen, row not in chosen)
    pool.withdraw(chosen)
    for each in (writing, reading, folder.load()):
        same(each, pool)
    assert (writing.erasures, reading.erasures, elsewhere.erasures) == (1, 1, 0)
    assert plain(elsewhere.vectors) == plain(pool.vectors)
    assert elsewhere.content(7) == {"text": None, "year": None}
    assert elsewhere.refresh()
    assert elsewhere.erasures == 1
    same(elsewhere, pool)
    folder.verify()
    before = left
    folder.erase(chosen)
    folder.erase([])
    assert everything(place) == before
    with pytest.raises(InputError, match="from 0 to 39"):
        folder.erase([40])


@KINDS
@pytest.mark.parametrize("chosen", [[0], [5], [2, 3], [0, 1, 2, 3, 4, 5]])
def test_every_byte_of_an_erased_row_is_overwritten_and_no_other(kind: str, chosen: list[int], place: Path) -> None:
    folder = PoolFolder.create(place, make(kind))
    before = {path.name: path.read_bytes() for path in folder.files()}
    folder.erase(chosen)
    ends = np.load(place / "offsets.npy").tolist()
    spans = {"contents.bin": [(ends[row], ends[row + 1], b" ") for row in chosen]}
    if kind == "sparse":
        entries = np.load(place / "indptr.npy").tolist()
        for name, size, empty in (("data.npy", 4, np.float32(np.nan).tobytes()), ("indices.npy", 4, bytes(4))):
            spans[name] = [(128 + size * entries[row], 128 + size * entries[row + 1], empty) for row in chosen]
    else:
        size, empty = (8, bytes(1)) if kind == "bits" else (16, np.float32(np.nan).tobytes())
        spans["vectors.npy"] = [(128 + size * row, 128 + size * (row + 1), empty) for row in chosen]
    spans["withdrawn.npy"] = [(128 + row, 129 + row, b"\1") for row in chosen]
    for name, data in before.items():
        expected = bytearray(data)
        for first, last, empty in spans.get(name, ()):
            assert last > first
            expected[first:last] = empty * ((last - first) // len(empty))
        if name != "pool.json":
            assert (place / name).read_bytes() == bytes(expected), name


@KINDS
def test_what_a_person_sees_is_part_of_the_fingerprint(kind: str, place: Path) -> None:
    metric = "jaccard" if kind == "bits" else "euclidean"

    def shown(contents: dict[str, list[Any]]) -> dict[str, str]:
        pool = Pool(values_of(kind, 2), metric=metric, ids=["a", "b"], contents=contents)
        return pool.fingerprint(contents=True)

    variants: list[dict[str, list[Any]]] = [
        {},
        {"text": ["x", "y"]},
        {"text": ["x", "z"]},
        {"text": ["xy", ""]},
        {"Text": ["x", "y"]},
        {"text": ["x", "y"], "more": ["", ""]},
        {"more": ["", ""], "text": ["x", "y"]},
        {"text": ["1", None]},
        {"text": [1, None]},
        {"text": [b"1", None]},
    ]
    prints = [shown(contents) for contents in variants]
    assert len({each["contents"] for each in prints}) == len(variants)
    assert len({(each["ids"], each["vectors"]) for each in prints}) == 1
    folder = PoolFolder.create(place, make(kind))
    assert folder.contents_hash == make(kind).fingerprint(contents=True)["contents"]
    folder.append(values_of(kind, 2, 6), ids=names_of(2, 6), contents=texts_of(2, 6))
    assert folder.load().fingerprint(6, contents=True) == make(kind).fingerprint(contents=True)
    folder.erase([1])
    assert folder.contents_hash == make(kind).fingerprint(contents=True)["contents"]


@KINDS
def test_a_copy_shares_nothing_with_the_first(kind: str, place: Path) -> None:
    folder = PoolFolder.create(place, make(kind))
    copy = folder.copy_to(place.parent / "two")
    assert all((copy.folder / path.name).stat().st_nlink == 1 for path in place.glob("*.*"))
    copy.erase([2])
    same(folder.load(), make(kind))
    folder.verify()
    same(copy.load(), make(kind).without([2]))


@KINDS
def test_pools_that_differ_in_erased_rows_have_the_same_compact_copy(kind: str, tmp_path: Path) -> None:
    seen = []
    for other in (0, 1):
        rows = make(kind)
        rows.extend(values_of(kind, 1, 80 + other), ids=["last"], contents={"text": ["y" * (50 * other)], "year": [1]})
        folder = PoolFolder.create(tmp_path / f"pool{other}", rows)
        folder.erase([6])
        copy = folder.copy_to(tmp_path / f"copy{other}", compact=True)
        seen.append({path.name: path.read_bytes() for path in copy.files()})
        copy.verify()
    assert seen[0] == seen[1]


def test_hashes_of_many_blocks_follow_rows_that_are_added_and_erased(place: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(3000, 256)).astype(np.float32)
    folder = PoolFolder.create(place, Pool(rows[:2000], contents={"t": ["é" * 700] * 2000}))
    assert (place / "vectors.npy").stat().st_size > BLOCK
    for start in range(2000, 3000, 250):
        folder.append(rows[start : start + 250], contents={"t": ["z" * 500] * 250})
        folder.erase([start, start // 2])
        folder.verify()
    expected = Pool(rows).without([*range(2000, 3000, 250), *range(1000, 1500, 125)])
    assert plain(folder.load().vectors) == plain(expected.vectors)


# -- crashes -----------------------------------------------------------------------------------------


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncs that take no time: a process that dies loses nothing without them, only a machine does."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


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


# -- what can be wrong -------------------------------------------------------------------------------


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


# -- memory ------------------------------------------------------------------------------------------

_MEASURE = """
import sys, resource
from pathlib import Path
import numpy as np
from activecover.pool import Pool, PoolFolder

def held(key):
    for line in open("/proc/self/status"):
        if line.startswith(key):
            return int(line.split()[1]) * 1024

place, rows, wide = Path(sys.argv[1]), int(sys.argv[2]), 128
source = np.memmap(place / "source", np.float32, "r", shape=(rows, wide))
before = held("VmRSS")
pool = Pool(source, ids=[f"id{row}" for row in range(rows)])
PoolFolder.create(place / "pool", pool)
peak = held("VmHWM") - before
del pool, source
before = held("RssAnon")
loaded = PoolFolder(place / "pool").load()
loaded.take([5, rows - 1])
print(peak, held("RssAnon") - before, held("RssFile"))
"""


@pytest.mark.parametrize("rows", [100_000, pytest.param(1_000_000, marks=pytest.mark.deep)])
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_stays_below_the_vectors(rows: int, tmp_path: Path) -> None:
    vectors = rows * 128 * 4
    with (tmp_path / "source").open("wb") as file:
        for _ in range(100):
            file.write(np.random.default_rng(0).normal(size=(rows // 100, 128)).astype(np.float32).tobytes())
    measured = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(tmp_path), str(rows)], capture_output=True, text=True, check=True
    )
    peak, loaded, _ = (int(number) for number in measured.stdout.split())
    assert peak < 2 * vectors + (1 << 27)
    assert loaded < vectors / 2
