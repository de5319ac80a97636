"""Tables from files: each kind of file gives the same table, and what is wrong is named by its place."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from activecover.errors import InputError
from activecover.intake import Table, make_pool, read_table

COLUMNS = {"id": ["a", "b", "c"], "size": [1.5, 2.0, -3.0], "note": ["x, y", 'say "hi"', ""]}


def write(path: Path) -> Path:
    rows = list(zip(*COLUMNS.values(), strict=True))
    if path.suffix == ".parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table(COLUMNS), path, row_group_size=2)
    elif path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(COLUMNS, row, strict=True))) for row in rows]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    elif path.suffix == ".tsv":
        path.write_text("\n".join("\t".join(map(str, row)) for row in [[*COLUMNS], *rows]) + "\n", "utf-8")
    elif path.suffix == ".npz":
        np.savez(path, **{name: np.array(values) for name, values in COLUMNS.items()})
    else:
        quoted = [[str(value).replace('"', '""') for value in row] for row in [[*COLUMNS], *rows]]
        path.write_text("".join(",".join(f'"{value}"' for value in row) + "\r\n" for row in quoted), "utf-8-sig")
    return path


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet", "npz"])
def test_every_kind_of_file_gives_the_same_table(tmp_path: Path, suffix: str) -> None:
    table = read_table(write(tmp_path / f"t.{suffix}"))
    assert (len(table), table.names) == (3, ["id", "size", "note"])
    assert table.texts("id") == COLUMNS["id"]
    assert table.texts("note") == COLUMNS["note"]
    assert [float(text) for text in table.texts("size")] == COLUMNS["size"]
    numbers = np.empty((3, 1))
    table.fill(["size"], numbers)
    assert numbers[:, 0].tolist() == COLUMNS["size"]


def test_a_table_without_names_or_delimiters(tmp_path: Path) -> None:
    path = tmp_path / "t.data"
    path.write_text("A11 6  7\nA12 48 9\n\n")
    table = read_table(path, header=False)
    assert {name: table.texts(name) for name in table.names} == {"1": ["A11", "A12"], "2": ["6", "48"], "3": ["7", "9"]}


def test_quotation_marks_between_tabs_are_text(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text('ham\t"so she said\nspam\t"win" now\nham\t"both ""ends"""\n')
    assert read_table(path, header=False).texts("2") == ['"so she said', '"win" now', 'both "ends"']
    path.write_text('name\ttext\na\t"two\nlines"\n')
    assert read_table(path).texts("text") == ["two\nlines"]


