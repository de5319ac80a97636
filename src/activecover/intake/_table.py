"""The table read from a file: named columns, and optionally vectors, images or references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError
from activecover.intake._images import ImageFiles
from activecover.intake._references import Reference
from activecover.pool import Unread, blocks
from activecover.tables import as_numbers, as_text

#: A column: texts and other Python values, or an array with one number or one vector per row.
Column = list[Any] | npt.NDArray[Any] | Unread


@runtime_checkable
class LazyColumns(Protocol):
    """Columns that are read from their file on demand."""

    def width(self, name: str) -> int:
        """Numbers per row of a column of vectors; 0 for any other column."""

    def is_number(self, name: str) -> bool:
        """Whether a column holds one number per row."""

    def is_single(self, name: str) -> bool:
        """Whether float32 can represent all numbers of a column without loss."""

    def stretches(self, names: Sequence[str]) -> Iterator[list[npt.NDArray[Any]]]:
        """Columns of numbers or vectors, a block of rows at a time, each two-dimensional."""


@dataclass(slots=True)
class Table:
    """Rows with named columns, and whatever else the file holds.

    Parameters
    ----------
    source : str
        Where the table comes from, for messages.
    rows : int
        Number of rows.
    columns : mapping of name to column
        Texts as a list, numbers and vectors as arrays. Columns of a Parquet file are read on demand.
    vectors : array or sparse matrix, optional
        Vectors in the file, one per row.
    images : ImageFiles, optional
        The images, if the rows are images.
    references : list of Reference, optional
        All the fields of the references, if the rows are references, so that they can be written back.

    Examples
    --------
    >>> table = Table.of({"name": ["a", "b"], "size": ["1", "2.5"]})
    >>> len(table), table.texts("name")
    (2, ['a', 'b'])
    >>> table.texts("colour")
    Traceback (most recent call last):
    activecover.errors.InputError: table: no column 'colour' (columns are: name, size)
    """

    source: str
    rows: int
    columns: Mapping[str, Column] = field(default_factory=dict)
    vectors: npt.NDArray[Any] | sparse.csr_array | None = None
    images: ImageFiles | None = None
    references: list[Reference] | None = None

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]], source: str = "table") -> Table:
        """Make a table from columns in memory."""
        kept = {name: values if isinstance(values, np.ndarray) else list(values) for name, values in columns.items()}
        lengths = {len(values) for values in kept.values()}
        if len(lengths) != 1:
            raise InputError(f"{source}: columns of {sorted(lengths)} rows; make them equally long")
        return cls(source, lengths.pop(), kept)

    def __len__(self) -> int:
        return self.rows

    @property
    def names(self) -> list[str]:
        """The columns, in the order of the file."""
        return list(self.columns)

    def column(self, name: str) -> Column:
        """One column; an unknown name is refused."""
        self.check(name)
        return self.columns[name]

    def check(self, name: str) -> None:
        """Refuse the name of a missing column."""
        if name not in self.columns:
            shown = ", ".join(self.names[:12]) + (", …" if len(self.names) > 12 else "")
            raise InputError(f"{self.source}: no column {name!r} (columns are: {shown or 'none'})")

    def matching(self, patterns: Sequence[str]) -> list[str]:
        """The named columns, or those that match a pattern such as ``x*``; each pattern must match at least one."""
        chosen: dict[str, None] = {}
        for pattern in patterns:
            fitting = [pattern] if pattern in self.columns else [n for n in self.names if fnmatchcase(n, pattern)]
            if not fitting:
                self.check(pattern)
            chosen.update(dict.fromkeys(fitting))
        return list(chosen)

    def texts(self, name: str) -> Sequence[str]:
        """One column as text; missing values are empty."""
        column = self.column(name)
        if isinstance(column, Unread):
            return column
        if isinstance(column, np.ndarray) and column.ndim != 1:
            raise InputError(f"{self.source}: column {name!r} holds vectors, not texts")
        return [as_text(value) for value in (column.tolist() if isinstance(column, np.ndarray) else column)]

    def width(self, name: str) -> int:
        """Numbers per row of a column of vectors; 0 for any other column."""
        if isinstance(self.columns, LazyColumns):
            return self.columns.width(name)
        column = self.column(name)
        return int(column.shape[1]) if isinstance(column, np.ndarray) and column.ndim == 2 else 0

    def is_text(self, name: str) -> bool:
        """Whether a column holds texts, some of which may be written numbers."""
        if isinstance(self.columns, LazyColumns):
            return not self.columns.width(name) and not self.columns.is_number(name)
        return not isinstance(self.column(name), np.ndarray)

    def is_single(self, name: str) -> bool:
        """Whether, by its type, float32 can represent all numbers of a column without loss."""
        if isinstance(self.columns, LazyColumns):
            return self.columns.is_single(name)
        column = self.column(name)
        return isinstance(column, np.ndarray) and np.can_cast(column.dtype, np.float32)

    def fill(self, names: Sequence[str], target: npt.NDArray[Any]) -> None:
        """Write columns of numbers and vectors side by side into an array, a block of rows at a time."""
        start = 0
        for parts in self._stretches(names):
            stop = start + len(parts[0])
            at = 0
            for part in parts:
                target[start:stop, at : at + part.shape[1]] = part
                at += part.shape[1]
            start = stop

    def _stretches(self, names: Sequence[str]) -> Iterator[list[npt.NDArray[Any]]]:
        if isinstance(self.columns, LazyColumns):
            yield from self.columns.stretches(names)
            return
        parts = [self._numbers(name) for name in names]
        for block in blocks(len(self), 8 * sum(part.shape[1] for part in parts)):
            yield [part[block] for part in parts]

    def _numbers(self, name: str) -> npt.NDArray[Any]:
        column = self.column(name)
        if isinstance(column, np.ndarray):
            return column if column.ndim == 2 else column[:, None]
        return as_numbers(column, f"{self.source}: ", name)[:, None]
