"""Content columns that are read row by row, when a row is looked up."""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence, Sequence
from operator import index
from typing import Any, Protocol, SupportsIndex, overload


class ReadByRow(Protocol):
    """Contents by row, wherever they are stored."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""

    def __len__(self) -> int: ...

    def read(self, row: int) -> Sequence[object]:
        """The values of one row, one per column."""


class Column(MutableSequence[Any]):
    """One content column, read on demand; changes are kept in memory only."""

    def __init__(self, records: ReadByRow, place: int) -> None:
        self._records, self._place = records, place
        self._changed: dict[int, object] = {}
        self._added: list[object] = []

    def __len__(self) -> int:
        return len(self._records) + len(self._added)

    @overload
    def __getitem__(self, chosen: SupportsIndex) -> Any: ...

    @overload
    def __getitem__(self, chosen: slice) -> list[Any]: ...

    def __getitem__(self, chosen: SupportsIndex | slice) -> object:
        if isinstance(chosen, slice):
            return [self[row] for row in range(*chosen.indices(len(self)))]
        row = self._row(chosen)
        if row in self._changed:
            return self._changed[row]
        stored = len(self._records)
        return self._added[row - stored] if row >= stored else self._records.read(row)[self._place]

    def __setitem__(self, chosen: SupportsIndex | slice, value: object) -> None:
        row = self._row(chosen)
        stored = len(self._records)
        if row >= stored:
            self._added[row - stored] = value
        else:
            self._changed[row] = value

    def __delitem__(self, chosen: SupportsIndex | slice) -> None:
        raise TypeError("rows of a pool are erased, never removed")

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<column {self._records.names[self._place]!r}: {len(self):,} stored values>"

    def insert(self, index: int, value: object) -> None:
        """Add a value at the end."""
        if index != len(self):
            raise TypeError("rows of a pool are added at its end")
        self._added.append(value)

    def _row(self, chosen: SupportsIndex | slice) -> int:
        if isinstance(chosen, slice):
            raise TypeError("values of a column change one at a time")
        row = index(chosen)
        row = row + len(self) if row < 0 else row
        if not 0 <= row < len(self):
            raise IndexError(f"row {chosen} of {len(self)}")
        return row


class Unread(Column):
    """A column that a pool keeps as it is, because reading all of it would fill the memory."""