def test_a_whole_document_in_a_field(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,text\n1," + "word " * 50_000 + "\n")
    assert len(read_table(tmp_path / "t.csv").texts("text")[0]) == 250_000


def test_vectors_that_come_along(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.save(tmp_path / "t.npy", values)
    assert np.array_equal(read_table(tmp_path / "t.npy").vectors, values)
    np.savez(tmp_path / "t.npz", X=values, y=[0, 1, 0])
    table = read_table(tmp_path / "t.npz")
    assert np.array_equal(table.vectors, values)
    assert table.texts("y") == ["0", "1", "0"]
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_array(values))
    assert read_table(tmp_path / "s.npz").vectors.toarray().tolist() == values.tolist()


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_columns_of_lists(tmp_path: Path, suffix: str) -> None:
    values = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    path = tmp_path / f"t.{suffix}"
    if suffix == "parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        lists = arrow.array(values.tolist(), arrow.list_(arrow.float32()))
        parquet.write_table(arrow.table({"v": lists, "n": np.arange(40)}), path, row_group_size=7)
    else:
        path.write_text("\n".join(json.dumps({"v": row, "n": n}) for n, row in enumerate(values.tolist())))
    made = make_pool(read_table(path), vectors_file=tmp_path / "v.npy")
    assert np.array_equal(made.pool.vectors, values)
    assert made.pool.contents == {"n": [str(n) if suffix == "parquet" else f"{n}.0" for n in range(40)]}
    assert made.notes == ["vectors: column 'v' of lists of numbers"]


def test_parquet_with_gaps(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"n": [1, None, 3], "t": ["a", None, "c"]}), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert np.isnan(np.asarray(table.column("n"), float)).tolist() == [False, True, False]
    assert table.texts("t") == ["a", "", "c"]
    parquet.write_table(arrow.table({"v": [[1.0, 2.0], [3.0]]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"row 1, column 'v': lists of different lengths; make them equally long"):
        make_pool(read_table(tmp_path / "t.parquet"))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.csv", b"", "t.csv: the file is empty"),
        ("t.csv", b"a,b\n", "t.csv: no rows below the column names"),
        ("t.csv", b"a,b\n1,2\n3\n", "t.csv line 3: 1 values for 2 columns"),
        ("t.csv", b"a,a\n1,2\n", "t.csv: column 'a' appears twice"),
        ("t.csv", b'a,b\n1,"2\n', "t.csv line 2: unexpected end of data"),
        ("t.csv", b"a\n\xff\n", "t.csv: not UTF-8 text"),
        ("t.jsonl", b'{"a": 1}\n[1]\n', "t.jsonl line 2: not an object"),
        ("t.jsonl", b'{"a": 1}\n{"a"', "t.jsonl line 2: not JSON"),
        ("t.jsonl", b'{"a": [1, 2]}\n{"a": [1]}\n', r"row 1, column 'a': not a list of 2 numbers"),
        ("t.npy", b"no", "t.npy: not a .npy file"),
        ("t.npz", b"PK\x03\x04no", "t.npz: cannot be read, is it damaged"),
        ("t.parquet", b"PAR1no", "t.parquet: cannot be read, is it damaged"),
        ("t.zip", b"no", "t.zip: cannot be read, is it damaged"),
        ("t.xyz", b"no", "t.xyz: unknown kind of file '.xyz'; give a CSV, TSV"),
    ],
)
def test_bad_files_are_named_in_one_line(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        read_table(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_no_file() -> None:
    with pytest.raises(InputError, match="no such file"):
        read_table("nowhere.csv")


def test_columns_of_different_lengths() -> None:
    with pytest.raises(InputError, match=r"columns of \[1, 2\] rows"):
        Table.of({"a": [1], "b": [1, 2]})


# -- images -------------------------------------------------------------------------------------------


def picture(colour: tuple[int, int, int], size: tuple[int, int] = (20, 30), kind: str = "PNG") -> bytes:
    image: Any = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    written = io.BytesIO()
    image.new("RGB", size, colour).save(written, kind)
    return written.getvalue()


PICTURES = {
    "red/1.png": picture((250, 5, 5)),
    "red/2.jpg": picture((240, 10, 0), kind="JPEG"),
    "blue/1.PNG": picture((0, 0, 255), (5, 5)),
    "blue/2.png": picture((9, 0, 240)),
    "readme.txt": b"no image",
}


def lay_out(path: Path) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in PICTURES.items():
                archive.writestr(name, data)
    else:
        for name, data in PICTURES.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["pictures", "pictures.zip"])
def test_images_of_a_folder_or_a_zip_file(tmp_path: Path, name: str) -> None:
    made = make_pool(read_table(lay_out(tmp_path / name)), label_column="folder", seed=3)
    assert made.pool.ids == ["blue/1.PNG", "blue/2.png", "red/1.png", "red/2.jpg"]
    assert made.labels is not None
    assert made.labels.tolist() == ["blue", "blue", "red", "red"]
    assert made.notes[0].startswith("images: 4 files")
    points = made.pool.vectors
    assert np.linalg.norm(points[0] - points[1]) < np.linalg.norm(points[0] - points[2]) / 5


def test_an_image_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PICTURES["red/1.png"][:60])
    with pytest.raises(InputError, match=r"row 0 \(a.png\) is not a readable image"):
        make_pool(read_table(tmp_path))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="contains no images"):
        read_table(tmp_path / "empty")


def test_a_first_line_that_looks_like_a_row_is_doubted(tmp_path):
    path = tmp_path / "messages.tsv"
    path.write_text("ham\thello\nspam\twin\nham\tbye\n")
    with pytest.warns(UserWarning, match="'ham' is also a value of its column"):
        assert len(read_table(path)) == 2
    assert len(read_table(path, header=False)) == 3


def test_a_column_that_counts_is_taken_if_it_is_named() -> None:
    table = Table.of({"year": [1, 2, 3, 4], "size": [1, 1, 2, 5]})
    assert make_pool(table).pool.dimensions == 1
    assert make_pool(table, columns=["year"]).pool.dimensions == 1
    assert make_pool(table, embed="columns:year,size").pool.columns == ["year", "size"]
    assert make_pool(table, columns=["*"]).pool.columns == ["size"]


@pytest.mark.parametrize("name", ["a.png", "a.jpg"])
def test_no_program_is_started_for_a_file_that_is_called_an_image(tmp_path, monkeypatch, name):
    pytest.importorskip("PIL", reason="Pillow is not installed")
    marker, programs = tmp_path / "started", tmp_path / "programs"
    programs.mkdir()
    ghostscript = programs / "gs"
    ghostscript.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    ghostscript.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / name).write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    table = read_table(folder)
    assert list(table.column("image")) == [""]
    with pytest.raises(InputError, match="is not a readable image"):
        make_pool(table)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("name", "options"),
    [("a.jpg", {"progressive": True}), ("a.jpg", {}), ("a.png", {}), ("a.gif", {}), ("a.ppm", {}), ("a.bmp", {}),
     ("a.tif", {"compression": "raw"}), ("a.webp", {})],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["1", "L", "RGB"])
def test_ordinary_images_of_every_kind_are_read(tmp_path: Path, name: str, options: dict[str, Any], mode: str) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    random = np.random.default_rng(0)
    pixels = image.fromarray(random.integers(0, 256, (40, 60, 3), np.uint8)).convert(mode)
    pixels.save(tmp_path / name, **options)
    assert read_table(tmp_path).column("image")[0].startswith("data:image/")


def test_a_comment_in_a_pixmap_is_passed_over(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    (tmp_path / "a.ppm").write_bytes(b"P6\n# made by hand\n2 2\n255\n" + bytes(12))
    assert read_table(tmp_path).column("image")[0].startswith("data:image/png")
