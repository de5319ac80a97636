"""Pools from files: .npy, .npz, CSV/TSV and Parquet, with every bad value named by its place."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import ActiveCoverError, InputError
from activecover.extras import require
from activecover.pool._bits import PackedBits
from activecover.pool._pool import Pool

POSITIVE_WORDS = frozenset({"1", "true", "yes", "y", "positive", "pos"})
NEGATIVE_WORDS = frozenset({"0", "false", "no", "n", "negative", "neg"})


@dataclass(frozen=True, slots=True)
class LoadedPool:
    """A pool read from a file, and its labels where the file had them (never part of the pool)."""

    pool: Pool
    labels: npt.NDArray[np.str_] | None = None


@dataclass(slots=True)
class _Table:
    """What a reader hands over: named vector columns (or a sparse matrix) and named columns of text."""

    vectors: Any
    names: list[str] | None
    texts: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which columns of a file play which part."""

    columns: Sequence[str] | None
    id_col: str | None
    label_col: str | None
    content_cols: Sequence[str] | None
    needs_vectors: bool

    def special(self) -> list[str]:
        return [name for name in (self.id_col, self.label_col) if name is not None]

    def texts(self, available: Sequence[str], vector_columns: Sequence[str]) -> list[str]:
        """The text columns to keep: id, label, and what a person is shown (all others by default)."""
        shown = self.content_cols if self.content_cols is not None else available
        keep = [name for name in available if name in {*shown, *self.special()}]
        if self.content_cols is None and len(keep) > 200:
            keep = [name for name in keep if name not in {*vector_columns} - {*self.special()}]
        return keep


def load_pool(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    id_col: str | None = None,
    label_col: str | None = None,
    content_cols: Sequence[str] | None = None,
    vectors: str | Path | None = None,
    metric: str = "euclidean",
    header: bool = True,
    bits: int | None = None,
) -> LoadedPool:
    """Read a pool from a ``.npy``, ``.npz``, ``.csv``, ``.tsv`` or ``.parquet`` file.

    Parameters
    ----------
    path : path
        The file. ``.npy`` is memory-mapped. In an ``.npz`` the vectors are the array ``X`` (or the one
        named by ``columns``, or the only one with two dimensions). An ``.npz`` written by
        ``scipy.sparse.save_npz`` gives a sparse pool.
    columns : sequence of str, optional
        The vector columns; by default every column whose first value is a number and that is not the
        id or the label. A Parquet column of lists is a vector too.
    id_col, label_col : str, optional
        Columns (arrays of an ``.npz``) with the ids and with known labels.
    content_cols : sequence of str, optional
        What to show a person; by default every column.
    vectors : path, optional
        A ``.npy`` or ``.npz`` file with the vectors, row for row, where ``path`` only has what to show.
    metric : {"euclidean", "cosine", "jaccard"}
        The pool's metric; jaccard takes zeros and ones, or packed bits.
    header : bool
        Whether a CSV or TSV file begins with column names; if not they are "1", "2", ….
    bits : int, optional
        The vectors are packed by ``numpy.packbits`` along the rows; a row has so many bits.

    Returns
    -------
    LoadedPool
        The pool and, with ``label_col``, its labels as text.
    """
    path = Path(path)
    wanted = _Wanted(columns, id_col, label_col, content_cols, needs_vectors=vectors is None)
    with _readable(path):
        table = _read_table(path, wanted, header)
    matrix = table.vectors if vectors is None else read_vectors(vectors)
    if bits is not None and matrix is not None:
        matrix = PackedBits(matrix, bits)
    if matrix is None:
        raise InputError(f"{path}: no numeric columns to use as vectors; name them, or give vectors of your own")
    ids = table.texts.get(id_col) if id_col is not None else None
    labels = np.array(table.texts[label_col], dtype=np.str_) if label_col is not None else None
    shown = {name: values for name, values in table.texts.items() if name != label_col}
    if content_cols is not None:
        shown = {name: shown[name] for name in content_cols if name in shown}
    try:
        pool = Pool(matrix, ids=ids, metric=metric, contents=shown, columns=table.names)
    except InputError as wrong:
        source = path if vectors is None else f"{path} with {vectors}"
        raise InputError(f"{source}: {wrong}") from wrong
    if labels is not None and len(labels) != len(pool):
        raise InputError(f"{path}: {len(labels)} labels for {len(pool)} rows; give one per row")
    return LoadedPool(pool, labels)


