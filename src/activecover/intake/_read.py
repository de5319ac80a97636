"""Tables from files: what a file can be, told by its name."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from scipy import sparse

from activecover.errors import InputError
from activecover.intake._images import ImageFiles
from activecover.intake._parquet import ParquetColumns
from activecover.intake._references import FORMATS, read_references
from activecover.intake._table import Column, Table
from activecover.pool import read_array
from activecover.pool._read import _readable as readable

_DELIMITED = frozenset({".csv", ".tsv", ".txt"})
#: Tables of old collections: columns are set apart by blanks where there is no better sign.
_BLANKS = frozenset({".data", ".dat"})
_LONGEST_FIELD = 1 << 27
#: A table of records may have so many cells, or so many for each value in it: more are made by names that never recur.
_SURELY_FINE, _MOST_EMPTY = 1 << 24, 100


def read_table(path: str | Path, *, header: bool = True) -> Table:
    """Read whatever can become a pool, as a table.

    Parameters
    ----------
    path : path
        A ``.csv``, ``.tsv``, ``.txt``, ``.data``, ``.parquet``, ``.jsonl``, ``.npy``, ``.npz``, ``.ris`` or
        ``.nbib`` file, or a folder or ``.zip`` file of images.
    header : bool
        Whether a text table begins with column names; if not they are "1", "2", ….

    Returns
    -------
    Table
    """
    path = Path(path)
    if path.is_dir():
        return _image_table(path)
    suffix = path.suffix.lower()
    with readable(path):
        if suffix in _DELIMITED | _BLANKS:
            return _text_table(path, header)
        if suffix in {".parquet", ".pq"}:
            columns = ParquetColumns(path)
            return Table(str(path), columns.rows, columns)
        if suffix in {".jsonl", ".ndjson"}:
            return _json_table(path)
        if suffix == ".npy":
            return _array_table(path)
        if suffix == ".npz":
            return _archive_table(path)
        if suffix in FORMATS:
            return _reference_table(path)
        if suffix == ".zip":
            return _image_table(path)
    known = "CSV, TSV, Parquet, JSONL, npy, npz, RIS or nbib file, or a folder or zip file of images"
    raise InputError(f"{path}: unknown kind of file {suffix!r}; give a {known}")


# -- text -------------------------------------------------------------------------------------------


def _text_table(path: Path, header: bool) -> Table:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise InputError(f"{path}: not UTF-8 text (byte {wrong.object[wrong.start]:#x}); save it as UTF-8") from wrong
    lines, rows = _split(path, text)
    if not rows:
        raise InputError(f"{path}: the file is empty")
    first = [name.strip() for name in rows[0]]
    names = first if header else [str(place + 1) for place in range(len(first))]
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path}: column {twice!r} appears twice" + ("" if header else "; has it no header?"))
    body = rows[1:] if header else rows
    if not body:
        raise InputError(f"{path}: no rows below the column names")
    for line, row in zip(lines[len(rows) - len(body) :], body, strict=True):
        if len(row) != len(names):
            raise InputError(
                f"{path} line {line}: {len(row)} values for {len(names)} columns; check its delimiters and quotes"
            )
    columns = [list(column) for column in zip(*body, strict=True)]
    if header:
        _doubt_header(path, names, columns)
    return Table(str(path), len(body), dict(zip(names, columns, strict=True)))


def _doubt_header(path: Path, names: Sequence[str], columns: Sequence[Sequence[str]]) -> None:
    """Say so where a first line taken for column names looks like a row, which would be lost."""
    for name, column in zip(names, columns, strict=True):
        if name and name in column:
            warnings.warn(
                f"{path}: the first line was taken for column names, but {name[:40]!r} is also a value of its column; "
                "if the file has no column names say so (--no-header)",
                UserWarning,
                stacklevel=4,
            )
            return


def _split(path: Path, text: str) -> tuple[list[int], list[list[str]]]:
    """The rows of a text table, and the line that each ends on; empty lines are left out."""
    first = text.lstrip("\r\n").partition("\n")[0]
    mark = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first.count)
    if path.suffix.lower() in _BLANKS and mark not in first:
        return _numbered([line.split() for line in text.split("\n")])
    if mark == "\t":
        # Tabs seldom come with quotes: a quotation mark is then a part of the text. A line is a row if all
        # lines agree on the number of fields.
        plain = [line.split(mark) for line in text.replace("\r\n", "\n").split("\n") if line]
        if len({len(row) for row in plain}) == 1:
            return _numbered([[_unquoted(field) for field in row] for row in plain])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    lines, rows = [], []
    with _long_fields():
        try:
            for row in reader:
                if row:
                    lines.append(reader.line_num)
                    rows.append(row)
        except csv.Error as wrong:
            raise InputError(f"{path} line {reader.line_num}: {wrong}; check its quotes and delimiters") from wrong
    return lines, rows


def _numbered(rows: Sequence[list[str]]) -> tuple[list[int], list[list[str]]]:
    kept = [(line, row) for line, row in enumerate(rows, 1) if row]
    return [line for line, _ in kept], [row for _, row in kept]


def _unquoted(field: str) -> str:
    """A field without the quotes that a writer of CSV put around it."""
    inside = field[1:-1]
    quoted = len(field) > 1 and field[0] == field[-1] == '"' and '"' not in inside.replace('""', "")
    return inside.replace('""', '"') if quoted else field


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let a field be a whole document; the limit belongs to the process, so it is put back."""
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _json_table(path: Path) -> Table:
    records: list[dict[str, Any]] = []
    names: dict[str, None] = {}
    values = 0
    with path.open(encoding="utf-8-sig") as file:
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                record = json.loads(text)
            except RecursionError as wrong:
                raise InputError(f"{path} line {line}: not readable, it is nested too deeply") from wrong
            except ValueError as wrong:
                raise InputError(f"{path} line {line}: not JSON ({wrong})") from wrong
            if not isinstance(record, dict):
                raise InputError(f"{path} line {line}: not an object; give one {{...}} per line")
            records.append(record)
            names.update(dict.fromkeys(record))
            values += len(record)
            if len(names) * len(records) > max(_SURELY_FINE, _MOST_EMPTY * values):
                raise InputError(
                    f"{path} line {line}: {len(names):,} different names in {len(records):,} rows; "
                    "give all rows the same"
                )
    if not records:
        raise InputError(f"{path}: the file is empty")
    columns = {name: _json_column(path, name, [record.get(name) for record in records]) for name in names}
    return Table(str(path), len(records), columns)


