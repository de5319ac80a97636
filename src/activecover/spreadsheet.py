"""CSV text that spreadsheets display instead of evaluating.

When a spreadsheet opens a CSV file, it treats cells such as ``=HYPERLINK(…)`` as formulas. :func:`guard` puts an
apostrophe in front of them, which marks them as text; :func:`unguard` removes exactly that apostrophe.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import TextIO, overload

__all__ = ["GuardedReader", "GuardedWriter", "guard", "unguard"]

_FORMULA = frozenset("=+-@\N{MINUS SIGN}")
#: A program that splits at semicolons or tabs ignores quotes within a field: a cell may begin after each.
_CELLS = re.compile(r"([;\t\r\n])")


@overload
def guard(value: str) -> str: ...


@overload
def guard(value: object) -> object: ...


def guard(value: object) -> object:
    """Put an apostrophe before text that a spreadsheet would treat as a formula; numbers do not change.

    Examples
    --------
    >>> guard("=1+1"), guard("  @home"), guard("plain = text"), guard(-1.5)
    ("'=1+1", "'  @home", 'plain = text', -1.5)
    >>> guard("'=already"), unguard(guard("'=already"))
    ("''=already", "'=already")
    """
    if not isinstance(value, str):
        return value
    cells = _CELLS.split(value)
    for place in _formulas(cells):
        cells[place] = f"'{cells[place]}"
    return "".join(cells)


def unguard(value: str) -> str:
    """Undo :func:`guard`.

    Examples
    --------
    >>> unguard("'=1+1"), unguard("'tis"), unguard("=1+1")
    ('=1+1', "'tis", '=1+1')
    """
    cells = _CELLS.split(value)
    for place in _formulas(cells):
        # Apostrophes do not change what counts as a formula, so the same places are found again.
        cells[place] = cells[place].removeprefix("'")
    return "".join(cells)


def _formulas(cells: list[str]) -> Iterator[int]:
    """Indices of the cells that would be formulas, in a list of cells and separators."""
    for place in range(0, len(cells), 2):
        if _is_formula(cells[place]):
            yield place
        elif place == 0 and not cells[0].strip("'") and "".join(cells[1:2]) in ("\t", "\r", "\n"):
            # Spreadsheets drop a tab or a line break at the start.
            yield place


def _is_formula(cell: str) -> bool:
    for character in cell:
        # Spaces, quotes and invisible characters are skipped; full-width signs count as plain ones.
        if character not in "\"'" and unicodedata.category(character)[0] not in "ZC":
            return unicodedata.normalize("NFKC", character)[:1] in _FORMULA
    return False


class GuardedWriter:
    """A CSV writer that guards every text, including column names; ``raw`` writes text unchanged, for programs."""

    def __init__(self, file: TextIO, *, raw: bool = False, lineterminator: str = "\r\n") -> None:
        self._writer = csv.writer(file, lineterminator=lineterminator)
        self._raw = raw

    def write(self, row: Iterable[object]) -> None:
        """Write one row."""
        self._writer.writerow(row if self._raw else [guard(value) for value in row])

    def write_all(self, rows: Iterable[Iterable[object]]) -> None:
        """Write several rows."""
        for row in rows:
            self.write(row)


class GuardedReader:
    """Records of a CSV file by column name, as they were passed to :class:`GuardedWriter`."""

    def __init__(self, file: Iterable[str], *, raw: bool = False, delimiter: str = ",") -> None:
        self._reader = csv.DictReader(file, delimiter=delimiter)
        self._raw = raw

    def __iter__(self) -> Iterator[dict[str, object]]:
        if self._raw:
            yield from self._reader
            return
        for record in self._reader:
            yield {_undone(name): _undone(value) for name, value in record.items()}


@overload
def _undone(value: str) -> str: ...


@overload
def _undone(value: object) -> object: ...


def _undone(value: object) -> object:
    return unguard(value) if isinstance(value, str) else value
