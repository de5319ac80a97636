"""Columns of a Parquet file, read on demand, as a pool may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.extras import require
from activecover.tables._reading import check_columns
from activecover.tables._values import as_text

if TYPE_CHECKING:
    import pyarrow

_BATCH_ROWS = 1 << 14


class ParquetColumns(Mapping[str, Any]):
    """The columns of a Parquet file by name.

    Numbers are returned as arrays (NaN for missing ones), lists of numbers as two-dimensional arrays, and
    everything else as lists.

    Parameters
    ----------
    path : str or Path
        The file; only used in messages if ``opened`` is given.
    opened : callable, optional
        Returns the open ``ParquetFile`` as a context manager, if the file is not on this machine.
    extra : str
        The extra that installs pyarrow.
    """

    def __init__(
        self,
        path: str | Path,
        opened: Callable[[], AbstractContextManager[Any]] | None = None,
        *,
        extra: str = "parquet",
    ) -> None:
        self.path = path
        self._types = require("pyarrow", extra=extra, purpose="Parquet files").types
        parquet = require("pyarrow.parquet", extra=extra, purpose="Parquet files")
        # No read-ahead: a file of vectors would be in memory twice.
        self._opened = opened or (lambda: parquet.ParquetFile(path, pre_buffer=False))
        with self._opened() as file:
            self._schema = file.schema_arrow
            self._groups = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]
            self.rows = sum(self._groups)
            first = next(file.iter_batches(1), None) if self.rows else None
        if first is None:
            raise InputError(f"{path}: no rows")
        check_columns(path, self._schema.names)
        self._widths = {name: self._width(name, first.column(name)) for name in self._schema.names}

    def __iter__(self) -> Iterator[str]:
        return iter(self._schema.names)

    def __len__(self) -> int:
        return len(self._schema.names)

    def __contains__(self, name: object) -> bool:
        # A mapping's default would read the column.
        return name in self._widths

    def __getitem__(self, name: str) -> npt.NDArray[Any] | list[Any]:
        if name not in self._widths:
            raise KeyError(name)
        if self._widths[name] or self.is_number(name):
            whole = np.concatenate([part for (part,) in self.stretches([name])])
            return whole if self._widths[name] else whole[:, 0]
        return [value for _, batch in self._batches([name]) for value in batch.column(name).to_pylist()]

    def width(self, name: str) -> int:
        """Numbers per row of a column of lists; 0 for any other column."""
        return self._widths[name]

    def is_number(self, name: str) -> bool:
        """Whether a column holds one number per row."""
        kind = self._schema.field(name).type
        return bool(self._types.is_integer(kind) or self._types.is_floating(kind))

    def is_list(self, name: str) -> bool:
        """Whether a column holds lists of any kind."""
        kind, types = self._schema.field(name).type, self._types
        return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))

    def is_single(self, name: str) -> bool:
        """Whether float32 can represent all numbers of a column without loss."""
        kind = self._schema.field(name).type
        kind = kind.value_type if self._widths[name] else kind
        return bool(np.can_cast(kind.to_pandas_dtype(), np.float32))

    def stretches(self, names: Sequence[str]) -> Iterator[list[npt.NDArray[Any]]]:
        """Columns of numbers or vectors, a block of rows at a time, each two-dimensional."""
        for start, batch in self._batches(names):
            yield [self._numbers(batch.column(name), name, start, gaps=True) for name in names]

    def read(
        self, vectors: Sequence[str], texts: Sequence[str], start: int = 0, stop: int | None = None
    ) -> tuple[npt.NDArray[Any] | None, dict[str, list[str]]]:
        """Some rows: numeric columns side by side, without gaps (None if no column is named), and text columns."""
        parts: list[npt.NDArray[Any]] = []
        found: dict[str, list[str]] = {name: [] for name in texts}
        for first, batch in self._batches([*dict.fromkeys([*vectors, *texts])], start, stop):
            if vectors:
                columns = [self._numbers(batch.column(name), name, first) for name in vectors]
                parts.append(columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1))
            for name, values in found.items():
                values.extend(map(as_text, batch.column(name).to_pylist()))
        return np.concatenate(parts) if parts else None, found

    def labels(self, names: Sequence[str]) -> list[str]:
        """Names of the vector columns that :meth:`read` returns for some columns."""
        return [
            f"{name}[{place}]" if self.is_list(name) else name
            for name in names
            for place in range(self._widths[name] if self.is_list(name) else 1)
        ]

    def _batches(self, names: Sequence[str], start: int = 0, stop: int | None = None) -> Iterator[tuple[int, Any]]:
        """Batches of rows with the number of the first row; only the row groups needed are read."""
        stop = self.rows if stop is None else stop
        ends = np.cumsum([0, *self._groups])
        groups = [at for at in range(len(self._groups)) if ends[at] < stop and ends[at + 1] > start]
        place = int(ends[groups[0]]) if groups else 0
        with self._opened() as file:
            for batch in file.iter_batches(_BATCH_ROWS, groups, columns=list(names), use_threads=False):
                low, high = max(start - place, 0), min(stop - place, batch.num_rows)
                if low < high:
                    yield place + low, batch.slice(low, high - low)
                place += batch.num_rows

    def _numbers(self, column: pyarrow.Array, name: str, start: int, *, gaps: bool = False) -> npt.NDArray[Any]:
        lists = self.is_list(name)
        if column.null_count and (lists or not gaps):
            self._refuse(start + column.is_null().to_pylist().index(True), name, "empty; fill it in or drop the row")
        values = (column.flatten() if lists else column).to_numpy(zero_copy_only=False)
        if values.dtype.kind not in "fiub":
            what = "not lists of numbers" if lists else "not numbers"
            raise InputError(f"{self.path}: column {name!r} holds {column.type}, {what}; choose the vector columns")
        if not lists:
            return np.asarray(values)[:, None]
        width = self._widths[name]
        if not self._types.is_fixed_size_list(column.type):
            wrong = np.asarray(column.value_lengths().to_numpy(zero_copy_only=False)) != width
            if wrong.any():
                self._refuse(start + int(np.argmax(wrong)), name, "lists of different lengths; make them equally long")
        return np.asarray(values).reshape(len(column), width)

    def _refuse(self, row: int, name: str, what: str) -> None:
        raise InputError(f"{self.path}: row {row}, column {name!r}: {what}")

    def _width(self, name: str, first: pyarrow.Array) -> int:
        kind, types = self._schema.field(name).type, self._types
        if not self.is_list(name) or not (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)):
            return 0
        if types.is_fixed_size_list(kind):
            return int(kind.list_size)
        return len(first[0]) if first[0].is_valid else 0
