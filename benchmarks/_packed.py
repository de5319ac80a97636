"""Results as compressed tables of text: the same bytes for the same lines."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from activecover.files import replacing


def read_lines(path: Path) -> Iterator[dict[str, str]]:
    """The lines of a table, none if there is no such file."""
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def write_lines(path: Path, columns: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    """Write a table as a whole: another reader sees the old one or the new one."""
    with replacing(path) as temporary, gzip.GzipFile("", "wb", 9, temporary.open("wb"), mtime=0) as packed:
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(lines)
        text.flush()
        text.detach()
