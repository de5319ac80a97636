"""The pool: ids, contents and one matrix of vectors, checked and encoded once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError
from activecover.pool._bits import BitMatrix, PackedBits
from activecover.pool._column import Unread
from activecover.pool._dense import DenseMatrix
from activecover.pool._matrix import AnyMatrix, Kind, Matrix, Vectors, VectorsLike
from activecover.pool._records import BLANK, heading_of, recognised
from activecover.pool._sparse import SparseMatrix

if TYPE_CHECKING:
    from activecover.pool._stored import Statistic

Metric = Literal["euclidean", "cosine", "jaccard"]
METRICS: tuple[str, ...] = get_args(Metric)

_HASHED_IDS = 1 << 16


class Pool:
    """Items that may be positive: ids, vectors, a metric, and contents to show.

    There are three kinds of pools, depending on the input (:attr:`kind`):

    - *dense*: an array, stored as float32. Columns that lie far from zero are shifted towards it once, by an amount
      that changes no difference between float32 values.
    - *sparse*: a SciPy sparse matrix, stored as float32 CSR and never centred.
    - *bits*: for the jaccard metric, rows of zeros and ones, stored as packed 64-bit words.

    For the cosine metric every row is scaled to length one. All distances are between the stored values
    (:attr:`vectors`).

    Parameters
    ----------
    vectors : array or sparse matrix of shape (n, d), or PackedBits
        Any real dtype. A float32 memory map that needs no change is used without a copy.
    ids : sequence of str, optional
        Unique names of the rows; "0", "1", … by default.
    metric : {"euclidean", "cosine", "jaccard"}
        The distance between two rows.
    contents : mapping of column name to sequence, optional
        What a person sees when labelling a row.
    columns : sequence of str, optional
        Names of the vector columns, used in messages.

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
        vectors: VectorsLike | AnyMatrix,
        *,
        ids: Sequence[str] | None = None,
        metric: str = "euclidean",
        contents: Mapping[str, Sequence[Any]] | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        self.metric = metric
        self.columns = list(columns) if columns is not None else None
        self._matrix = _matrix_of(vectors, metric, self.columns)
        self._withdrawn = np.zeros(len(self), bool)
        #: Number of erasures so far; a copy of ``withdrawn`` is stale when this has changed.
        self.erasures = 0
        #: What was derived from all rows together, such as density, by name; it outlives rows that are erased later.
        self.statistics: dict[str, Any] = {}
        self._names: list[str] | None = None
        self._index: dict[str, int] | None = None
        if ids is not None:
            self._set_names([], ids)
        self.contents: dict[str, MutableSequence[Any]] = {}
        for name, values in (contents or {}).items():
            self.contents[name] = values if isinstance(values, Unread) else list(values)
            if len(self.contents[name]) != len(self):
                count = len(self.contents[name])
                raise InputError(f"column {name!r} has {count} values for {len(self)} rows; give one per row")

    def __len__(self) -> int:
        return len(self._matrix)

    def __repr__(self) -> str:
        kind = "" if self.kind == "dense" else f"{self.kind}, "
        return f"<Pool: {len(self):,} rows x {self.dimensions}, {kind}{self.metric}>"

    @property
    def kind(self) -> Kind:
        """The kind of vectors stored: dense, sparse or bits; ``sharded`` in a cluster."""
        return self._matrix.kind

    @property
    def vectors(self) -> Vectors:
        """The stored vectors, read-only: an array, a CSR array, or packed words.

        Withdrawn rows are NaN, or no bits at all.
        """
        stored: Vectors = self._matrix.vectors
        return stored

    @property
    def origin(self) -> npt.NDArray[np.float32]:
        """What was subtracted from every dense vector before it was stored."""
        return self._matrix.origin

    @property
    def dimensions(self) -> int:
        """Number of vector columns or bits."""
        return self._matrix.dimensions

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
        """The row numbers of some ids; an unknown id is refused by name."""
        return np.array([self.row(name) for name in ids], dtype=np.int64)

    def take(self, rows: Sequence[int] | npt.NDArray[np.integer]) -> Vectors:
        """The stored vectors of some rows, in the form that a frontier takes."""
        taken: Vectors = self._matrix.take(np.asarray(rows, np.int64))
        return taken

    def content(self, row: int) -> dict[str, Any]:
        """What to show a person for one row."""
        return {name: values[row] for name, values in self.contents.items()}

    def encode(self, vectors: VectorsLike) -> Vectors:
        """Encode outside vectors as the pool would store them, with the pool's checks."""
        encoded: Vectors = self._matrix.encode(vectors)
        return encoded

    def extend(
        self,
        vectors: VectorsLike,
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
        count = added.shape[0]
        first, total = len(self), len(self) + count
        new_contents = {name: list(values) for name, values in (contents or {}).items()}
        if set(new_contents) != set(self.contents) or any(len(v) != count for v in new_contents.values()):
            raise InputError(f"added rows need the pool's content columns: {sorted(self.contents) or 'none'}")
        if self._names is not None or ids is not None:
            if ids is None:
                raise InputError("this pool has its own ids: give ids for the added rows")
            self._set_names(self.ids, ids, total)
        self._matrix.append(added)
        self._withdrawn = np.concatenate([self._withdrawn, np.zeros(count, bool)])
        for name, values in new_contents.items():
            self.contents[name].extend(values)
        return np.arange(first, total)

    def withdraw(self, rows: npt.ArrayLike) -> None:
        """Erase rows: their vectors become NaN (or no bits), their contents None. Row numbers and ids stay."""
        chosen = checked_rows(rows, len(self))
        if chosen.size == 0:
            return
        self._matrix.erase(chosen)
        self._withdrawn[chosen] = True
        self.erasures += 1
        for values in self.contents.values():
            for row in chosen:
                values[row] = None

    def without(self, rows: npt.ArrayLike) -> Pool:
        """A copy with some rows erased.

        Examples
        --------
        >>> Pool([[0.0], [1.0]]).without([1]).vectors.ravel()
        array([ 0., nan], dtype=float32)
        """
        copy = object.__new__(Pool)
        copy.__dict__.update(self.__dict__)
        copy._matrix = self._matrix.copy()
        copy._withdrawn = self._withdrawn.copy()
        copy.contents = {name: list(values) for name, values in self.contents.items()}
        copy.statistics = {name: value.copy() for name, value in self.statistics.items()}
        copy.withdraw(rows)
        return copy

    def part(self, rows: npt.ArrayLike, also: Vectors | None = None) -> Pool:
        """A pool of some of the rows, and optionally of vectors from :meth:`encode`, numbered from 0.

        Examples
        --------
        >>> Pool([[0.0], [1.0], [2.0]]).part([2, 0]).vectors.ravel()
        array([2., 0.], dtype=float32)
        """
        matrix = self._matrix.part(np.asarray(rows, np.int64))
        if also is not None:
            matrix.append(also)
        return Pool(matrix, metric=self.metric, columns=self.columns)

    def keep_statistic(self, name: str, statistic: Statistic) -> None:
        """Store a statistic with a pool on disk; a pool in memory keeps it only in ``statistics``."""

    def fingerprint(self, rows: int | None = None, *, contents: bool = False) -> dict[str, str]:
        """Hashes of the first ``rows`` ids, vectors and (on request) contents, which identify the pool.

        Parameters
        ----------
        rows : int, optional
            Number of rows; all by default.
        contents : bool
            Whether to hash the contents too: the columns, their order and their values.
        """
        count = len(self) if rows is None else rows
        names = hashlib.blake2b(digest_size=16)
        names.update(f"{self.metric}:{self.dimensions}:{count}\n".encode())
        names.update(self.origin.tobytes())
        for start in range(0, count, _HASHED_IDS):
            # One text with NUL between the ids, built in blocks to save memory.
            part = "\0".join(map(self.id, range(start, min(start + _HASHED_IDS, count))))
            names.update(f"\0{part}".encode() if start else part.encode())
        hashes = {"ids": names.hexdigest(), "vectors": self._digest(self._matrix.vectors, count)}
        return {**hashes, "contents": self._contents_digest(count)} if contents else hashes

    def digest(self, encoded: Vectors) -> str:
        """A hash that identifies vectors from :meth:`encode`."""
        return self._digest(encoded, encoded.shape[0])

    def check_dense(self, who: str) -> None:
        """Refuse a pool that is not dense, on behalf of ``who``."""
        if self.kind != "dense":
            raise InputError(
                f"{who} needs dense vectors, and this pool is of kind {self.kind!r}: "
                "reduce it first, for example with scikit-learn's TruncatedSVD"
            )

    def _contents_digest(self, count: int) -> str:
        digest = hashlib.blake2b(heading_of(list(self.contents)), digest_size=16)
        for chunk in self._contents_chunks(count) if self.contents else ():
            digest.update(chunk)
        return digest.hexdigest()

    def _contents_chunks(self, count: int) -> Iterator[Any]:
        """The contents of the first rows as bytes; a blank for each erased row."""
        for row in range(count):
            yield BLANK if self._withdrawn[row] else recognised(list(self.content(row).values()), row)

    def _digest(self, vectors: Vectors, count: int) -> str:
        values = hashlib.blake2b(digest_size=16)
        for chunk in self._matrix.chunks(vectors, count):
            values.update(chunk)
        return values.hexdigest()

    def row(self, name: str) -> int:
        """The row of one id."""
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

    def _set_names(self, known: Sequence[str], added: Sequence[str], total: int | None = None) -> None:
        names = [*known, *added]
        expected = len(self) if total is None else total
        if len(names) != expected:
            raise InputError(f"{len(names) - len(known)} ids for {expected - len(known)} rows; give one per row")
        self._names, self._index = names, index_of(names)


def checked_rows(rows: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    """Row numbers to withdraw, checked against a pool of ``count`` rows."""
    chosen = np.asarray(rows)
    if chosen.size == 0:
        return np.zeros(0, np.int64)
    if chosen.dtype.kind not in "iu" or chosen.ndim > 1 or not 0 <= chosen.min() <= chosen.max() < count:
        raise InputError(f"rows to withdraw: give row numbers from 0 to {count - 1}")
    return np.atleast_1d(chosen).astype(np.int64)


def index_of(names: Sequence[str]) -> dict[str, int]:
    """The row of each id; an invalid or repeated id is refused by name."""
    index: dict[str, int] = {}
    for row, name in enumerate(names):
        if not isinstance(name, str) or not name or not _is_text(name):
            raise InputError(f"row {row}: id {name!r} is not a non-empty text; give every row a name")
        if name in index:
            raise InputError(f"id {name!r} appears twice, in rows {index[name]} and {row}: ids must be unique")
        index[name] = row
    return index


def _is_text(name: str) -> bool:
    """Whether an id can be written as UTF-8 and holds no NUL, which separates ids in the hash."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in name


def _matrix_of(vectors: VectorsLike | AnyMatrix, metric: str, columns: Sequence[str] | None) -> AnyMatrix:
    """A matrix of the kind that fits the vectors and the metric."""
    if metric not in METRICS:
        raise InputError(f"unknown metric {metric!r}: choose one of {', '.join(METRICS)}")
    if isinstance(vectors, Matrix):
        return vectors  # encoded already: part of a larger pool, or stored elsewhere
    if metric == "jaccard":
        return BitMatrix(vectors, columns)
    if isinstance(vectors, PackedBits):
        raise InputError(f"packed bits need the metric 'jaccard', not {metric!r}")
    if sparse.issparse(vectors):
        return SparseMatrix(vectors, metric, columns)
    return DenseMatrix(vectors, metric, columns)
