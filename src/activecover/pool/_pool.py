"""Vectors as they are stored: float32, centred or normalised once, checked once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError

Metric = Literal["euclidean", "cosine"]
METRICS: tuple[str, ...] = get_args(Metric)

#: Squares and sums of values up to this size stay far inside float32's range in every filter.
LARGEST_VALUE = 1e15
_BLOCK_BYTES = 1 << 24


class Pool:
    """Items that may be positive: ids, vectors, a metric, and contents to show.

    The values are stored as float32. Columns that lie far from zero are moved close to it once, and by
    an amount that changes no difference between float32 values; for the cosine metric every row is
    scaled to length one. All distances are those between the stored values (:attr:`vectors`).

    Parameters
    ----------
    vectors : array of shape (n, d)
        Any real dtype. A float32 memory map that needs no change is used as it is, without a copy.
    ids : sequence of str, optional
        Unique names of the rows; "0", "1", … where not given.
    metric : {"euclidean", "cosine"}
        How far two rows are apart.
    contents : mapping of column name to sequence, optional
        What a person is shown to decide on a row.
    columns : sequence of str, optional
        Names of the vector columns, for messages.

    Examples
    --------
    >>> pool = Pool([[0, 0], [3, 4], [6, 8]], ids=["a", "b", "c"])
    >>> len(pool), pool.dimensions
    (3, 2)
    >>> pool.rows(["c"])
    array([2])
    >>> Pool([[0.0, float("nan")]])
    Traceback (most recent call last):
    activecover.errors.InputError: row 0, column 1: nan is not a finite number; fill it in or drop the row
    """

    def __init__(
        self,
        vectors: npt.ArrayLike,
        *,
        ids: Sequence[str] | None = None,
        metric: str = "euclidean",
        contents: Mapping[str, Sequence[Any]] | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        if metric not in METRICS:
            raise InputError(f"unknown metric {metric!r}: choose one of {', '.join(METRICS)}")
        self.metric = metric
        self.columns = list(columns) if columns is not None else None
        matrix = _as_matrix(vectors)
        low, high = _range(matrix, self.columns)
        self.origin = _origin(low, high) if metric == "euclidean" else np.zeros(matrix.shape[1], np.float32)
        self._vectors = self._stored(matrix)
        self._withdrawn = np.zeros(len(matrix), bool)
        #: How often rows were erased: who keeps a copy of ``withdrawn`` sees by it that the copy is old.
        self.erasures = 0
        self._names: list[str] | None = None
        self._index: dict[str, int] | None = None
        if ids is not None:
            self._set_names([], ids)
        self.contents: dict[str, list[Any]] = {}
        for name, values in (contents or {}).items():
            self.contents[name] = list(values)
            if len(self.contents[name]) != len(matrix):
                count = len(self.contents[name])
                raise InputError(f"column {name!r} has {count} values for {len(matrix)} rows; give one per row")

    def __len__(self) -> int:
        return len(self._vectors)

    def __repr__(self) -> str:
        return f"<Pool: {len(self):,} rows x {self.dimensions}, {self.metric}>"

    @property
    def vectors(self) -> npt.NDArray[np.float32]:
        """The stored values, read-only; withdrawn rows are NaN."""
        view = self._vectors.view()
        view.flags.writeable = False
        return view

    @property
    def dimensions(self) -> int:
        """Number of vector columns."""
        return int(self._vectors.shape[1])

    @property
    def withdrawn(self) -> npt.NDArray[np.bool_]:
        """Which rows have been erased."""
        return self._withdrawn

    @property
    def ids(self) -> list[str]:
        """The ids of all rows."""
        return self._names if self._names is not None else [str(row) for row in range(len(self))]

    def id(self, row: int) -> str:
        """The id of one row."""
        return self._names[row] if self._names is not None else str(row)

    def rows(self, ids: Sequence[str]) -> npt.NDArray[np.int64]:
        """The rows of some ids; an unknown one is named."""
        return np.array([self._row(name) for name in ids], dtype=np.int64)

    def take(self, rows: Sequence[int] | npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
        """The stored vectors of some rows, as a frontier takes them."""
        return np.asarray(self._vectors[np.asarray(rows, np.int64)])

    def content(self, row: int) -> dict[str, Any]:
        """What to show a person for one row."""
        return {name: values[row] for name, values in self.contents.items()}

    def encode(self, vectors: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Bring outside vectors into the pool's space, with the pool's checks."""
        matrix = _as_matrix(vectors)
        if matrix.shape[1] != self.dimensions:
            raise InputError(f"vectors have {matrix.shape[1]} columns, the pool has {self.dimensions}")
        _range(matrix, self.columns)
        return self._stored(matrix)

    def extend(
        self,
        vectors: npt.ArrayLike,
        *,
        ids: Sequence[str] | None = None,
        contents: Mapping[str, Sequence[Any]] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Add rows at the end and return their numbers.

        Examples
        --------
        >>> pool = Pool([[0.0], [1.0]])
        >>> pool.extend([[2.0]])
        array([2])
        """
        added = self.encode(vectors)
        first, total = len(self), len(self) + len(added)
        new_contents = {name: list(values) for name, values in (contents or {}).items()}
        if set(new_contents) != set(self.contents) or any(len(v) != len(added) for v in new_contents.values()):
            raise InputError(f"added rows need the pool's content columns: {sorted(self.contents) or 'none'}")
        if self._names is not None or ids is not None:
            if ids is None:
                raise InputError("this pool has ids of its own: give ids for the added rows")
            self._set_names(self.ids, ids, total)
        self._vectors = np.concatenate([self._vectors, added])
        self._withdrawn = np.concatenate([self._withdrawn, np.zeros(len(added), bool)])
        for name, values in new_contents.items():
            self.contents[name].extend(values)
        return np.arange(first, total)

    def withdraw(self, rows: npt.ArrayLike) -> None:
        """Erase rows: their vectors become NaN, their contents None. Numbers and ids stay."""
        chosen = np.asarray(rows)
        if chosen.size == 0:
            return
        if chosen.dtype.kind not in "iu" or chosen.ndim > 1 or not 0 <= chosen.min() <= chosen.max() < len(self):
            raise InputError(f"rows to withdraw: give row numbers from 0 to {len(self) - 1}")
        chosen = np.atleast_1d(chosen)
        if not self._vectors.flags.writeable or isinstance(self._vectors, np.memmap):
            self._vectors = np.array(self._vectors)
        self._vectors[chosen] = np.nan
        self._withdrawn[chosen] = True
        self.erasures += 1
        for values in self.contents.values():
            for row in chosen:
                values[row] = None

    def without(self, rows: npt.ArrayLike) -> Pool:
        """A copy in which some rows have been erased.

        Examples
        --------
        >>> Pool([[0.0], [1.0]]).without([1]).vectors.ravel()
        array([ 0., nan], dtype=float32)
        """
        copy = object.__new__(Pool)
        copy.__dict__.update(self.__dict__)
        copy._vectors = np.array(self._vectors)
        copy._withdrawn = self._withdrawn.copy()
        copy.contents = {name: list(values) for name, values in self.contents.items()}
        copy.withdraw(rows)
        return copy

    def fingerprint(self, rows: int | None = None) -> dict[str, str]:
        """Hashes of the first ``rows`` ids and vectors, to recognise the pool again."""
        count = len(self) if rows is None else rows
        names = hashlib.blake2b(digest_size=16)
        names.update(f"{self.metric}:{self.dimensions}:{count}\n".encode())
        names.update(self.origin.tobytes())
        names.update("\0".join(self.ids[:count]).encode())
        values = hashlib.blake2b(digest_size=16)
        for block in blocks(count, self.dimensions * 4):
            values.update(np.ascontiguousarray(self._vectors[block]).tobytes())
        return {"ids": names.hexdigest(), "vectors": values.hexdigest()}

    def _row(self, name: str) -> int:
        if not isinstance(name, str):
            raise InputError(f"id {name!r} is not a string: ids are strings, as in pool.ids")
        if self._names is None:
            row = int(name) if name.isascii() and name.isdigit() and len(name) < 20 else -1
            if 0 <= row < len(self) and str(row) == name:
                return row
        else:
            if self._index is None:
                self._index = {known: row for row, known in enumerate(self._names)}
            if name in self._index:
                return self._index[name]
        raise InputError(f"id {name!r} is not in the pool of {len(self):,} rows")

    def _stored(self, matrix: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        if self.metric == "cosine":
            return _normalised(matrix)
        if matrix.dtype == np.float32 and not self.origin.any():
            # Our own copy, unless it is a memory map: a file is read where it lies.
            return matrix if isinstance(matrix, np.memmap) else np.array(matrix, order="C")
        stored = np.empty(matrix.shape, np.float32)
        for block in blocks(len(matrix), matrix.shape[1] * 8):
            stored[block] = np.asarray(matrix[block], np.float64) - self.origin
        return stored

    def _set_names(self, known: Sequence[str], added: Sequence[str], total: int | None = None) -> None:
        names = [*known, *added]
        expected = len(self) if total is None else total
        if len(names) != expected:
            raise InputError(f"{len(names) - len(known)} ids for {expected - len(known)} rows; give one per row")
        index: dict[str, int] = {}
        for row, name in enumerate(names):
            if not isinstance(name, str) or not name or not _is_text(name):
                raise InputError(f"row {row}: id {name!r} is not a non-empty text; give every row a name")
            if name in index:
                raise InputError(f"id {name!r} appears twice, in rows {index[name]} and {row}: ids must be unique")
            index[name] = row
        self._names, self._index = names, index


def _is_text(name: str) -> bool:
    """Whether it can be written to a file, and told from its neighbours in a hash (no NUL)."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in name


def blocks(count: int, row_bytes: int, block_bytes: int = _BLOCK_BYTES) -> Iterator[slice]:
    """Slices of rows small enough to be worked on at once."""
    step = max(1, block_bytes // max(1, row_bytes))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _as_matrix(vectors: npt.ArrayLike) -> npt.NDArray[Any]:
    try:
        matrix = vectors if isinstance(vectors, np.ndarray) else np.asarray(vectors)
    except ValueError as wrong:
        raise InputError("vectors have rows of different lengths: give one value per row and column") from wrong
    if matrix.dtype == object or matrix.dtype.kind not in "fiub":
        raise InputError(f"vectors of type {matrix.dtype} are not real numbers: convert them to float32")
    if matrix.ndim != 2:
        raise InputError(f"vectors have {matrix.ndim} dimension(s): give a table of rows and columns")
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise InputError(f"the pool is empty: {matrix.shape[0]} rows, {matrix.shape[1]} vector columns")
    return matrix


def _range(
    matrix: npt.NDArray[Any], columns: Sequence[str] | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Smallest and largest value of each column; the first bad value is named by row and column."""
    low = np.full(matrix.shape[1], np.inf)
    high = np.full(matrix.shape[1], -np.inf)
    for block in blocks(len(matrix), matrix.shape[1] * 8):
        with np.errstate(over="ignore"):
            part = np.asarray(matrix[block], np.float64)
        bad = ~(np.abs(part) <= LARGEST_VALUE)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            value = part[row, column]
            name = repr(columns[column]) if columns is not None else str(column)
            where = f"row {block.start + row}, column {name}: {value:g}"
            if np.isfinite(value):
                raise InputError(f"{where} is beyond ±{LARGEST_VALUE:g}; rescale the column")
            raise InputError(f"{where} is not a finite number; fill it in or drop the row")
        np.minimum(low, part.min(axis=0), out=low)
        np.maximum(high, part.max(axis=0), out=high)
    return low, high


def _origin(low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """The point to centre on: 0 in each column but for those that lie far from 0.

    A column is moved by its middle only where all its values lie within an eighth of it. Then value
    minus middle is exact for float32 values (Sterbenz), so that no difference between two rows and no
    tie changes, and products used as filters lose no digits to a common offset.
    """
    middle = ((low + high) / 2).astype(np.float32)
    far = (middle != 0) & ((high - low) <= np.abs(middle) / 4)
    return np.where(far, middle, np.float32(0))


def _normalised(matrix: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    stored = np.empty(matrix.shape, np.float32)
    for block in blocks(len(matrix), matrix.shape[1] * 8):
        part = np.asarray(matrix[block], np.float64)
        # Scaling by the largest value first keeps tiny and huge rows from under- or overflowing.
        largest = np.abs(part).max(axis=1, keepdims=True)
        if not largest.all():
            row = block.start + int(np.flatnonzero(largest[:, 0] == 0)[0])
            raise InputError(f"row {row} is all zeros: cosine needs a direction; drop it or use euclidean")
        part = part / largest
        stored[block] = part / np.sqrt((part**2).sum(axis=1, keepdims=True))
    return stored
