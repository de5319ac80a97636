"""Pools from files: every kind gives the same pool, and what is wrong is named by its place."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from activecover.errors import InputError, MissingExtraError
from activecover.pool import Pool, as_positive, load_pool, read_array, read_vectors

IDS = ["a", "b", "c", "d"]
POINTS = np.array([[0.1, 2], [-3.5, 4], [1e-3, 6e5], [7, 8]], np.float32)
LABELS = ["yes", "no", "no", "yes"]


def write(path: Path, points: Any = POINTS, ids: Any = IDS, labels: Any = LABELS) -> Path:
    rows = [
        [name, *map(repr, map(float, point)), label] for name, point, label in zip(ids, points, labels, strict=True)
    ]
    names = ["id", *(f"x{i}" for i in range(points.shape[1])), "label"]
    if path.suffix == ".parquet":
        columns = {"id": ids, **{f"x{i}": points[:, i] for i in range(points.shape[1])}, "label": labels}
        pa.parquet.write_table(pa.table(columns), path)
    elif path.suffix == ".npz":
        np.savez(path, X=points, id=np.array(ids), label=np.array(labels))
    else:
        mark = {".csv": ",", ".tsv": "\t", ".txt": ";"}[path.suffix]
        path.write_text("".join(mark.join(row) + "\n" for row in [names, *rows]), "utf-8")
    return path


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt", "npz", "parquet"])
def test_every_kind_of_file_gives_the_same_pool(tmp_path: Path, suffix: str, metric: str) -> None:
    loaded = load_pool(write(tmp_path / f"p.{suffix}"), id_col="id", label_col="label", metric=metric)
    assert loaded.pool.fingerprint() == Pool(POINTS, ids=IDS, metric=metric).fingerprint()
    assert loaded.labels is not None
    assert loaded.labels.tolist() == LABELS


@given(hnp.arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.floats(-1e6, 1e6, width=32)))
def test_no_kind_of_file_loses_a_digit(tmp_path_factory: pytest.TempPathFactory, points: np.ndarray) -> None:
    folder = tmp_path_factory.mktemp("pool")
    names = [str(row) for row in range(len(points))]
    expected = Pool(points, ids=names).fingerprint()
    for suffix in ("csv", "tsv", "npz", "parquet"):
        path = write(folder / f"p.{suffix}", points, names, ["yes"] * len(points))
        pool = load_pool(path, id_col="id", label_col="label").pool
        assert pool.fingerprint() == expected


def test_a_float32_npy_stays_on_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", POINTS)
    pool = load_pool(tmp_path / "p.npy").pool
    base: Any = pool.vectors
    while not isinstance(base, np.memmap) and base is not None:
        base = base.base
    assert isinstance(base, np.memmap)
    assert pool.fingerprint() == Pool(POINTS).fingerprint()


@pytest.mark.parametrize("change", [np.asfortranarray, lambda x: x.astype(np.float64), lambda x: x.astype(">f4")])
def test_other_layouts_of_an_npy(tmp_path: Path, change: Any) -> None:
    np.save(tmp_path / "p.npy", change(POINTS))
    pool = load_pool(tmp_path / "p.npy").pool
    assert pool.vectors.dtype == np.float32
    assert pool.fingerprint() == Pool(POINTS).fingerprint()


def test_an_npz_with_one_table_needs_no_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", vectors=POINTS, id=np.array(IDS))
    assert load_pool(tmp_path / "p.npz").pool.fingerprint() == Pool(POINTS).fingerprint()
    np.savez(tmp_path / "p.npz", one=POINTS, two=POINTS + 1)
    assert load_pool(tmp_path / "p.npz", columns=["one"]).pool.fingerprint() == Pool(POINTS).fingerprint()
    assert np.array_equal(read_vectors(write(tmp_path / "q.npz")), POINTS)


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float32(), 2)])
def test_a_parquet_column_of_lists(tmp_path: Path, kind: Any) -> None:
    table = pa.table({"id": IDS, "v": pa.array(POINTS.tolist(), kind)})
    pa.parquet.write_table(table, tmp_path / "p.parquet", row_group_size=3)
    pool = load_pool(tmp_path / "p.parquet", id_col="id").pool
    assert pool.fingerprint() == Pool(POINTS, ids=IDS).fingerprint()
    assert pool.columns == ["v[0]", "v[1]"]


def test_contents_and_labels_are_kept_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "p.csv")
    pool = load_pool(path, id_col="id", label_col="label").pool
    assert list(pool.contents) == ["id", "x0", "x1"]
    assert list(load_pool(path, content_cols=["label"]).pool.contents) == ["label"]
    assert load_pool(path, columns=["x1"]).pool.dimensions == 1


def test_vectors_from_another_file(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", POINTS)
    pool = load_pool(write(tmp_path / "p.csv"), id_col="id", vectors=tmp_path / "v.npy").pool
    assert pool.fingerprint() == Pool(POINTS, ids=IDS).fingerprint()


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffid,x\na,1\n",
        "id,x\r\na,1\r\n",
        'id,x\n"a", 1 \n\n\n',
        "id;x\na;1\n",
        "id\tx\na\t1\n",
        " id , x \na,1",
    ],
)
def test_text_as_people_save_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.csv").write_bytes(text.encode())
    pool = load_pool(tmp_path / "p.csv", id_col="id").pool
    assert (pool.ids, len(pool), pool.dimensions) == (["a"], 1, 1)


def test_text_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("\ufeff1,2,yes\n3,4,no\n", "utf-8")
    loaded = load_pool(tmp_path / "p.csv", header=False, label_col="3")
    assert loaded.pool.vectors.tolist() == [[1, 2], [3, 4]]
    assert loaded.pool.columns == ["1", "2"]


def test_a_code_with_an_underscore_is_a_name(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("month,x\n2021_07,1\n2021_08,2\n")
    assert load_pool(tmp_path / "p.csv").pool.columns == ["x"]


# -- what is wrong -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "p.csv: the file is empty"),
        ("id,x\n", "p.csv: no rows below"),
        ("id,x\na,1,2\n", "p.csv line 2: 3 values for 2 columns"),
        ("id,x\na,1\n\nb\n", "p.csv line 4: 1 values for 2 columns"),
        ("id,x\na,1\nb,\n", "p.csv line 3, column 'x': empty"),
        ("id,x\na,1\nb,two\n", "p.csv line 3, column 'x': 'two' is not a number"),
        ("id,x\na,1\nb,NaN\n", "p.csv line 3, column 'x': NaN is not a finite number"),
        ('id,x\n"a\nb",1\nc,inf\n', "p.csv line 4, column 'x': inf"),
        ("id,x\na,1\nb,1e16\n", "p.csv: row 1, column 'x': 1e+16 is beyond"),
        ("id,x\na,1\na,1\n", "p.csv: id 'a' appears twice"),
        ("id,x,x\na,1,1\n", "p.csv: column 'x' appears twice"),
        ("id,x\na,b\n", "p.csv: no numeric columns"),
        ('id,x\n"a,1\n', "p.csv line 2: unexpected end of data"),
        ("name,x\na,1\n", "p.csv: no column 'id' (columns are: name, x)"),
    ],
)
def test_bad_text(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(InputError) as wrong:
        load_pool(tmp_path / "p.csv", id_col="id")
    assert says in str(wrong.value)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "npy", "npz", "parquet"])
@pytest.mark.parametrize("content", [b"", b"\x00" * 300, b"\xff\xfe" * 50, b"PK\x03\x04", b"\x93NUMPY", b"PAR1"])
def test_bytes_of_no_such_kind(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"p.{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"p\\.{suffix}"):
        load_pool(path)


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_a_file_cut_anywhere(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"p.{suffix}")
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match=f"p\\.{suffix}"):
            load_pool(path, id_col="id", label_col="label")


def test_an_npy_cut_anywhere(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", POINTS)
    whole = (tmp_path / "p.npy").read_bytes()
    for cut in range(len(whole)):
        (tmp_path / "p.npy").write_bytes(whole[:cut])
        with pytest.raises(InputError, match=r"p\.npy"):
            load_pool(tmp_path / "p.npy")


@pytest.mark.parametrize(
    "error", [zlib.error("broken"), TypeError("broken"), RuntimeError("broken\nand more"), KeyError("x")]
)
def test_whatever_a_library_raises_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(np, "load", fail)
    with pytest.raises(InputError, match=r"p\.npz: cannot be read, is it damaged\?") as wrong:
        load_pool(write(tmp_path / "p.npz"))
    assert "\n" not in str(wrong.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for path, says in [(tmp_path / "p.csv", "no such file"), (tmp_path, "not a file")]:
        with pytest.raises(InputError, match=says):
            load_pool(path)
    with pytest.raises(InputError, match="no such file"):
        read_vectors(tmp_path / "v.npy")
    with pytest.raises(InputError, match="no such file"):
        read_array(tmp_path / "v.npy")
    with pytest.raises(InputError, match=r"\.npy or \.npz"):
        read_vectors(write(tmp_path / "p.csv"))
    (tmp_path / "p.doc").touch()
    with pytest.raises(InputError, match=r"unknown kind of file '\.doc'"):
        load_pool(tmp_path / "p.doc")


def test_a_bad_value_in_vectors_of_their_own_names_that_file(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", POINTS * np.nan)
    with pytest.raises(InputError, match=r"v\.npy: row 0, column 0"):
        load_pool(write(tmp_path / "p.csv"), vectors=tmp_path / "v.npy")


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "p.parquet")
    for module in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"Parquet files need pyarrow: pip install 'activecover\[parquet\]'"):
        load_pool(path)


# -- labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        ["yes", "no"],
        ["1", "0"],
        [1, 0],
        [1.0, 0.0],
        [True, False],
        ["TRUE", "false"],
        [" Y ", "n"],
        ["pos", "neg"],
    ],
)
def test_yes_and_no(labels: list[Any]) -> None:
    assert as_positive(labels).tolist() == [True, False]
    assert as_positive(np.array(labels)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("labels", "positive", "says"),
    [
        (["no", "no"], None, "no label is positive"),
        (["yes", "perhaps"], None, "row 1: label 'perhaps' is neither yes nor no"),
        (["yes", ""], None, "row 1: label '' is neither"),
        (["yes", None], None, "row 1: label 'None' is neither"),
        ([float("nan")], None, "row 0: label 'nan' is neither"),
        ([2, 1], None, "row 0: label '2' is neither"),
        (["A", "B"], "C", "no label equals 'C' (labels are: A, B)"),
        (list("abcdefghij"), "z", "a, b, c, d, e, f, g, h, …"),
    ],
)
def test_bad_labels(labels: list[Any], positive: str | None, says: str) -> None:
    with pytest.raises(InputError) as wrong:
        as_positive(labels, positive)
    assert says in str(wrong.value)