def _json_column(path: Path, name: str, values: list[Any]) -> Column:
    if isinstance(values[0], list) and values[0] and all(_is_plain(part) for part in values[0]):
        for row, value in enumerate(values):
            if not isinstance(value, list) or len(value) != len(values[0]) or not all(map(_is_plain, value)):
                raise InputError(f"{path}: row {row}, column {name!r}: not a list of {len(values[0])} numbers")
        return np.array(values, np.float64)
    if all(_is_plain(value) or value is None for value in values) and any(value is not None for value in values):
        return np.array([np.nan if value is None else value for value in values], np.float64)
    return [json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value for value in values]


def _is_plain(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53


# -- arrays, references, images ---------------------------------------------------------------------


def _array_table(path: Path) -> Table:
    vectors = read_array(path)
    if vectors.ndim != 2:
        raise InputError(f"{path}: an array of {vectors.ndim} dimension(s); give a table of rows and columns")
    return Table(str(path), len(vectors), {}, vectors=vectors)


def _archive_table(path: Path) -> Table:
    """Arrays by name: X (or the only one with two dimensions) as vectors, those with one as columns."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        if {*archive.files} >= {"format", "shape", "data"}:
            file.seek(0)
            matrix = sparse.load_npz(file)
            return Table(str(path), matrix.shape[0], {}, vectors=matrix)
        arrays = {name: archive[name] for name in archive.files}
    tables = (
        ["X"]
        if "X" in arrays and arrays["X"].ndim == 2
        else [name for name, array in arrays.items() if array.ndim == 2]
    )
    if len(tables) > 1:
        raise InputError(f"{path}: several arrays have two dimensions ({', '.join(tables)}); name the vectors X")
    vectors = arrays[tables[0]] if tables else None
    columns: dict[str, Column] = {
        name: array if array.dtype.kind in "fiub" else array.tolist()
        for name, array in arrays.items()
        if array.ndim == 1
    }
    lengths = {len(array) for array in [*columns.values(), *([] if vectors is None else [vectors])]}
    if len(lengths) != 1:
        raise InputError(f"{path}: arrays of {sorted(lengths)} rows; give one value per row")
    return Table(str(path), lengths.pop(), columns, vectors=vectors)


def _reference_table(path: Path) -> Table:
    references = read_references(path)
    parts = [reference.parts() for reference in references]
    columns: dict[str, Column] = {name: [part[name] for part in parts] for name in parts[0]}
    columns["number"] = [reference.number for reference in references]
    columns["decision"] = [reference.decision for reference in references]
    kept = {name: values for name, values in columns.items() if name in {"title", "abstract"} or any(values)}
    return Table(str(path), len(references), kept, references=references)


def _image_table(path: Path) -> Table:
    images = ImageFiles(path)
    columns: dict[str, Column] = {"file": list(images.names)}
    folders = [PurePosixPath(name).parent.name for name in images.names]
    if any(folders):
        columns["folder"] = list(folders)
    columns["image"] = images.pictures()
    return Table(str(path), len(images), columns, images=images)
