"""Columns of a Parquet file, read when they are asked for: a pool may be larger than what else fits in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.extras import require

_BATCH_ROWS = 1 << 14


class ParquetColumns(Mapping[str, Any]):
    """The columns of a Parquet file by name.

    Numbers come as arrays (NaN where one is missing), lists of numbers as arrays with two dimensions,
    everything else as lists.

    Parameters
    ----------
    path : path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._arrow: Any = require("pyarrow", extra="parquet", purpose="Parquet files")
        self._parquet: Any = require("pyarrow.parquet", extra="parquet", purpose="Parquet files")
        with self._parquet.ParquetFile(path) as file:
            self._schema = file.schema_arrow
            self.rows = int(file.metadata.num_rows)
            first = next(file.iter_batches(1), None)
        if first is None:
            raise InputError(f"{path}: no rows")
        if len({*self._schema.names}) < len(self._schema.names):
            raise InputError(f"{path}: two columns have the same name")
        self._widths = {name: self._width(name, first.column(name)) for name in self._schema.names}

    def __iter__(self) -> Iterator[str]:
        return iter(self._schema.names)

    def __len__(self) -> int:
        return len(self._schema.names)

    def __contains__(self, name: object) -> bool:
        # A mapping would look by reading the column.
        return name in self._widths

    def __getitem__(self, name: str) -> Any:
        if name not in self._widths:
            raise KeyError(name)
        if self._widths[name] or self.is_number(name):
            parts = [part for (part,) in self.stretches([name])]
            whole = np.concatenate(parts)
            return whole if self._widths[name] else whole[:, 0]
        with self._parquet.ParquetFile(self.path) as file:
            return file.read(columns=[name]).column(name).to_pylist()

    def width(self, name: str) -> int:
        """How many numbers a list of a column has; 0 where a column holds no lists of numbers."""
        return self._widths[name]

    def is_number(self, name: str) -> bool:
        """Whether a column holds one number per row."""
        kind = self._schema.field(name).type
        return bool(self._arrow.types.is_integer(kind) or self._arrow.types.is_floating(kind))

    def is_single(self, name: str) -> bool:
        """Whether all numbers of a column are float32 without loss."""
        kind = self._schema.field(name).type
        kind = kind.value_type if self._widths[name] else kind
        return bool(np.can_cast(kind.to_pandas_dtype(), np.float32))

    def stretches(self, names: Sequence[str]) -> Iterator[list[npt.NDArray[Any]]]:
        """Columns of numbers or vectors, some rows at a time, each with two dimensions."""
        start = 0
        # Not read ahead: a file of vectors would be in memory twice.
        with self._parquet.ParquetFile(self.path, pre_buffer=False) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(names), use_threads=False):
                yield [self._numbers(batch.column(name), name, start) for name in names]
                start += batch.num_rows

    def _numbers(self, column: Any, name: str, start: int) -> npt.NDArray[Any]:
        width = self._widths[name]
        if not width:
            if not self.is_number(name):
                raise InputError(f"{self.path}: column {name!r} holds {column.type}, not numbers")
            return np.asarray(column.to_numpy(zero_copy_only=False))[:, None]
        flat = column.flatten()
        lengths = np.asarray(column.value_lengths().to_numpy(zero_copy_only=False), np.float64)
        # A missing list has no length, which is no length of the right kind either.
        wrong = lengths != width
        if wrong.any() or column.null_count or flat.null_count:
            row = start + (int(np.argmax(wrong)) if wrong.any() else 0)
            raise InputError(f"{self.path}: from row {row} on, column {name!r}: not lists of {width} numbers each")
        return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(-1, width)

    def _width(self, name: str, first: Any) -> int:
        types, kind = self._arrow.types, self._schema.field(name).type
        if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
            return 0
        if not (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)):
            return 0
        if types.is_fixed_size_list(kind):
            return int(kind.list_size)
        return len(first[0]) if first[0].is_valid else 0
