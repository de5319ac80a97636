"""Flat records in CSV, JSON Lines and Parquet: written on export, and read back."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from activecover.errors import InputError
from activecover.extras import require
from activecover.files import replacing
from activecover.spreadsheet import GuardedReader, GuardedWriter
from activecover.tables._reading import readable

_KINDS = (".parquet", ".csv", ".jsonl")


def check_records(path: Path, what: str) -> None:
    """Refuse an unsupported file type before any work is done."""
    if path.suffix.lower() not in _KINDS:
        raise InputError(f"{path}: {what} are written to .parquet, .csv or .jsonl")
    if path.suffix.lower() == ".parquet":
        require("pyarrow", extra="parquet", purpose="Parquet files")


def write_records(path: Path, records: Sequence[Mapping[str, object]], *, raw: bool = False) -> None:
    """Write flat records to ``.parquet``, ``.csv`` or ``.jsonl``, all or nothing.

    In CSV, text that a spreadsheet would read as a formula is prefixed with an apostrophe, unless ``raw``.
    """
    check_records(path, "records")
    kind = path.suffix.lower()
    with replacing(path) as temporary:
        if kind == ".parquet":
            arrow = require("pyarrow", extra="parquet", purpose="Parquet files")
            parquet = require("pyarrow.parquet", extra="parquet", purpose="Parquet files")
            parquet.write_table(arrow.Table.from_pylist(list(records)), temporary)
            return
        with temporary.open("w", newline="", encoding="utf-8") as file:
            if kind == ".jsonl":
                file.writelines(json.dumps(record) + "\n" for record in records)
                return
            writer = GuardedWriter(file, raw=raw)
            columns = list(records[0]) if records else ["number"]
            writer.write(columns)
            writer.write_all([record[name] for name in columns] for record in records)


def read_records(path: Path, *, raw: bool = False) -> Iterator[dict[str, Any]]:
    """Read a file from :func:`write_records`; other delimited text is read as CSV, and ``.tsv`` as tab-separated."""
    with readable(path):
        kind = path.suffix.lower()
        if kind == ".parquet":
            parquet = require("pyarrow.parquet", extra="parquet", purpose="Parquet files")
            yield from parquet.read_table(path).to_pylist()
        elif kind == ".jsonl":
            yield from (record for _, record in json_lines(path))
        else:
            with path.open(newline="", encoding="utf-8-sig") as file:
                try:
                    yield from GuardedReader(file, raw=raw, delimiter="\t" if kind == ".tsv" else ",")
                except csv.Error as wrong:
                    raise InputError(f"{path}: cannot be read as CSV ({wrong})") from wrong


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file with their line numbers."""
    with path.open(encoding="utf-8-sig") as file:
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                record = json.loads(text)
            except RecursionError as wrong:
                raise InputError(f"{path} line {line}: nested too deeply to be read") from wrong
            except ValueError as wrong:
                raise InputError(f"{path} line {line}: not JSON ({wrong})") from wrong
            if not isinstance(record, dict):
                raise InputError(f"{path} line {line}: not an object; give one {{...}} per line")
            yield line, record
