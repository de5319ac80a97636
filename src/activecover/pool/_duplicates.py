"""Groups of duplicate and near-duplicate rows, which stay the same as the pool grows."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.pool._bits import bits_set
from activecover.pool._matrix import bit_vectors, blocks, dense_vectors, sparse_vectors
from activecover.pool._pool import Pool

_Rows = npt.NDArray[np.int64]

#: Dimensions of a sketch: a k-d tree gains little from more.
_SKETCH = 16
#: Rows that the sketch is fitted to.
_SAMPLE = 10_000
#: Largest number of candidates held at once: rows of a block times rows of the pool.
_MOST_CANDIDATES = 1 << 24
#: Tolerance for rounding in sketches, relative to distance and length: far more than float64 needs.
_ROOM = 1e-6
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Duplicates:
    """What counts as a duplicate: the same contents in some columns, the same vector, or vectors close to each other.

    Parameters
    ----------
    contents, vectors, near
        As :func:`duplicate_groups` takes them.

    Examples
    --------
    >>> Duplicates(near=0.5).groups(Pool([[0.0], [5.0], [0.1]])).tolist()
    [0, 1, 0]
    """

    contents: tuple[str, ...] = ()
    vectors: bool = True
    near: float | None = None

    def groups(self, pool: Pool, earlier: npt.ArrayLike | None = None) -> npt.NDArray[np.int64]:
        """The first row of each row's group."""
        return duplicate_groups(pool, contents=self.contents, vectors=self.vectors, near=self.near, earlier=earlier)

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain data for JSON."""
        return {"contents": list(self.contents), "vectors": self.vectors, "near": self.near}

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Duplicates:
        """The settings from :meth:`as_dict`."""
        return cls(tuple(said["contents"]), bool(said["vectors"]), said["near"])


def duplicate_groups(
    pool: Pool,
    *,
    contents: Sequence[str] = (),
    vectors: bool = True,
    near: float | None = None,
    earlier: npt.ArrayLike | None = None,
) -> npt.NDArray[np.int64]:
    """The lowest row of each row's group of duplicates: the row itself if it has no earlier duplicate.

    Rows are processed in order. A row joins the lowest group that contains a row with the same stored vector or
    the same contents. Otherwise, if ``near`` is given, it joins the group whose first row is nearest to it within
    that distance (the lower one on ties). Otherwise it starts a group. A near duplicate is therefore close to the
    first row of its group, not only to some member, and groups only grow as rows are added to the pool. Erased rows
    stay on their own.

    Parameters
    ----------
    pool : Pool
        The rows.
    contents : sequence of str
        Content columns to compare, all together, as texts that ignore case and white space. Rows in which all of
        them are empty are not compared.
    vectors : bool
        Whether rows with the same stored vector are duplicates (different molecules may share a fingerprint).
    near : float, optional
        The distance between stored vectors up to which rows are near duplicates.
    earlier : array of int, optional
        The groups of the pool's first rows, from an earlier call; only later rows are examined.

    Returns
    -------
    array of int64
        The group of each row, identified by its lowest row.

    Examples
    --------
    >>> pool = Pool([[0.0], [5.0], [0.1], [5.0]], contents={"text": ["A b", "c", "d", "a  B "]})
    >>> duplicate_groups(pool)
    array([0, 1, 2, 1])
    >>> duplicate_groups(pool, contents=["text"], vectors=False, near=0.2)
    array([0, 1, 0, 0])
    """
    for name in contents:
        if name not in pool.contents:
            raise InputError(f"no content column {name!r} (columns are: {', '.join(pool.contents) or 'none'})")
    groups, first = _begin(pool, earlier)
    search = None if near is None else _search(pool, near)
    seen: dict[bytes, int] = {}
    for row, keys in enumerate(_keys(pool, contents, vectors)):
        if row >= first and not pool.withdrawn[row]:
            same = [seen[key] for key in keys if key in seen]
            if same:
                groups[row] = min(same)
            elif search is not None:
                groups[row] = search.nearest(row)
        if search is not None and groups[row] == row and not pool.withdrawn[row]:
            search.add(row)
        for key in keys:
            seen[key] = min(seen.get(key, row), int(groups[row]))
    return groups


def plain_text(text: object) -> str:
    """A text as it is compared: case-folded, with single spaces, in one Unicode normal form.

    Examples
    --------
    >>> plain_text("  The  CAT ")
    'the cat'
    """
    return "" if text is None else " ".join(unicodedata.normalize("NFKC", str(text)).casefold().split())


def _begin(pool: Pool, earlier: npt.ArrayLike | None) -> tuple[_Rows, int]:
    """Every row in a group of its own, except those whose group is known, and the number of those."""
    groups = np.arange(len(pool))
    if earlier is None:
        return groups, 0
    known = np.asarray(earlier)
    fits = known.ndim == 1 and len(known) <= len(pool) and (known.dtype.kind in "iu" or not len(known))
    if not fits or ((known < 0) | (known > np.arange(len(known)))).any():
        raise InputError("earlier groups: give what duplicate_groups returned for the pool's first rows")
    groups[: len(known)] = known
    return groups, len(known)


# -- exact duplicates -----------------------------------------------------------------------------------------


def _keys(pool: Pool, contents: Sequence[str], vectors: bool) -> Iterator[list[bytes]]:
    """For each row, the 128-bit hashes of its vector and contents, one of which a duplicate shares."""
    columns = [pool.contents[name] for name in contents]
    for row, stored in enumerate(_stored(pool) if vectors else [b""] * len(pool)):
        keys = []
        if vectors and not pool.withdrawn[row]:
            keys.append(_hash(stored, b"vector"))
        words = [plain_text(column[row]) for column in columns]
        if any(words):
            keys.append(_hash("\0".join(words).encode("utf-8", "surrogatepass"), b"contents"))
        yield keys


def _hash(data: bytes, what: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16, person=what).digest()


def _stored(pool: Pool) -> Iterator[bytes]:
    """The stored values, row by row."""
    if pool.kind == "sparse":
        stored = sparse_vectors(pool.vectors)
        for start, stop in zip(stored.indptr[:-1], stored.indptr[1:], strict=True):
            yield stored.indices[start:stop].astype("<i8").tobytes() + stored.data[start:stop].tobytes()
        return
    values = bit_vectors(pool.vectors) if pool.kind == "bits" else dense_vectors(pool.vectors)
    for block in blocks(len(pool), values.shape[1] * values.itemsize):
        # Adding zero turns -0 into 0, which it equals.
        part = np.ascontiguousarray(values[block] + values.dtype.type(0))
        yield from (row.tobytes() for row in part)


# -- near duplicates ----------------------------------------------------------------------------------


def _search(pool: Pool, near: float) -> _Search:
    most = 1.0 if pool.kind == "bits" else math.inf
    if not 0 <= near < most:
        raise InputError(f"near {near!r}: give a distance from 0 and below {most:g}")
    kinds: dict[str, type[Any]] = {"dense": _DenseSearch, "sparse": _SparseSearch, "bits": _BitSearch}
    search: _Search = kinds[pool.kind](pool, near)
    return search


class _Search(ABC):
    """First rows of groups, and the nearest of them to a given row, if one is close enough.

    A subclass finds candidates (possibly too many, never too few) and computes exact distances.
    """

    def __init__(self, pool: Pool, near: float) -> None:
        self._pool, self._near = pool, near

    def nearest(self, row: int) -> int:
        """The nearest first row within reach (the lower one on ties), or the row itself if there is none."""
        firsts = self._candidates(row)
        if not len(firsts):
            return row
        distances = self._distances(row, firsts)
        best = int(distances.argmin())
        return int(firsts[best]) if distances[best] <= self._near else row

    @abstractmethod
    def add(self, row: int) -> None:
        """Add the first row of a group; rows are added in ascending order."""

    @abstractmethod
    def _candidates(self, row: int) -> _Rows:
        """All first rows that may be close enough, in ascending order."""

    @abstractmethod
    def _distances(self, row: int, others: _Rows) -> npt.NDArray[np.float64]:
        """Distances as the frontier defines them, to the last bit."""


class _DenseSearch(_Search):
    """A k-d tree over a short sketch of each row; sketches are never farther apart than the rows.

    A sketch holds the coordinates along the directions of most variance, and the length of the remainder.
    """

    def __init__(self, pool: Pool, near: float) -> None:
        super().__init__(pool, near)
        self._vectors = dense_vectors(pool.vectors)
        self._rows = np.flatnonzero(~pool.withdrawn)
        self._is_first = np.zeros(len(pool), bool)
        self._block = range(0)
        self._found: Any = []
        if len(self._rows):
            self._points, longest = self._sketch()
            self._reach = near * (1 + _ROOM) + _ROOM * longest
            from scipy.spatial import cKDTree

            self._tree = cKDTree(self._points)

    def add(self, row: int) -> None:
        self._is_first[row] = True

    def _candidates(self, row: int) -> _Rows:
        at = int(np.searchsorted(self._rows, row))
        if at not in self._block:
            # Large blocks, but small enough that a pool of nothing but duplicates does not fill the memory.
            step = max(16, min(1024, _MOST_CANDIDATES // len(self._rows)))
            self._block = range(at, at + step)
            self._found = self._tree.query_ball_point(self._points[at : at + step], self._reach, return_sorted=True)
        found = self._rows[self._found[at - self._block.start]]
        return np.asarray(found[self._is_first[found]])

    def _distances(self, row: int, others: _Rows) -> npt.NDArray[np.float64]:
        differences = np.asarray(self._vectors[others], np.float64) - np.asarray(self._vectors[row], np.float64)
        return np.asarray(np.sqrt((differences**2).sum(axis=1)))

    def _sketch(self) -> tuple[npt.NDArray[np.float64], float]:
        """The sketch of each row, and the length of the longest row."""
        rows, width = self._rows, self._pool.dimensions
        sample = np.asarray(self._vectors[rows[:: max(1, len(rows) // _SAMPLE)]], np.float64)
        middle = sample.mean(axis=0)
        count = min(_SKETCH, width)
        directions = np.linalg.eigh((sample - middle).T @ (sample - middle))[1][:, -count:]
        points = np.empty((len(rows), count + 1))
        longest = 0.0
        for block in blocks(len(rows), width * 8):
            part = np.asarray(self._vectors[rows[block]], np.float64) - middle
            points[block, :count] = part @ directions
            squares = (part**2).sum(axis=1)
            points[block, count] = np.sqrt(np.maximum(squares - (points[block, :count] ** 2).sum(axis=1), 0))
            longest = max(longest, float(np.sqrt(squares.max())))
        return points, longest


class _ListSearch(_Search):
    """Inverted lists: for each column, the first rows that have it.

    A row that shares none of another row's rarest columns is at least as far from it as those columns alone imply.
    So it is enough to look at rows that share one of the rarest columns, taking as many columns as put any other
    row out of reach.
    """

    def __init__(self, pool: Pool, near: float) -> None:
        super().__init__(pool, near)
        self._having: dict[int, array[int]] = {}
        self._all = array("q")
        self._rank = np.argsort(np.argsort(self._column_counts(), kind="stable"), kind="stable")

    def add(self, row: int) -> None:
        self._all.append(row)
        for column in self._columns(row).tolist():
            self._having.setdefault(column, array("q")).append(row)

    def _candidates(self, row: int) -> _Rows:
        columns = self._columns(row)
        columns = columns[np.argsort(self._rank[columns])]
        count = self._enough(row, columns)
        if count is None:
            return np.array(self._all, np.int64)
        lists = [self._having[column] for column in columns[:count].tolist() if column in self._having]
        if not lists:
            return _NONE
        return self._possible(row, np.unique(np.concatenate([np.array(rows, np.int64) for rows in lists])))

    @abstractmethod
    def _possible(self, row: int, others: _Rows) -> _Rows:
        """The rows that a cheap test does not rule out."""

    @abstractmethod
    def _column_counts(self) -> npt.NDArray[np.int64]:
        """The number of rows that have each column."""

    @abstractmethod
    def _columns(self, row: int) -> _Rows:
        """The columns of a row."""

    @abstractmethod
    def _enough(self, row: int, columns: _Rows) -> int | None:
        """How many of the columns, in order, put rows without them out of reach; None if all of them do not."""


class _SparseSearch(_ListSearch):
    """A row that lacks some of another row's columns is at least as far from it as the length of those columns."""

    def __init__(self, pool: Pool, near: float) -> None:
        self._vectors = sparse_vectors(pool.vectors)
        super().__init__(pool, near)
        self._scattered = np.zeros(pool.dimensions)
        self._squares = np.array([float((self._values(row) ** 2).sum()) for row in range(len(pool))])

    def _column_counts(self) -> npt.NDArray[np.int64]:
        return np.bincount(self._vectors.indices, minlength=self._pool.dimensions)

    def _columns(self, row: int) -> _Rows:
        return np.asarray(self._vectors.indices[self._vectors.indptr[row] : self._vectors.indptr[row + 1]], np.int64)

    def _values(self, row: int) -> npt.NDArray[np.float64]:
        return np.asarray(self._vectors.data[self._vectors.indptr[row] : self._vectors.indptr[row + 1]], np.float64)

    def _enough(self, row: int, columns: _Rows) -> int | None:
        lengths = np.sqrt(np.cumsum(self._values(row)[np.searchsorted(self._columns(row), columns)] ** 2))
        beyond = np.flatnonzero(lengths > self._near * (1 + _ROOM))
        return int(beyond[0]) + 1 if len(beyond) else None

    def _possible(self, row: int, others: _Rows) -> _Rows:
        self._scattered[self._columns(row)] = self._values(row)
        products = np.asarray(self._vectors[others] @ self._scattered)
        self._scattered[self._columns(row)] = 0
        lengths = self._squares[row] + self._squares[others]
        estimates = lengths - 2 * products
        return np.asarray(others[estimates <= self._near**2 + _ROOM * (lengths + self._near**2)])

    def _distances(self, row: int, others: _Rows) -> npt.NDArray[np.float64]:
        return np.array([self._distance(row, other) for other in others.tolist()])

    def _distance(self, row: int, other: int) -> float:
        columns, values = self._columns(other), self._values(other)
        mine = self._columns(row)
        union = np.union1d(mine, columns)
        differences = np.zeros(len(union))
        differences[np.searchsorted(union, mine)] = self._values(row)
        differences[np.searchsorted(union, columns)] -= values
        # Summed in order, as the frontier does.
        return float(np.sqrt(np.cumsum(differences**2)[-1])) if len(union) else 0.0


