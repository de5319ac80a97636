"""Text tables, read row by row: CSV, TSV, and the blank-separated columns of old collections."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from activecover.errors import InputError
from activecover.tables._reading import check_columns, reading

#: File types of old collections, whose columns are separated by blanks if nothing else is found.
_BLANKS = frozenset({".data", ".dat"})


class TextTable:
    r"""The column names and rows of a text table; each iteration reads the file again.

    Each row comes with the number of its last line, and has a value for every column.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    header : bool
        Whether it starts with column names; if not, they are "1", "2", ….
    longest : int, optional
        Most characters per field; :func:`csv.field_size_limit` by default.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "letters.csv"
    >>> _ = place.write_text("id;x\na;1\nb;2\n")
    >>> table = TextTable(place)
    >>> table.names, list(table)
    (['id', 'x'], [(2, ['a', '1']), (3, ['b', '2'])])
    """

    def __init__(self, path: Path, *, header: bool = True, longest: int | None = None) -> None:
        self.path, self.header = path, header
        self._longest = longest
        with reading(path):
            with self._open() as file:
                begin = next((line for line in file if line.strip("\r\n")), "")
            self._mark: str | None = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=begin.count)
            if path.suffix.lower() in _BLANKS and self._mark not in begin:
                self._mark = None
            # Quotes are rare in tab-separated files: if all lines have the same number of fields, each line is a row
            # and a quotation mark is part of the text.
            self._plain = self._mark == "\t" and len({line.count("\t") for _, line in self._lines()}) == 1
            first = next(self._rows(), (0, None))[1]
        if first is None:
            raise InputError(f"{path}: the file is empty")
        self.names = [name.strip() for name in first] if header else [str(place + 1) for place in range(len(first))]
        check_columns(path, self.names)

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        rows, count = self._rows(), 0
        with reading(self.path):
            if self.header:
                next(rows)
            for line, values in rows:
                if len(values) != len(self.names):
                    raise InputError(
                        f"{self.path} line {line}: {len(values)} values for {len(self.names)} columns; "
                        "check its delimiters and quotes"
                    )
                count += 1
                yield line, values
        if not count:
            raise InputError(f"{self.path}: no rows below the column names")

    def _open(self, newline: str = "\n") -> IO[str]:
        return self.path.open(encoding="utf-8-sig", newline=newline)

    def _lines(self) -> Iterator[tuple[int, str]]:
        with self._open() as file:
            for number, line in enumerate(file, 1):
                if text := line.removesuffix("\n").removesuffix("\r"):
                    yield number, text

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        if self._mark is None:
            yield from ((number, row) for number, line in self._lines() if (row := line.split()))
        elif self._plain:
            for number, line in self._lines():
                yield number, [_unquoted(field) for field in line.split(self._mark)]
        else:
            yield from self._quoted(self._mark)

    def _quoted(self, mark: str) -> Iterator[tuple[int, list[str]]]:
        with self._open(newline="") as file, _long_fields(self._longest):
            reader = csv.reader(file, delimiter=mark, strict=True)
            try:
                for row in reader:
                    if row:
                        yield reader.line_num, row
            except csv.Error as wrong:
                where = f"{self.path} line {reader.line_num}"
                raise InputError(f"{where}: {wrong}; check its quotes and delimiters") from wrong


def _unquoted(field: str) -> str:
    """A field without the quotes that a CSV writer put around it."""
    inside = field[1:-1]
    quoted = len(field) > 1 and field[0] == field[-1] == '"' and '"' not in inside.replace('""', "")
    return inside.replace('""', '"') if quoted else field


@contextmanager
def _long_fields(longest: int | None) -> Iterator[None]:
    """Allow fields as long as a document; the limit is global to the process, so it is restored."""
    before = csv.field_size_limit() if longest is None else csv.field_size_limit(longest)
    try:
        yield
    finally:
        csv.field_size_limit(before)
