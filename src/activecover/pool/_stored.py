"""A pool in a folder: vectors are mapped, contents are read on demand."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError, StoreError
from activecover.pool._column import Column
from activecover.pool._matrix import AnyMatrix, Vectors, VectorsLike
from activecover.pool._pool import Pool, checked_rows
from activecover.pool._records import BLANK

if TYPE_CHECKING:
    from activecover.pool._folder import PoolFolder

_READ_AT_ONCE = 1 << 22


class StoredContents:
    """The contents of all rows in one file, a JSON list per row, read one at a time."""

    def __init__(
        self, path: Path, names: Sequence[str], data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]
    ) -> None:
        self.path, self.names = path, list(names)
        self._data, self._ends = data, ends

    def __len__(self) -> int:
        return len(self._ends) - 1

    def chunks(self, erased: npt.NDArray[np.int64], count: int) -> Iterator[Any]:
        """The bytes of the first rows, with a blank for each erased one."""
        start = 0
        for row in erased.tolist():
            yield from self._between(start, row)
            yield BLANK
            start = row + 1
        yield from self._between(start, count)

    def _between(self, first: int, last: int) -> Iterator[Any]:
        begin, end = int(self._ends[first]), int(self._ends[last])
        if not 0 <= begin <= end <= len(self._data):
            raise StoreError(f"{self.path}: its row offsets are damaged; restore the pool from a copy")
        for place in range(begin, end, _READ_AT_ONCE):
            yield self._data[place : min(end, place + _READ_AT_ONCE)]

    def read(self, row: int) -> list[Any]:
        """The values of one row, one per column; all None if the row was erased."""
        record = self._data[self._ends[row] : self._ends[row + 1]].tobytes()
        if record.startswith(BLANK):
            return [None] * len(self.names)
        try:
            values = json.loads(record.decode("utf-8", "surrogatepass"))
        except ValueError:
            values = None
        if not isinstance(values, list) or len(values) != len(self.names):
            raise StoreError(f"{self.path}: the contents of row {row} are damaged; restore the pool from a copy")
        return values


@dataclass(frozen=True, slots=True)
class Statistic:
    """What was derived from the first rows of a pool: arrays with one line per row, and plain facts."""

    arrays: dict[str, npt.NDArray[Any]]
    facts: dict[str, Any]

    @property
    def rows(self) -> int:
        """Number of rows it was derived from."""
        return len(next(iter(self.arrays.values())))


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a folder holds at one moment."""

    matrix: AnyMatrix
    metric: str
    columns: list[str] | None
    names: list[str] | None
    withdrawn: npt.NDArray[np.bool_]
    records: StoredContents | None
    statistics: dict[str, Statistic]


class StoredPool(Pool):
    """A pool stored in a folder.

    If loaded for writing, ``extend`` and ``withdraw`` change the folder; otherwise they change only this object.
    Rows erased from the folder are erased here too, however it was loaded.
    """

    def __init__(self, folder: PoolFolder, mapped: Mapped, *, writable: bool) -> None:
        super().__init__(mapped.matrix, metric=mapped.metric, columns=mapped.columns)
        self.folder, self.writable = folder, writable
        self.kept_statistics = mapped.statistics
        #: Returns the current folder of a pool that may move.
        self.whereabouts: Callable[[], Path] | None = None
        # Whether rows were added or erased here but not in the folder.
        self._differs = False
        self._withdrawn = mapped.withdrawn
        self._take_up(mapped)

    def content(self, row: int) -> dict[str, Any]:
        """What to show a person for one row."""
        if self._records is None or self._differs:
            return super().content(row)
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return dict(zip(self._records.names, self._records.read(int(row) % len(self)), strict=True))

    def extend(
        self,
        vectors: VectorsLike,
        *,
        ids: Sequence[str] | None = None,
        contents: Mapping[str, Sequence[Any]] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Add rows at the end and return their numbers; if loaded for writing, on disk as well."""
        if self.writable:
            return self.folder.append(vectors, ids=ids, contents=contents)
        rows = super().extend(vectors, ids=ids, contents=contents)
        self._differs = True
        return rows

    def withdraw(self, rows: npt.ArrayLike) -> None:
        """Erase rows; if loaded for writing, on disk as well."""
        if self.writable:
            self.folder.erase(rows)
            return
        self._differs = self._differs or checked_rows(rows, len(self)).size > 0
        super().withdraw(rows)

    def keep_statistic(self, name: str, statistic: Statistic) -> None:
        """Store a statistic with the pool; it cannot be recomputed once rows have been erased."""
        if not self._differs and os.access(self.folder.folder, os.W_OK):
            self.folder.keep_statistic(name, statistic)
            self.kept_statistics = self.folder.mapped().statistics

    def refresh(self) -> bool:
        """Pick up changes that others made to the folder; return whether there were any."""
        if self._differs:
            raise InputError("this pool was changed in memory only; load the folder again to see its changes")
        self.folder = self._folder_now()
        return self._take_up(self.folder.mapped())

    def follow(self) -> None:
        """Switch to the new folder if the pool has been moved."""
        if not self._differs and self._folder_now() is not self.folder:
            self.refresh()

    def _folder_now(self) -> PoolFolder:
        place = self.folder.folder if self.whereabouts is None else self.whereabouts()
        return self.folder if place == self.folder.folder else self.folder.at(place, self)

    def erased(self, rows: npt.NDArray[np.int64]) -> None:
        """Record that rows were erased from the folder, with their vectors and contents."""
        inside = rows[rows < self._stored_rows]
        if self._differs:
            super().withdraw(inside)
        elif inside.size:
            self._withdrawn[inside] = True
            self.erasures += 1

    def _contents_chunks(self, count: int) -> Iterator[Any]:
        if self._records is None or self._differs:
            return super()._contents_chunks(count)
        return self._records.chunks(np.flatnonzero(self._withdrawn[:count]), count)

    def without(self, rows: npt.ArrayLike) -> Pool:
        """A copy in memory with some rows erased."""
        copy = super().without(rows)
        for name in ("folder", "writable", "whereabouts", "kept_statistics", "_differs", "_records", "_stored_rows"):
            del copy.__dict__[name]
        return copy

    def _take_up(self, mapped: Mapped) -> bool:
        known = self._withdrawn
        grown = len(mapped.matrix) - len(known)
        erased = bool((mapped.withdrawn[: len(known)] != known).any())
        self._matrix, self._withdrawn = mapped.matrix, mapped.withdrawn
        self._stored_rows = len(mapped.matrix)
        self.erasures += erased
        if grown or mapped.names is None or self._names is None:
            self._names, self._index = mapped.names, None
        self._records = mapped.records
        if mapped.records is not None:
            self.contents = {name: Column(mapped.records, place) for place, name in enumerate(mapped.records.names)}
        return erased or grown > 0


def rows_encoded(matrix: AnyMatrix, given: Vectors) -> Vectors:
    """Vectors that were encoded by a pool of this kind, checked for type and width."""
    width = given.shape[1] if getattr(given, "ndim", 0) == 2 else None
    wanted = np.uint64 if matrix.kind == "bits" else np.float32
    if (
        width != matrix.vectors.shape[1]
        or given.dtype != wanted
        or (matrix.kind == "sparse") != hasattr(given, "indptr")
    ):
        raise InputError(f"these rows were not encoded by a pool of kind {matrix.kind!r}: use its encode")
    return given
