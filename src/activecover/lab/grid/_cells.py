"""Finished cells, and untrusted files of them."""

from __future__ import annotations

import csv
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from activecover.errors import LARGEST_COUNT, InputError
from activecover.spreadsheet import unguard
from activecover.strict import JsonLimits, read_json

COLUMNS = ("dataset", "label", "method", "run", "curve", "reason", "seconds", "made_with")
#: Limits on a file of cells. Rows are processed one at a time, so they bound time and disk, not memory.
_MOST_ROWS, _SURELY_FINE, _MOST_PACKED = 1_000_000, 1 << 26, 100
_LONGEST_LINE, _LONGEST_TEXT = 1 << 20, 2_000
_CURVE = JsonLimits(size=_LONGEST_LINE, values=100_000, depth=1)
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One run of one method on one task."""

    dataset: str
    label: str
    method: str
    run: int


@dataclass(frozen=True, slots=True)
class Result:
    """A finished cell: its curve, or the reason for having none."""

    cell: Cell
    curve: tuple[float, ...] | None
    reason: str | None
    seconds: float
    made_with: str

    @property
    def auc(self) -> float | None:
        """Mean over the batches, in percent."""
        return None if self.curve is None else sum(self.curve) / len(self.curve)


def read_cells(path: Path) -> Iterator[Result]:
    """The cells of a file from :meth:`Grid.export`, one at a time; anything else is refused in one line."""
    try:
        records = csv.reader(_lines(path), strict=True)
        if tuple(next(records, ())) != COLUMNS:
            raise InputError(f"the first line must be {','.join(COLUMNS)}")
        for number, values in enumerate(records, 2):
            if number > _MOST_ROWS + 1 or len(values) != len(COLUMNS):
                raise InputError(f"line {number}: not {len(COLUMNS)} values, or more than {_MOST_ROWS:,} lines")
            try:
                result = _result_of(dict(zip(COLUMNS, map(unguard, values), strict=True)))
            except (ValueError, OverflowError) as wrong:
                raise InputError(f"line {number}: {str(wrong)[:200]}") from None
            yield result
    except (OSError, EOFError, ValueError, zlib.error, csv.Error) as wrong:
        text = " ".join(str(wrong).split())[:300]
        raise InputError(f"{path}: not an exported grid ({text})") from wrong


def _result_of(record: Mapping[str, str]) -> Result:
    for name, value in record.items():
        if name != "curve" and len(value) > _LONGEST_TEXT:
            raise ValueError(f"{name} has {len(value):,} characters, {_LONGEST_TEXT:,} at most")
    for name in ("dataset", "label", "method", "made_with"):
        if not record[name].isprintable() or (name in ("dataset", "method") and not record[name]):
            raise ValueError(f"{name} {record[name][:50]!r} is not a name")
    run, seconds = int(record["run"]), float(record["seconds"])
    if not (0 <= run <= LARGEST_COUNT and 0 <= seconds < math.inf):
        raise ValueError(f"run {record['run']} or seconds {record['seconds']} is not possible")
    cell = Cell(record["dataset"], record["label"], record["method"], run)
    return Result(cell, _curve_of(record["curve"]), record["reason"] or None, seconds, record["made_with"])


def _curve_of(text: str) -> tuple[float, ...] | None:
    if not text:
        return None
    curve = read_json(text.encode(), _CURVE)
    if not isinstance(curve, list) or not curve:
        raise ValueError("the curve is not a list of numbers")
    if not all(type(value) in (int, float) and abs(value) <= 1e9 for value in curve):
        raise ValueError("the curve has a value that is not a valid number")
    return tuple(float(value) for value in curve)


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file (gzipped if its name ends in .gz), with only one line in memory at a time."""
    most = max(_SURELY_FINE, _MOST_PACKED * path.stat().st_size)
    left, waiting = most, b""
    for block in _unpacked(path) if path.suffix == ".gz" else _blocks(path):
        left -= len(block)
        if left < 0:
            raise InputError(f"it holds more than {most:,} bytes")
        *lines, waiting = (waiting + block).split(b"\n")
        if len(waiting) > _LONGEST_LINE:
            raise InputError(f"a line of more than {_LONGEST_LINE:,} bytes")
        for line in lines:
            yield line.decode() + "\n"
    if waiting:
        yield waiting.decode()


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _unpacked(path: Path) -> Iterator[bytes]:
    """One gzip stream, in blocks of bounded size however well it is compressed."""
    stream = zlib.decompressobj(wbits=31)
    for packed in _blocks(path):
        while packed and not stream.eof:
            block = stream.decompress(packed, _BLOCK)
            packed = stream.unconsumed_tail
            if block:
                yield block
        if stream.eof and (packed or stream.unused_data):
            raise InputError("there is data after its end")
    yield stream.flush()
    if not stream.eof:
        raise EOFError("it ends too early")
