"""Rows that are the same item twice, or nearly so, in groups that a growing pool never changes."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial import cKDTree

from activecover.errors import InputError
from activecover.pool._matrix import blocks
from activecover.pool._pool import Pool

_Rows = npt.NDArray[np.int64]

#: Numbers in a sketch: a k-d tree gains little from more.
_SKETCH = 16
#: Rows that a sketch is fitted to.
_SAMPLE = 10_000
#: Candidates held at once, at worst: rows of a block times rows of the pool.
_MOST_CANDIDATES = 1 << 24
#: Room for rounding in sketches, relative to distance and to length: far more than float64 needs.
_ROOM = 1e-6


def duplicate_groups(
    pool: Pool,
    *,
    contents: Sequence[str] = (),
    vectors: bool = True,
    near: float | None = None,
    earlier: npt.ArrayLike | None = None,
) -> npt.NDArray[np.int64]:
    """For each row the lowest row of its group of duplicates: itself, where it has none before it.

    Rows are taken in their order. A row joins the lowest group that has a row with the same stored vector
    or the same contents. Failing that, with ``near``, it joins the group whose first row is nearest to it
    within that distance (ties: the lower one). Failing that, it begins a group. So a near duplicate is near to
    the first row of its group, not only to some member of it; and as rows are added to the pool, groups
    only grow. Erased rows stay by themselves.

    Parameters
    ----------
    pool : Pool
        The rows.
    contents : sequence of str
        Content columns to compare, together, as texts without regard to case and white space. Rows where
        all of them are empty are not compared.
    vectors : bool
        Whether the same stored vector makes a duplicate (different molecules may share a fingerprint).
    near : float, optional
        The distance, between vectors as stored, up to which rows are near duplicates.
    earlier : array of int, optional
        The groups of the pool's first rows, from an earlier call: only later rows are looked at.

    Returns
    -------
    array of int64
        The group of each row, named by its lowest row.

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
    candidates = None if near is None else _candidates(pool, _checked(near, pool), first)
    seen: dict[bytes, int] = {}
    for row, keys in enumerate(_keys(pool, contents, vectors)):
        if row >= first and not pool.withdrawn[row]:
            same = [seen[key] for key in keys if key in seen]
            found = next(candidates) if candidates is not None else None
            if same:
                groups[row] = min(same)
            elif found is not None and near is not None:
                groups[row] = _nearest(pool, row, found, groups, near)
        for key in keys:
            seen.setdefault(key, int(groups[row]))
    return groups


def plain_text(text: Any) -> str:
    """A text as it is compared: without case, with single blanks, each letter written in one way.

    Examples
    --------
    >>> plain_text("  The  CAT ")
    'the cat'
    """
    return "" if text is None else " ".join(unicodedata.normalize("NFKC", str(text)).casefold().split())


def _begin(pool: Pool, earlier: npt.ArrayLike | None) -> tuple[_Rows, int]:
    """Every row by itself, but for those whose group is known; and how many those are."""
    groups = np.arange(len(pool))
    if earlier is None:
        return groups, 0
    known = np.asarray(earlier)
    fits = known.ndim == 1 and len(known) <= len(pool) and (known.dtype.kind in "iu" or not len(known))
    if not fits or ((known < 0) | (known > np.arange(len(known)))).any():
        raise InputError("earlier groups: give what duplicate_groups returned for the pool's first rows")
    groups[: len(known)] = known
    return groups, len(known)


def _checked(near: float, pool: Pool) -> float:
    most = 1.0 if pool.kind == "bits" else math.inf
    if not 0 <= near < most:
        raise InputError(f"near {near!r}: give a distance from 0 and below {most:g}")
    return near


# -- the same -----------------------------------------------------------------------------------------


def _keys(pool: Pool, contents: Sequence[str], vectors: bool) -> Iterator[list[bytes]]:
    """For each row what duplicates of it have in common with it: hashes of 128 bits, of vector and contents."""
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
    """The stored values of one row after the other."""
    stored = pool.vectors
    if pool.kind == "sparse":
        for start, stop in zip(stored.indptr[:-1], stored.indptr[1:], strict=True):
            yield stored.indices[start:stop].astype("<i8").tobytes() + stored.data[start:stop].tobytes()
        return
    for block in blocks(len(pool), stored.shape[1] * stored.itemsize):
        # Adding nothing makes -0 the same as 0, which it equals.
        part = np.ascontiguousarray(stored[block] + stored.dtype.type(0))
        yield from (row.tobytes() for row in part)


# -- nearly the same ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sketch:
    """A few numbers per row that are never farther apart than the rows are, and how far to look from each."""

    points: npt.NDArray[np.float64]
    reach: npt.NDArray[np.float64]
    power: float


