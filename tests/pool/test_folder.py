"""Pools on disk: the same bits come back, erased rows are in no file, and no crash or full disk loses a row."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from stored_pools import KINDS, everything, make, names_of, plain, raw, same, texts_of, values_of

from activecover.errors import InputError
from activecover.pool import Pool, PoolFolder
from activecover.pool._parts import BLOCK

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


# -- what can be wrong -------------------------------------------------------------------------------


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
