"""What a file from a stranger says of itself, compared with what it has, before anything is made of it."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from activecover.errors import InputError
from activecover.extras import require
from activecover.tables import npy_header

#: As many as a spreadsheet can have.
MOST_COLUMNS = 1 << 14
#: A line of text may be so long, and with it a cell.
LONGEST_LINE = 1 << 24
MOST_FILES = 1 << 18
#: Bytes that the directory of a zip file has for each file in it: going through a longer one would take long itself.
_ENTRY = 100
#: A file may unpack to so many bytes, or to so many times its size; what is beyond was made to fill a memory.
_SURELY_FINE, _MOST_PACKED = 1 << 28, 100
_BLOCK = 1 << 20
_TEXT = frozenset({".csv", ".tsv", ".txt", ".data", ".dat"})
_LINES = frozenset({".jsonl", ".ndjson", ".ris", ".nbib"})


class TooLarge(InputError):
    """A file holds more than is read of it."""


def check_claims(path: Path) -> None:
    """Refuse a file that would become far more than it is, or that has more columns or longer lines than make sense."""
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
    """Refuse a small zip file that becomes a huge one."""
    try:
        if (length := _directory_length(path)) > MOST_FILES * _ENTRY:
            raise TooLarge(f"{path}: its directory has {length:,} bytes: {MOST_FILES:,} files at most are read")
        with zipfile.ZipFile(path) as packed:
            parts = packed.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as wrong:
        raise InputError(f"{path}: not a whole zip file ({wrong})") from wrong
    if len(parts) > MOST_FILES:
        raise TooLarge(f"{path}: {len(parts):,} files in it: {MOST_FILES:,} at most are read")
    _compare(path, sum(part.file_size for part in parts))


def _directory_length(path: Path) -> int:
    """How long a zip file says that its directory is, in the one or the other of the two places for that."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _END_SEARCHED))
        tail = file.read()
    end = tail.rfind(b"PK\5\6")
    if end < 0 or end + 22 > len(tail):
        return 0  # none at all, as the library will say
    short = int.from_bytes(tail[end + 12 : end + 16], "little")
    large = tail[max(0, end - 76) : max(0, end - 20)]
    if large[:4] != b"PK\6\6":
        return short
    long = int.from_bytes(large[40:48], "little")
    return long if short == _ELSEWHERE else max(short, long)


#: What stands for a length that is too large for its place.
_ELSEWHERE = 0xFFFFFFFF
#: A comment of 64 kB may stand behind the end, and the end of a large directory before it.
_END_SEARCHED = (1 << 16) + 22 + 76


def _compare(path: Path, size: int) -> None:
    if size > max(_SURELY_FINE, _MOST_PACKED * path.stat().st_size):
        raise TooLarge(f"{path}: it unpacks to {size:,} bytes, far more than it has: too large")


def _check_columns(path: Path, count: int) -> None:
    if count > MOST_COLUMNS:
        raise TooLarge(
            f"{path}: {count:,} columns: {MOST_COLUMNS:,} at most are read; give vectors as one column of lists, "
            "or as an .npy file"
        )


def _check_lines(path: Path, columns: bool) -> None:
    """Look at the first line's columns and at the length of all lines, a block at a time."""
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
    """Refuse arrays that say they are larger than their files: their memory would be taken before that is seen."""
    with zipfile.ZipFile(path) as packed:
        for part in packed.infolist():
            with packed.open(part) as file:
                header = npy_header(file, part.filename)
            size = math.prod(map(int, header.shape)) * header.dtype.itemsize
            if size > part.file_size:
                raise InputError(f"{path}: array {part.filename} is cut short: {size:,} bytes are said to be in it")


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
                # Values that are all alike take next to no room in the file.
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
    """Whether texts that are kept once in the file may be many in memory."""
    if chunks[0].physical_type not in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
        return False
    most = sum(chunk.num_values * chunk.total_uncompressed_size for chunk in chunks)
    return bool(most > _SURELY_FINE)


def _text_sizes(path: Path, name: str) -> Iterator[int]:
    """The bytes of a column's texts, a batch at a time, counted without making them."""
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