def _candidates(pool: Pool, near: float, first: int) -> Iterator[_Rows]:
    """For each row from ``first`` on that is not erased, every row that may be within ``near``, and others."""
    rows = np.flatnonzero(~pool.withdrawn)
    if not len(rows):
        return
    sketch = {"dense": _dense_sketch, "sparse": _sparse_sketch, "bits": _bit_sketch}[pool.kind](pool, rows, near)
    tree = cKDTree(sketch.points)
    step = max(16, min(1024, _MOST_CANDIDATES // len(rows)))
    for start in range(int(np.searchsorted(rows, first)), len(rows), step):
        block = slice(start, start + step)
        for found in tree.query_ball_point(sketch.points[block], sketch.reach[block], p=sketch.power):
            yield rows[found]


def _nearest(pool: Pool, row: int, found: _Rows, groups: _Rows, near: float) -> int:
    """The first row of the group that a row joins, from candidates; the row itself if there is none."""
    before = np.sort(found[found < row])
    firsts = before[groups[before] == before]
    if not len(firsts):
        return row
    distances = _DISTANCES[pool.kind](pool.vectors, row, firsts)
    best = int(distances.argmin())
    return int(firsts[best]) if distances[best] <= near else row


def _dense_sketch(pool: Pool, rows: _Rows, near: float) -> _Sketch:
    """Coordinates along the directions of most variance, and the length of what is left."""
    sample = np.asarray(pool.vectors[rows[:: max(1, len(rows) // _SAMPLE)]], np.float64)
    middle = sample.mean(axis=0)
    count = min(_SKETCH, pool.dimensions)
    _, directions = np.linalg.eigh((sample - middle).T @ (sample - middle))
    directions = directions[:, -count:]
    points = np.empty((len(rows), count + 1))
    longest = 0.0
    for block in blocks(len(rows), pool.dimensions * 8):
        part = np.asarray(pool.vectors[rows[block]], np.float64) - middle
        points[block, :count] = part @ directions
        squares = (part**2).sum(axis=1)
        points[block, count] = np.sqrt(np.maximum(squares - (points[block, :count] ** 2).sum(axis=1), 0))
        longest = max(longest, float(np.sqrt(squares.max())))
    return _Sketch(points, np.full(len(rows), near * (1 + _ROOM) + _ROOM * longest), 2)


def _sparse_sketch(pool: Pool, rows: _Rows, near: float) -> _Sketch:
    """The columns in a few sets of about equal weight: the length of each row's part in each set."""
    chosen = pool.vectors[rows].astype(np.float64)
    squares = chosen.multiply(chosen).tocsr()
    sets = _sets(np.asarray(squares.sum(axis=0)).ravel())
    points = np.sqrt((squares @ sets).toarray())
    longest = float(np.sqrt((points**2).sum(axis=1)).max())
    return _Sketch(points, np.full(len(rows), near * (1 + _ROOM) + _ROOM * longest), 2)


def _bit_sketch(pool: Pool, rows: _Rows, near: float) -> _Sketch:
    """How many bits are set in each of a few sets: they differ by no more bits than the rows do.

    If two rows with a and b bits, h of them in one only, have a distance h / (a + b + h) * 2 of at most t,
    then b is at most a / (1 - t) and h at most a * t / (1 - t).
    """
    counts = np.zeros(pool.dimensions)
    for block in blocks(len(rows), pool.dimensions):
        counts += _unpacked(pool.vectors[rows[block]], pool.dimensions).sum(axis=0)
    sets = _sets(counts).toarray()
    points = np.empty((len(rows), sets.shape[1]))
    for block in blocks(len(rows), pool.dimensions * 8):
        points[block] = _unpacked(pool.vectors[rows[block]], pool.dimensions).astype(np.float64) @ sets
    reach = points.sum(axis=1) * near / (1 - near)
    return _Sketch(points, reach * (1 + _ROOM) + _ROOM, 1)


def _sets(weights: npt.NDArray[np.float64]) -> Any:
    """Which of a few sets each column is in, the heaviest spread over all of them."""
    sets = np.empty(len(weights), np.int64)
    sets[np.argsort(-weights, kind="stable")] = np.arange(len(weights)) % _SKETCH
    places = (np.arange(len(weights)), sets)
    return sparse.csr_array((np.ones(len(weights)), places), shape=(len(weights), _SKETCH))


def _dense_distances(stored: Any, row: int, others: _Rows) -> npt.NDArray[np.float64]:
    differences = np.asarray(stored[others], np.float64) - np.asarray(stored[row], np.float64)
    return np.asarray(np.sqrt((differences**2).sum(axis=1)))


def _sparse_distances(stored: Any, row: int, others: _Rows) -> npt.NDArray[np.float64]:
    mine = stored[np.full(len(others), row)].astype(np.float64)
    differences = sparse.csr_array(stored[others].astype(np.float64) - mine)
    differences.sort_indices()
    result = np.zeros(len(others))
    for place in range(len(others)):
        values = differences.data[differences.indptr[place] : differences.indptr[place + 1]]
        if len(values):
            # One after the other, as the frontier sums them.
            result[place] = np.cumsum(values**2)[-1]
    return np.sqrt(result)


def _bit_distances(stored: Any, row: int, others: _Rows) -> npt.NDArray[np.float64]:
    dimensions = stored.shape[1] * 64
    common = _unpacked(stored[others] & stored[row], dimensions).sum(axis=1, dtype=np.int64)
    union = _unpacked(stored[others] | stored[row], dimensions).sum(axis=1, dtype=np.int64)
    return np.asarray((union - common) / np.maximum(union, 1))


def _unpacked(words: Any, dimensions: int) -> npt.NDArray[np.uint8]:
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, count=dimensions)


_DISTANCES = {"dense": _dense_distances, "sparse": _sparse_distances, "bits": _bit_distances}
