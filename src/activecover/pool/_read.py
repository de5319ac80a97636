"""Pools from files (.npy, .npz, CSV, TSV and Parquet); errors name the place of a bad value."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError
from activecover.pool._bits import PackedBits
from activecover.pool._matrix import VectorsLike
from activecover.pool._pool import Pool
from activecover.tables import (
    ParquetColumns,
    TextTable,
    as_text,
    check_columns,
    npz_arrays,
    plain_number,
    read_array,
    readable,
    sparse_in,
    vectors_in,
)

POSITIVE_WORDS = frozenset({"1", "true", "yes", "y", "positive", "pos"})
NEGATIVE_WORDS = frozenset({"0", "false", "no", "n", "negative", "neg"})


@dataclass(frozen=True, slots=True)
class LoadedPool:
    """A pool read from a file, and the labels if the file has them (they are never part of the pool)."""

    pool: Pool
    labels: npt.NDArray[np.str_] | None = None


@dataclass(slots=True)
class _Loaded:
    """What a reader returns: named vector columns (or a sparse matrix) and named text columns."""

    vectors: npt.NDArray[np.generic] | sparse.sparray | sparse.spmatrix | None
    names: list[str] | None
    texts: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What each column of a file is used for."""

    columns: Sequence[str] | None
    id_col: str | None
    label_col: str | None
    content_cols: Sequence[str] | None
    needs_vectors: bool

    def special(self) -> list[str]:
        return [name for name in (self.id_col, self.label_col) if name is not None]

    def named(self) -> list[str]:
        """All columns that must exist."""
        return [*(self.columns or ()), *self.special(), *(self.content_cols or ())]

    def vectors(self, numeric: Sequence[str]) -> list[str]:
        """The vector columns, given the numeric ones."""
        if not self.needs_vectors:
            return []
        skip = {*self.special(), *(self.content_cols or ())}
        return list(self.columns) if self.columns is not None else [name for name in numeric if name not in skip]

    def texts(self, available: Sequence[str], vector_columns: Sequence[str]) -> list[str]:
        """The text columns to keep: id, label, and those shown to a person (by default all others)."""
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
        The file. ``.npy`` is memory-mapped. In an ``.npz`` the vectors are the array ``X``, or the one
        named by ``columns``, or the only two-dimensional one. An ``.npz`` written by
        ``scipy.sparse.save_npz`` gives a sparse pool.
    columns : sequence of str, optional
        The vector columns; by default every column that starts with a number and is not the
        id or the label. A Parquet column of lists is a vector too.
    id_col, label_col : str, optional
        Columns (arrays of an ``.npz``) with the ids and with known labels.
    content_cols : sequence of str, optional
        Columns to show to a person; by default all.
    vectors : path, optional
        A ``.npy`` or ``.npz`` file with the vectors, row for row, if ``path`` holds only what to show.
    metric : {"euclidean", "cosine", "jaccard"}
        The pool's metric; jaccard takes zeros and ones, or packed bits.
    header : bool
        Whether a CSV or TSV file starts with column names; if not, the names are "1", "2", ….
    bits : int, optional
        Bits per row, if the vectors were packed by ``numpy.packbits`` along the rows.

    Returns
    -------
    LoadedPool
        The pool and, with ``label_col``, its labels as text.
    """
    path = Path(path)
    wanted = _Wanted(columns, id_col, label_col, content_cols, needs_vectors=vectors is None)
    with readable(path):
        table = _read_table(path, wanted, header)
    matrix: VectorsLike | None = table.vectors if vectors is None else read_vectors(vectors)
    if bits is not None and matrix is not None:
        matrix = PackedBits(np.asanyarray(matrix), bits)
    if matrix is None:
        raise InputError(f"{path}: no numeric columns to use as vectors; name them, or give a file of vectors")
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


def read_vectors(path: str | Path) -> VectorsLike:
    """Read a matrix from a ``.npy`` (memory-mapped) or ``.npz`` file; a sparse matrix stays sparse."""
    path = Path(path)
    if path.suffix.lower() not in {".npy", ".npz"}:
        raise InputError(f"{path}: vectors come from .npy or .npz files; save them with numpy.save")
    with readable(path):
        table = _read_table(path, _Wanted(None, None, None, None, needs_vectors=True), header=True)
    assert table.vectors is not None
    return table.vectors


def as_positive(
    labels: Sequence[object] | npt.NDArray[np.generic], positive: str | None = None
) -> npt.NDArray[np.bool_]:
    """Turn labels into booleans: equal to ``positive``, or by 1/0, true/false, yes/no.

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


