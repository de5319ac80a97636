"""Checks of untrusted files before they are read: declared sizes against actual ones, and limits."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from activecover.errors import InputError
from activecover.extras import require
from activecover.tables import npy_header

#: As many as a spreadsheet allows.
MOST_COLUMNS = 1 << 14
#: Most bytes of a line of text, and so of a cell.
LONGEST_LINE = 1 << 24
MOST_FILES = 1 << 18
#: Bytes per file in the directory of a zip file: reading a longer directory would itself take too long.
_ENTRY = 100
#: Most bytes that a file may unpack to, absolutely or as a multiple of its size: more can only be malicious.
_SURELY_FINE, _MOST_PACKED = 1 << 28, 100
_BLOCK = 1 << 20
_TEXT = frozenset({".csv", ".tsv", ".txt", ".data", ".dat"})
_LINES = frozenset({".jsonl", ".ndjson", ".ris", ".nbib"})


class TooLarge(InputError):
    """A file holds more than will be read."""


def check_claims(path: Path) -> None:
    """Refuse a file that unpacks to far more than its size, or has too many columns or too long lines."""
    suffix = path.suffix.lower()
    if suffix in _TEXT | _LINES:
        _check_lines(path, columns=suffix in _TEXT)
    elif suffix in (".zip", ".npz"):
        check_unpacked(path)
        if suffix == ".npz":
            _check_shapes(path)
    elif suffix in (".parquet", ".pq"):
        _check_parquet(path)


def check_unpacked(path: Path) -> None:
    """Refuse a small zip file that unpacks to a huge one."""
    try:
        if (length := _directory_length(path)) > MOST_FILES * _ENTRY:
            raise TooLarge(f"{path}: its directory has {length:,} bytes; at most {MOST_FILES:,} files are read")
        with zipfile.ZipFile(path) as packed:
            parts = packed.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as wrong:
        raise InputError(f"{path}: not a whole zip file ({wrong})") from wrong
    if len(parts) > MOST_FILES:
        raise TooLarge(f"{path}: it has {len(parts):,} files; at most {MOST_FILES:,} are read")
    _compare(path, sum(part.file_size for part in parts))


def _directory_length(path: Path) -> int:
    """The declared length of a zip file's directory, from either of the two places for it."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _END_SEARCHED))
        tail = file.read()
    end = tail.rfind(b"PK\5\6")
    if end < 0 or end + 22 > len(tail):
        return 0  # no end: the library will report that
    short = int.from_bytes(tail[end + 12 : end + 16], "little")
    large = tail[max(0, end - 76) : max(0, end - 20)]
    if large[:4] != b"PK\6\6":
        return short
    long = int.from_bytes(large[40:48], "little")
    return long if short == _ELSEWHERE else max(short, long)


#: Placeholder for a length that does not fit its field.
_ELSEWHERE = 0xFFFFFFFF
#: The end may be followed by a comment of 64 kB, and preceded by the end of a large directory.
_END_SEARCHED = (1 << 16) + 22 + 76


def _compare(path: Path, size: int) -> None:
    if size > max(_SURELY_FINE, _MOST_PACKED * path.stat().st_size):
        raise TooLarge(f"{path}: it unpacks to {size:,} bytes, far more than its size: too large")


def _check_columns(path: Path, count: int) -> None:
    if count > MOST_COLUMNS:
        raise TooLarge(
            f"{path}: {count:,} columns; at most {MOST_COLUMNS:,} are read; give vectors as one column of lists, "
            "or as an .npy file"
        )


def _check_lines(path: Path, columns: bool) -> None:
    """Check the columns of the first line and the length of all lines, a block at a time."""
    rest, first = 0, columns
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            lines = block.replace(b"\r", b"\n").split(b"\n")
            if max(rest + len(lines[0]), *map(len, lines)) > LONGEST_LINE:
                raise TooLarge(f"{path}: a line has more than {LONGEST_LINE:,} bytes; give one row per line")
            rest = len(lines[-1]) + (rest if len(lines) == 1 else 0)
    if first:
        with path.open("rb") as file:
            line = next((line for line in iter(lambda: file.readline(LONGEST_LINE), b"") if line.strip()), b"")
        _check_columns(path, max(*map(line.count, (b",", b";", b"\t")), len(line.split()) * (b"," not in line)) + 1)


def _check_shapes(path: Path) -> None:
    """Refuse arrays that declare more data than their files hold, before memory is allocated for them."""
    with zipfile.ZipFile(path) as packed:
        for part in packed.infolist():
            with packed.open(part) as file:
                header = npy_header(file, part.filename)
            size = math.prod(map(int, header.shape)) * header.dtype.itemsize
            if size > part.file_size:
                raise InputError(f"{path}: array {part.filename} is cut short: it should hold {size:,} bytes")


# -- Parquet ------------------------------------------------------------------------------------------


def _check_parquet(path: Path) -> None:
    parquet: Any = require("pyarrow.parquet", extra="parquet", purpose="Parquet files")
    with parquet.ParquetFile(path) as file:
        about = file.metadata
        _check_columns(path, about.num_columns)
        groups = [about.row_group(at) for at in range(about.num_row_groups)]
        chunks = [[group.column(at) for group in groups] for at in range(about.num_columns)]
        size = 0
        for column in chunks:
            size += max(
                sum(chunk.total_uncompressed_size for chunk in column),
                # Identical values take almost no space in the file.
                sum(chunk.num_values for chunk in column) * _WIDTHS.get(column[0].physical_type, 1) if column else 0,
            )
        _compare(path, size)
        texts = [column[0].path_in_schema for column in chunks if column and _may_swell(column)]
    for name in texts:
        size += sum(_text_sizes(path, name))
        _compare(path, size)


#: Bytes of a value in memory.
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 8}


def _may_swell(chunks: list[Any]) -> bool:
    """Whether texts that are stored once in the file may be repeated in memory."""
    if chunks[0].physical_type not in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
        return False
    most = sum(chunk.num_values * chunk.total_uncompressed_size for chunk in chunks)
    return bool(most > _SURELY_FINE)


def _text_sizes(path: Path, name: str) -> Iterator[int]:
    """Bytes of a column's texts, a batch at a time, counted without creating them."""
    parquet: Any = require("pyarrow.parquet", extra="parquet", purpose="Parquet files")
    compute: Any = require("pyarrow.compute", extra="parquet", purpose="Parquet files")
    arrow: Any = require("pyarrow", extra="parquet", purpose="Parquet files")
    with parquet.ParquetFile(path, read_dictionary=[name]) as file:
        for batch in file.iter_batches(_BATCH, columns=[name], use_threads=False):
            column = batch.column(0)
            if not arrow.types.is_dictionary(column.type):
                yield column.nbytes
                continue
            lengths = compute.binary_length(column.dictionary)
            yield compute.sum(compute.take(lengths, column.indices)).as_py() or 0


_BATCH = 1 << 16