class _BitSearch(_ListSearch):
    """Two rows within distance t share at least 1 - t of the bits of either."""

    def __init__(self, pool: Pool, near: float) -> None:
        self._vectors = bit_vectors(pool.vectors)
        super().__init__(pool, near)
        self._bits = np.concatenate([_ones(self._vectors[block]) for block in blocks(len(pool), pool.dimensions)])

    def _possible(self, row: int, others: _Rows) -> _Rows:
        mine, theirs = self._bits[row], self._bits[others]
        share = np.minimum(mine, theirs) / np.maximum(mine, theirs)
        return np.asarray(others[share >= (1 - self._near) * (1 - _ROOM)])

    def _column_counts(self) -> npt.NDArray[np.int64]:
        counts = np.zeros(self._pool.dimensions, np.int64)
        for block in blocks(len(self._pool), self._pool.dimensions):
            counts += _unpacked(self._vectors[block])[:, : self._pool.dimensions].sum(axis=0, dtype=np.int64)
        return counts

    def _columns(self, row: int) -> _Rows:
        return bits_set(self._vectors[row], self._pool.dimensions)

    def _enough(self, row: int, columns: _Rows) -> int | None:
        # A row without bits is close only to other rows without bits, which are in no list.
        return math.floor(self._near * len(columns) * (1 + _ROOM)) + 1 if len(columns) else None

    def _distances(self, row: int, others: _Rows) -> npt.NDArray[np.float64]:
        common = _ones(self._vectors[others] & self._vectors[row])
        union = _ones(self._vectors[others] | self._vectors[row])
        return np.asarray((union - common) / np.maximum(union, 1))


def _ones(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    if hasattr(np, "bitwise_count"):
        return np.asarray(np.bitwise_count(words).sum(axis=1, dtype=np.int64))
    return np.asarray(_unpacked(words).sum(axis=1, dtype=np.int64))


def _unpacked(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1)