def read_vectors(path: str | Path) -> Any:
    """Read a matrix from a ``.npy`` (memory-mapped) or ``.npz`` file; a sparse one stays sparse."""
    path = Path(path)
    if path.suffix.lower() not in {".npy", ".npz"}:
        raise InputError(f"{path}: vectors come from .npy or .npz files; save them with numpy.save")
    with _readable(path):
        table = _read_table(path, _Wanted(None, None, None, None, needs_vectors=True), header=True)
    assert table.vectors is not None
    return table.vectors


def read_array(path: str | Path) -> npt.NDArray[Any]:
    """Read an array of any shape from a ``.npy`` file (memory-mapped)."""
    path = Path(path)
    with _readable(path):
        return _load_npy(path)


def as_positive(labels: Sequence[Any] | npt.NDArray[Any], positive: str | None = None) -> npt.NDArray[np.bool_]:
    """Turn labels into yes or no: equal to ``positive``, or 1/0, true/false, yes/no.

    Examples
    --------
    >>> as_positive(["yes", "no"])
    array([ True, False])
    >>> as_positive(["A", "B", "A"], positive="A")
    array([ True, False,  True])
    """
    words = np.array([str(value).strip() for value in labels], dtype=np.str_)
    if positive is not None:
        chosen = words == positive
        if not chosen.any():
            seen = sorted(set(words.tolist()))
            shown = ", ".join(seen[:8]) + (", …" if len(seen) > 8 else "")
            raise InputError(f"no label equals {positive!r} (labels are: {shown})")
        return np.asarray(chosen)
    lower = np.array([_whole(word.lower()) for word in words.tolist()], dtype=np.str_)
    yes, no = np.isin(lower, list(POSITIVE_WORDS)), np.isin(lower, list(NEGATIVE_WORDS))
    if not (yes | no).all():
        row = int(np.flatnonzero(~(yes | no))[0])
        raise InputError(f"row {row}: label {str(words[row])!r} is neither yes nor no; say which label is positive")
    if not yes.any():
        raise InputError("no label is positive: there is nothing to find")
    return yes


def _whole(word: str) -> str:
    return word[:-2] if word in {"1.0", "0.0"} else word


