"""Vectors that a file already contains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError
from activecover.intake._base import Allocate, Embedding
from activecover.intake._table import Table
from activecover.pool import PackedBits, VectorsLike
from activecover.tables import number


class FileVectors(Embedding):
    """The vectors in a file, unchanged: a matrix, columns of lists, or columns of numbers.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns, or patterns such as ``x*``. By default the matrix of an ``.npy`` or ``.npz`` file, else all
        columns of lists, else all columns of numbers.
    bits : int, optional
        Bits per row, if the matrix was packed by ``numpy.packbits`` along the rows.
    seed : int
        Not used.

    Examples
    --------
    >>> table = Table.of({"x0": ["1", "2"], "x1": ["3", "4"], "name": ["a", "b"]})
    >>> FileVectors(["x*"]).fit(table).transform(table)
    array([[1., 3.],
           [2., 4.]])
    """

    name = "vectors"

    def __init__(self, columns: Sequence[str] | None = None, *, bits: int | None = None, seed: int = 0) -> None:
        super().__init__(columns, seed=seed)
        self.bits = bits

    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {**super().parameters(), "bits": self.bits}

    @property
    def dimension_names(self) -> list[str] | None:
        """Names of the columns; for a column of lists, with the position in the list."""
        if not self.used_:
            return None
        return [
            name if width == 0 else f"{name}[{place}]"
            for name, width in zip(self.used_, self.widths_, strict=True)
            for place in range(max(width, 1))
        ]

    def transform(self, table: Table, allocate: Allocate = np.empty) -> VectorsLike:
        """The vectors of a table's rows; float32 if that loses nothing, else float64."""
        if not self.used_:
            return self._matrix(table)
        for name, width in zip(self.used_, self.widths_, strict=True):
            table.check(name)
            if table.width(name) != width:
                raise InputError(
                    f"{table.source}: column {name!r} has {table.width(name) or 'single'} numbers per row, "
                    f"but the first rows had {width or 'single ones'}"
                )
        single = all(table.is_single(name) for name in self.used_)
        shape = (len(table), sum(max(width, 1) for width in self.widths_))
        vectors = allocate(shape, np.float32 if single else np.float64)
        table.fill(self.used_, vectors)
        return vectors

    def _default_columns(self, table: Table, free: Sequence[str]) -> list[str]:
        if table.vectors is not None:
            return []
        lists = [name for name in free if table.width(name)]
        numbers = lists or [name for name in free if not table.is_text(name) or _begins_as_number(table, name)]
        if not numbers:
            raise InputError(
                f"{table.source}: no vectors and no columns of numbers; name them, or choose another embedding"
            )
        return numbers

    def _fit(self, table: Table) -> None:
        self.widths_ = [table.width(name) for name in self.used_]
        self.dimensions_ = 0 if self.used_ else _columns_of(table)

    def _matrix(self, table: Table) -> VectorsLike:
        matrix = table.vectors
        if matrix is None:
            raise InputError(f"{table.source}: it has no vectors, but the first rows had some")
        if matrix.shape[1] != self.dimensions_:
            raise InputError(
                f"{table.source}: vectors of {matrix.shape[1]} columns, but the first had {self.dimensions_}"
            )
        if self.bits is not None:
            if sparse.issparse(matrix):
                raise InputError(f"{table.source}: a sparse matrix is not packed; leave out the number of bits")
            return PackedBits(matrix, self.bits)
        return matrix

    def _learnt(self) -> tuple[dict[str, Any], Mapping[str, npt.NDArray[Any]]]:
        return {"widths": self.widths_, "dimensions": self.dimensions_}, {}

    def _restore(self, learnt: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.widths_, self.dimensions_ = list(learnt["widths"]), int(learnt["dimensions"])


def _columns_of(table: Table) -> int:
    return 0 if table.vectors is None else int(table.vectors.shape[1])


def _begins_as_number(table: Table, name: str) -> bool:
    first = next((value for value in table.column(name) if str(value).strip()), None)
    return first is not None and number(first) is not None
