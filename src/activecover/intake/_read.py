"""Tables from files, whose type is recognised by name."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from activecover.errors import InputError
from activecover.intake._images import ImageFiles
from activecover.intake._references import FORMATS, read_references
from activecover.intake._table import Column, Table
from activecover.tables import (
    ParquetColumns,
    TextTable,
    json_lines,
    npz_arrays,
    read_array,
    readable,
    sparse_in,
    vectors_in,
)

_DELIMITED = frozenset({".csv", ".tsv", ".txt", ".data", ".dat"})
_LONGEST_FIELD = 1 << 27
#: Most cells of a table of records, absolutely or per value: more result from names that never recur.
_SURELY_FINE, _MOST_EMPTY = 1 << 24, 100


def read_table(path: str | Path, *, header: bool = True) -> Table:
    """Read any file that can become a pool, as a table.

    Parameters
    ----------
    path : path
        A ``.csv``, ``.tsv``, ``.txt``, ``.data``, ``.parquet``, ``.jsonl``, ``.npy``, ``.npz``, ``.ris`` or
        ``.nbib`` file, or a folder or ``.zip`` file of images.
    header : bool
        Whether a text table starts with column names; if not, they are "1", "2", ….

    Returns
    -------
    Table
    """
    path = Path(path)
    if path.is_dir():
        return _image_table(path)
    suffix = path.suffix.lower()
    with readable(path):
        if suffix in _DELIMITED:
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
    text = TextTable(path, header=header, longest=_LONGEST_FIELD)
    columns = [list(column) for column in zip(*(row for _, row in text), strict=True)]
    if header:
        _doubt_header(path, text.names, columns)
    return Table(str(path), len(columns[0]), dict(zip(text.names, columns, strict=True)))


def _doubt_header(path: Path, names: Sequence[str], columns: Sequence[Sequence[str]]) -> None:
    """Refuse a first line that looks like a row, which would be lost as column names."""
    for name, column in zip(names, columns, strict=True):
        if name and name in column:
            warnings.warn(
                f"{path}: the first line was read as column names, but {name[:40]!r} is also a value of its column; "
                "if the file has no column names, use --no-header",
                UserWarning,
                stacklevel=4,
            )
            return


def _json_table(path: Path) -> Table:
    records: list[dict[str, object]] = []
    names: dict[str, None] = {}
    values = 0
    for line, record in json_lines(path):
        records.append(record)
        names.update(dict.fromkeys(record))
        values += len(record)
        if len(names) * len(records) > max(_SURELY_FINE, _MOST_EMPTY * values):
            raise InputError(
                f"{path} line {line}: {len(names):,} different names in {len(records):,} rows; "
                "use the same names in all rows"
            )
    if not records:
        raise InputError(f"{path}: the file is empty")
    columns = {name: _json_column(path, name, [record.get(name) for record in records]) for name in names}
    return Table(str(path), len(records), columns)


def _json_column(path: Path, name: str, values: list[object]) -> Column:
    if isinstance(values[0], list) and values[0] and all(_is_plain(part) for part in values[0]):
        for row, value in enumerate(values):
            if not isinstance(value, list) or len(value) != len(values[0]) or not all(map(_is_plain, value)):
                raise InputError(f"{path}: row {row}, column {name!r}: not a list of {len(values[0])} numbers")
        return np.array(values, np.float64)
    if all(_is_plain(value) or value is None for value in values) and any(value is not None for value in values):
        return np.array([np.nan if value is None else value for value in values], np.float64)
    return [json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value for value in values]


def _is_plain(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53


# -- arrays, references, images ---------------------------------------------------------------------


def _array_table(path: Path) -> Table:
    vectors = read_array(path)
    if vectors.ndim != 2:
        raise InputError(f"{path}: an array of {vectors.ndim} dimension(s); give a table of rows and columns")
    return Table(str(path), len(vectors), {}, vectors=vectors)


def _archive_table(path: Path) -> Table:
    """Arrays by name: X (or the only two-dimensional one) as vectors, one-dimensional ones as columns."""
    with npz_arrays(path) as packed:
        matrix = sparse_in(path, packed)
        if matrix is not None:
            return Table(str(path), matrix.shape[0], {}, vectors=matrix)
        arrays = dict(packed)
    chosen = vectors_in(path, {name: array for name, array in arrays.items() if array.ndim == 2})
    vectors = None if chosen is None else arrays[chosen]
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