def _read_table(path: Path, wanted: _Wanted, header: bool) -> _Table:
    readers = {".npy": _read_npy, ".npz": _read_npz, ".parquet": _read_parquet, ".pq": _read_parquet}
    suffix = path.suffix.lower()
    if suffix in readers:
        return readers[suffix](path, wanted)
    if suffix in {".csv", ".tsv", ".txt", ".data"}:
        return _read_text(path, wanted, header)
    raise InputError(f"{path}: unknown kind of file {suffix!r}; use .npy, .npz, .csv, .tsv or .parquet")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what libraries raise on broken files into one line that names the file."""
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if not path.is_file():
        raise InputError(f"{path}: not a file")
    try:
        yield
    except (ActiveCoverError, MemoryError):
        raise
    except Exception as wrong:
        # Damaged bytes make the libraries raise nearly anything (zlib.error, struct.error, TypeError, …).
        reason = getattr(wrong, "strerror", None) or str(wrong).partition("\n")[0] or type(wrong).__name__
        raise InputError(f"{path}: cannot be read, is it damaged? ({reason})") from wrong


def _read_npy(path: Path, wanted: _Wanted) -> _Table:
    asked = [*(wanted.columns or ()), *wanted.special()]
    if asked:
        raise InputError(f"{path}: a .npy file has no column {asked[0]!r}; use .npz, CSV or Parquet")
    return _Table(_load_npy(path), None, {})


def _load_npy(path: Path) -> npt.NDArray[Any]:
    # NumPy tells the kinds of files apart by their first bytes, and takes all others for a pickle.
    _check_start(path, b"\x93NUMPY", "a .npy file; write it with numpy.save")
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except ValueError as wrong:
        if "Python objects" in str(wrong):
            raise InputError(f"{path}: holds Python objects; save numbers or text (astype) instead") from wrong
        raise


def _check_start(path: Path, start: bytes, what: str) -> None:
    with path.open("rb") as file:
        if file.read(len(start)) != start:
            raise InputError(f"{path}: not {what}")


#: What ``scipy.sparse.save_npz`` writes for every format of matrix.
_SPARSE_ARRAYS = {"format", "shape", "data"}


def _read_npz(path: Path, wanted: _Wanted) -> _Table:
    _check_start(path, b"PK", "an .npz file; write it with numpy.savez")
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        names = list(archive.files)
        for name in [*(wanted.columns or ()), *wanted.special(), *(wanted.content_cols or ())]:
            if name not in names:
                raise InputError(f"{path}: no array {name!r} (arrays are: {', '.join(names)})")
        if {*names} >= _SPARSE_ARRAYS and wanted.needs_vectors and not wanted.columns:
            file.seek(0)
            return _Table(sparse.load_npz(file), None, {})
        texts = {name: _texts(path, name, archive[name]) for name in [*wanted.special(), *(wanted.content_cols or ())]}
        if not wanted.needs_vectors:
            return _Table(None, None, texts)
        if wanted.columns:
            chosen = wanted.columns[0]
        elif "X" in names:
            chosen = "X"
        else:
            tables = [name for name in names if name not in wanted.special() and np.ndim(archive[name]) == 2]
            if len(tables) != 1:
                what = "several arrays have" if tables else "no array has"
                raise InputError(f"{path}: {what} two dimensions; name the vectors X (arrays are: {', '.join(names)})")
            chosen = tables[0]
        return _Table(archive[chosen], None, texts)


def _read_text(path: Path, wanted: _Wanted, header: bool) -> _Table:
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            first_line = file.readline()
            if not first_line.strip():
                raise InputError(f"{path}: the file is empty, or its first line is")
            file.seek(0)
            reader = csv.reader(file, delimiter=_delimiter(path, first_line), strict=True)
            first = next(reader)
            names = [name.strip() for name in first] if header else [str(i + 1) for i in range(len(first))]
            _check_names(path, names, wanted)
            if not header:
                file.seek(0)
                reader = csv.reader(file, delimiter=_delimiter(path, first_line), strict=True)
            return _read_rows(path, reader, names, wanted)
        except UnicodeDecodeError as wrong:
            raise InputError(
                f"{path}: not UTF-8 text (byte {wrong.object[wrong.start]:#x}); save it as UTF-8"
            ) from wrong
        except csv.Error as wrong:
            raise InputError(f"{path} line {reader.line_num}: {wrong}; check its quotes and delimiters") from wrong


def _read_rows(path: Path, reader: Any, names: list[str], wanted: _Wanted) -> _Table:
    vector_at: list[int] | None = None
    kept: list[tuple[int, list[str]]] = []
    texts: dict[str, list[str]] = {}
    values = array("d")
    for record in reader:
        if not record:
            continue
        if len(record) != len(names):
            raise InputError(
                f"{path} line {reader.line_num}: {len(record)} values for {len(names)} columns; "
                "check its delimiters and quotes"
            )
        if vector_at is None:
            vector_at = _vector_columns(names, record, wanted)
            texts = {name: [] for name in wanted.texts(names, [names[at] for at in vector_at])}
            kept = [(names.index(name), column) for name, column in texts.items()]
        for at in vector_at:
            values.append(_number(record[at], path, reader.line_num, names[at]))
        for at, column in kept:
            column.append(record[at])
    if vector_at is None:
        raise InputError(f"{path}: no rows below the column names")
    if not vector_at:
        return _Table(None, None, texts)
    matrix = np.frombuffer(values, dtype=np.float64).reshape(-1, len(vector_at))
    return _Table(matrix, [names[at] for at in vector_at], texts)


def _vector_columns(names: list[str], first: list[str], wanted: _Wanted) -> list[int]:
    if not wanted.needs_vectors:
        return []
    if wanted.columns is not None:
        return [names.index(name) for name in wanted.columns]
    skip = {*wanted.special(), *(wanted.content_cols or ())}
    return [at for at, name in enumerate(names) if name not in skip and _is_number(first[at])]


def _number(text: str, path: Path, line: int, column: str) -> float:
    place = f"{path} line {line}, column {column!r}"
    if not text.strip():
        raise InputError(f"{place}: empty; fill it in or drop the row")
    try:
        value = _float(text)
    except ValueError:
        raise InputError(f"{place}: {text[:40]!r} is not a number; choose the vector columns by name") from None
    if not math.isfinite(value):
        raise InputError(f"{place}: {text.strip()} is not a finite number; fill it in or drop the row")
    return value


def _is_number(text: str) -> bool:
    try:
        _float(text)
    except ValueError:
        return False
    return True


def _float(text: str) -> float:
    # Python also reads 2021_07 as a number; in a table it is a name.
    return float(text.replace("_", "?"))


def _delimiter(path: Path, first_line: str) -> str:
    if path.suffix.lower() == ".tsv":
        return "\t"
    return max(",;\t", key=first_line.count)


def _check_names(path: Path, names: list[str], wanted: _Wanted) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{path}: column {name!r} appears twice")
        seen.add(name)
    for name in [*(wanted.columns or ()), *wanted.special(), *(wanted.content_cols or ())]:
        if name not in seen:
            shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
            raise InputError(f"{path}: no column {name!r} (columns are: {shown})")


def _read_parquet(path: Path, wanted: _Wanted) -> _Table:
    parquet = require("pyarrow.parquet", extra="parquet", purpose="Parquet files")
    arrow = require("pyarrow", extra="parquet", purpose="Parquet files")
    try:
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            _check_names(path, names, wanted)
            chosen = _parquet_vector_columns(arrow, file.schema_arrow, wanted)
            texts = wanted.texts([name for name in names if name not in _lists(arrow, file.schema_arrow)], chosen)
            table = file.read(columns=[name for name in names if name in {*chosen, *texts}])
    except arrow.ArrowException as wrong:
        reason = str(wrong).partition("\n")[0]
        raise InputError(f"{path}: not a readable Parquet file, is it damaged? ({reason})") from wrong
    if table.num_rows == 0:
        raise InputError(f"{path}: no rows")
    columns = {name: [_text(value) for value in table.column(name).to_pylist()] for name in texts}
    if not chosen:
        return _Table(None, None, columns)
    parts = [_parquet_vector(path, arrow, table.column(name), name) for name in chosen]
    labels = [
        name if part.shape[1] == 1 else f"{name}[{i}]"
        for name, part in zip(chosen, parts, strict=True)
        for i in range(part.shape[1])
    ]
    return _Table(np.concatenate(parts, axis=1), labels, columns)


def _lists(arrow: Any, schema: Any) -> set[str]:
    kinds = (arrow.types.is_list, arrow.types.is_large_list, arrow.types.is_fixed_size_list)
    return {field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)}


def _parquet_vector_columns(arrow: Any, schema: Any, wanted: _Wanted) -> list[str]:
    if not wanted.needs_vectors:
        return []
    if wanted.columns is not None:
        return list(wanted.columns)
    skip = {*wanted.special(), *(wanted.content_cols or ())}
    numeric = {
        field.name for field in schema if arrow.types.is_integer(field.type) or arrow.types.is_floating(field.type)
    } | _lists(arrow, schema)
    return [name for name in schema.names if name in numeric - skip]


def _parquet_vector(path: Path, arrow: Any, column: Any, name: str) -> npt.NDArray[Any]:
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InputError(f"{path}: row {row}, column {name!r}: empty; fill it in or drop the row")
    column = column.combine_chunks()
    if isinstance(column, arrow.ChunkedArray):
        column = arrow.concat_arrays(column.chunks)
    if not hasattr(column, "flatten") or arrow.types.is_struct(column.type):
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind not in "fiub":
            raise InputError(f"{path}: column {name!r} holds {column.type}, not numbers; choose the vector columns")
        return np.asarray(values)[:, None]
    flat = column.flatten().to_numpy(zero_copy_only=False)
    if flat.dtype.kind not in "fiub":
        raise InputError(
            f"{path}: column {name!r} holds {column.type}, not lists of numbers; choose the vector columns"
        )
    width = len(flat) // len(column)
    for row, value in enumerate(column if not arrow.types.is_fixed_size_list(column.type) else ()):
        if len(value) != width:
            raise InputError(
                f"{path}: row {row}, column {name!r}: lists of different lengths; give all the same length"
            )
    return np.asarray(flat).reshape(len(column), width)


def _texts(path: Path, name: str, values: npt.NDArray[Any]) -> list[str]:
    if np.ndim(values) != 1:
        raise InputError(f"{path}: array {name!r} has {np.ndim(values)} dimensions; ids, labels and contents have one")
    return [_text(value) for value in values.tolist()]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