def _read_table(path: Path, wanted: _Wanted, header: bool) -> _Loaded:
    readers = {".npy": _read_npy, ".npz": _read_npz, ".parquet": _read_parquet, ".pq": _read_parquet}
    suffix = path.suffix.lower()
    if suffix in readers:
        return readers[suffix](path, wanted)
    if suffix in {".csv", ".tsv", ".txt", ".data"}:
        return _read_text(path, wanted, header)
    raise InputError(f"{path}: unknown kind of file {suffix!r}; use .npy, .npz, .csv, .tsv or .parquet")


def _read_npy(path: Path, wanted: _Wanted) -> _Loaded:
    if wanted.named():
        raise InputError(f"{path}: a .npy file has no column {wanted.named()[0]!r}; use .npz, CSV or Parquet")
    return _Loaded(read_array(path), None, {})


def _read_npz(path: Path, wanted: _Wanted) -> _Loaded:
    with npz_arrays(path) as arrays:
        shown = ", ".join(arrays)
        for name in wanted.named():
            if name not in arrays:
                raise InputError(f"{path}: no array {name!r} (arrays are: {shown})")
        matrix = sparse_in(path, arrays) if wanted.needs_vectors and not wanted.columns else None
        if matrix is not None:
            return _Loaded(matrix, None, {})
        texts = {}
        for name in [*wanted.special(), *(wanted.content_cols or ())]:
            values = arrays[name]
            if np.ndim(values) != 1:
                raise InputError(
                    f"{path}: array {name!r} has {np.ndim(values)} dimensions; ids, labels and contents have one"
                )
            texts[name] = [as_text(value) for value in values.tolist()]
        if not wanted.needs_vectors:
            return _Loaded(None, None, texts)
        chosen = wanted.columns[0] if wanted.columns else vectors_in(path, arrays, wanted.special())
        if chosen is None:
            raise InputError(f"{path}: no array has two dimensions; name the vectors X (arrays are: {shown})")
        return _Loaded(arrays[chosen], None, texts)


def _read_parquet(path: Path, wanted: _Wanted) -> _Loaded:
    columns = ParquetColumns(path)
    check_columns(path, list(columns), wanted.named())
    chosen = wanted.vectors([name for name in columns if columns.is_number(name) or columns.is_list(name)])
    kept = wanted.texts([name for name in columns if not columns.is_list(name)], chosen)
    matrix, texts = columns.read(chosen, kept)
    return _Loaded(matrix, columns.labels(chosen) if chosen else None, texts)


def _read_text(path: Path, wanted: _Wanted, header: bool) -> _Loaded:
    table = TextTable(path, header=header)
    names = table.names
    check_columns(path, names, wanted.named())
    vector_at: list[int] | None = None
    kept: list[tuple[int, list[str]]] = []
    texts: dict[str, list[str]] = {}
    values = array("d")
    for line, record in table:
        if vector_at is None:
            numeric = [name for name, text in zip(names, record, strict=True) if plain_number(text) is not None]
            vector_at = [names.index(name) for name in wanted.vectors(numeric)]
            texts = {name: [] for name in wanted.texts(names, [names[at] for at in vector_at])}
            kept = [(names.index(name), column) for name, column in texts.items()]
        for at in vector_at:
            values.append(_number(record[at], path, line, names[at]))
        for at, column in kept:
            column.append(record[at])
    if not vector_at:
        return _Loaded(None, None, texts)
    matrix = np.frombuffer(values, dtype=np.float64).reshape(-1, len(vector_at))
    return _Loaded(matrix, [names[at] for at in vector_at], texts)


def _number(text: str, path: Path, line: int, column: str) -> float:
    value = plain_number(text)
    if value is not None and math.isfinite(value):
        return value
    place = f"{path} line {line}, column {column!r}"
    if not text.strip():
        raise InputError(f"{place}: empty; fill it in or drop the row")
    if value is None:
        raise InputError(f"{place}: {text[:40]!r} is not a number; choose the vector columns by name")
    raise InputError(f"{place}: {text.strip()} is not a finite number; fill it in or drop the row")
