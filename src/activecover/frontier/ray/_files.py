"""Files in pieces: the rows of each file that a shard reads, and nothing else."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.extras import require
from activecover.pool import blocks
from activecover.tables import NpyHeader, ParquetColumns, check_columns, npy_header, reading

#: Bytes per request: large enough for object storage, small compared with a shard.
_REQUEST_BYTES = 1 << 26
_HEADER_BYTES = 1 << 16
_HEADERS_AT_ONCE = 16
_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, slots=True)
class Layout:
    """What to read from every file, and the options of its storage."""

    columns: tuple[str, ...] | None = None
    id_col: str | None = None
    label_col: str | None = None
    content_cols: tuple[str, ...] = ()
    storage: Mapping[str, Any] = field(default_factory=dict)

    def special(self) -> list[str]:
        """The id and label columns."""
        return [name for name in (self.id_col, self.label_col) if name is not None]


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file: its number of rows, and a stamp that changes with the file."""

    url: str
    rows: int
    stamp: str


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of one file."""

    url: str
    stamp: str
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(slots=True)
class PieceRows:
    """Rows that were read: vectors, and ids and contents if there are any."""

    vectors: npt.NDArray[Any]
    ids: list[str] | None
    contents: dict[str, list[str]]


def find_files(given: str | Path | Sequence[str | Path], layout: Layout) -> list[DataFile]:
    """The files given by names or patterns, with their numbers of rows.

    Only headers are read.
    """
    names = [given] if isinstance(given, str | Path) else list(given)
    # Shards run in other working directories: a path must mean the same everywhere.
    whole = [str(name) if "://" in str(name) else str(Path(name).expanduser().absolute()) for name in names]
    urls = [url for name in whole for url in _expand(name, layout)]
    if not urls:
        raise InputError("no files given: name one or several .npy or Parquet files")
    for url in urls:
        if not url.lower().split("::")[0].endswith((".npy", *_PARQUET)):
            raise InputError(f"{url}: shards are read from .npy and Parquet files")
        if _is_npy(url) and (layout.columns or layout.id_col or layout.label_col or layout.content_cols):
            raise InputError(f"{url}: a .npy file has no columns with names; use Parquet")
    with ThreadPoolExecutor(min(_HEADERS_AT_ONCE, len(urls))) as threads:
        return list(threads.map(lambda url: _look_at(url, layout), urls))


def cut(files: Sequence[DataFile], shards: int) -> list[list[Piece]]:
    """Split all rows into shards whose sizes differ by at most one.

    Examples
    --------
    >>> parts = cut([DataFile("a.npy", 3, ""), DataFile("b.npy", 5, "")], 2)
    >>> [[(piece.url, piece.start, piece.stop) for piece in part] for part in parts]
    [[('a.npy', 0, 3), ('b.npy', 0, 1)], [('b.npy', 1, 5)]]
    """
    total = sum(file.rows for file in files)
    shards = min(shards, total)
    bounds = [total * shard // shards for shard in range(shards + 1)]
    parts: list[list[Piece]] = []
    for low, high in itertools.pairwise(bounds):
        part, first = [], 0
        for file in files:
            start, stop = max(low - first, 0), min(high - first, file.rows)
            if start < stop:
                part.append(Piece(file.url, file.stamp, start, stop))
            first += file.rows
        parts.append(part)
    return parts


def read_pieces(pieces: Sequence[Piece], layout: Layout) -> PieceRows:
    """Read the rows of a shard; a single local ``.npy`` is mapped instead."""
    tables = [_read(piece, layout) for piece in pieces]
    widths = {table.vectors.shape[1] for table in tables}
    if len(widths) > 1:
        raise InputError(f"{pieces[0].url} and other files differ in their number of columns: {sorted(widths)}")
    vectors = tables[0].vectors if len(tables) == 1 else np.concatenate([table.vectors for table in tables])
    ids = None if layout.id_col is None else [name for table in tables for name in table.ids or ()]
    contents = {name: [text for table in tables for text in table.contents[name]] for name in layout.content_cols}
    return PieceRows(vectors, ids, contents)


def _read(piece: Piece, layout: Layout) -> PieceRows:
    with reading(piece.url):
        files, path = _open_storage(piece.url, layout)
        if _stamp(files.info(path)) != piece.stamp:
            raise InputError(f"{piece.url}: the file has changed since the pool was opened; open the pool again")
        if _is_npy(piece.url):
            return PieceRows(_read_npy(files, path, piece), None, {})
        return _read_parquet(files, path, piece, layout)


# -- names and storage ---------------------------------------------------------------------------


class FileSystem(Protocol):
    """The part of an fsspec file system used here."""

    @property
    def protocol(self) -> str | tuple[str, ...]:
        """Its name or names, such as ``file``."""

    def glob(self, path: str) -> list[str]: ...

    def info(self, path: str) -> dict[str, Any]: ...

    def cat_file(self, path: str, start: int, end: int) -> bytes: ...

    def open(self, path: str, mode: str) -> AbstractContextManager[BinaryIO]: ...

    def unstrip_protocol(self, name: str) -> str: ...


def _is_npy(url: str) -> bool:
    return url.lower().split("::")[0].endswith(".npy")


def _fsspec() -> ModuleType:
    return require("fsspec", extra="ray", purpose="files of a pool in shards")


def _open_storage(url: str, layout: Layout) -> tuple[FileSystem, str]:
    """The file system of an address, and the path within it."""
    opened: tuple[FileSystem, str] = _fsspec().core.url_to_fs(url, **layout.storage)
    return opened


def _expand(name: str, layout: Layout) -> list[str]:
    if not any(mark in name for mark in "*?["):
        return [name]
    with reading(name):
        files, path = _open_storage(name, layout)
        found = sorted(files.glob(path))
        if not found:
            raise InputError(f"{name}: no such files")
        return [files.unstrip_protocol(path) for path in found]


def _stamp(info: Mapping[str, Any]) -> str:
    """Size, and whatever identifies the version of a file in its storage."""
    marks = [str(info[name]) for name in ("ETag", "etag", "LastModified", "last_modified", "mtime") if name in info]
    return " ".join([str(info.get("size")), *marks[:1]])


def _look_at(url: str, layout: Layout) -> DataFile:
    with reading(url):
        files, path = _open_storage(url, layout)
        info = files.info(path)
        if info.get("type") == "directory":
            raise InputError(f"{url}: a folder; name its files, or a pattern such as {url.rstrip('/')}/*.parquet")
        rows = _npy_header(files, path, url).shape[0] if _is_npy(url) else _parquet(files, path, url, layout).rows
        if not rows:
            raise InputError(f"{url}: no rows")
        return DataFile(url, rows, _stamp(info))


# -- .npy ----------------------------------------------------------------------------------------


def _npy_header(files: FileSystem, path: str, url: str) -> NpyHeader:
    header = npy_header(io.BytesIO(files.cat_file(path, start=0, end=_HEADER_BYTES)), url)
    shape, dtype = header.shape, header.dtype
    if dtype.hasobject or dtype.kind not in "fiub":
        raise InputError(f"{url}: holds {dtype}, not real numbers; convert them to float32")
    if len(shape) != 2:
        raise InputError(f"{url}: {len(shape)} dimension(s); give a table of rows and columns")
    if header.by_columns and min(shape) > 1:
        raise InputError(
            f"{url}: stored in column order; save numpy.ascontiguousarray of it, so that rows are contiguous"
        )
    return header


def _read_npy(files: FileSystem, path: str, piece: Piece) -> npt.NDArray[Any]:
    header = _npy_header(files, path, piece.url)
    if piece.stop > header.shape[0]:
        raise InputError(f"{piece.url}: {header.shape[0]} rows where {piece.stop} are expected; open the pool again")
    shape = (len(piece), header.shape[1])
    row_bytes = header.shape[1] * header.dtype.itemsize
    first_byte = header.offset + piece.start * row_bytes
    local = getattr(files, "local_file", False) or "file" in files.protocol
    if local and os.path.isfile(path):
        return np.memmap(path, header.dtype, "r", first_byte, shape)
    matrix = np.empty(shape, header.dtype)
    for block in blocks(shape[0], row_bytes, _REQUEST_BYTES):
        start, stop = first_byte + block.start * row_bytes, first_byte + block.stop * row_bytes
        data = files.cat_file(path, start=start, end=stop)
        if len(data) != stop - start:
            raise InputError(f"{piece.url}: ends early, is it damaged?")
        matrix[block] = np.frombuffer(data, header.dtype).reshape(-1, shape[1])
    return matrix


# -- Parquet -------------------------------------------------------------------------------------


def _parquet(files: FileSystem, path: str, url: str, layout: Layout) -> ParquetColumns:
    """The columns of a file, after checking that the wanted ones exist."""

    @contextmanager
    def opened() -> Iterator[Any]:
        parquet = require("pyarrow.parquet", extra="ray", purpose="Parquet files")
        with files.open(path, "rb") as raw, parquet.ParquetFile(raw, pre_buffer=True) as file:
            yield file

    columns = ParquetColumns(url, opened, extra="ray")
    check_columns(url, list(columns), [*(layout.columns or ()), *layout.special(), *layout.content_cols])
    return columns


def _read_parquet(files: FileSystem, path: str, piece: Piece, layout: Layout) -> PieceRows:
    """Read only the row groups with the piece's rows, and only the columns needed."""
    columns = _parquet(files, path, piece.url, layout)
    if columns.rows < piece.stop:
        raise InputError(f"{piece.url}: {columns.rows} rows where {piece.stop} are expected; open the pool again")
    skip = {*layout.special(), *layout.content_cols}
    numeric = [name for name in columns if columns.is_number(name) or columns.is_list(name)]
    chosen = layout.columns if layout.columns is not None else [name for name in numeric if name not in skip]
    if not chosen:
        raise InputError(f"{piece.url}: no numeric columns to use as vectors; name them")
    named = [layout.id_col] if layout.id_col is not None else []
    vectors, texts = columns.read(chosen, [*dict.fromkeys([*named, *layout.content_cols])], piece.start, piece.stop)
    assert vectors is not None
    ids = texts[layout.id_col] if layout.id_col is not None else None
    return PieceRows(np.ascontiguousarray(vectors), ids, {name: texts[name] for name in layout.content_cols})


@contextmanager
def rows_counted_from(first: int) -> Iterator[None]:
    """Shift row numbers in messages from rows of a part to rows of the whole."""
    import re

    try:
        yield
    except InputError as wrong:
        shifted = re.sub(r"\brow (\d+)", lambda found: f"row {int(found[1]) + first}", str(wrong), count=1)
        raise InputError(shifted) from wrong
