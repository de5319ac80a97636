"""One shard: a part of the pool, with ordinary exact frontiers, in its own process."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.frontier._base import Frontier, Nearest, Rows
from activecover.frontier.ray._connect import import_ray
from activecover.frontier.ray._files import Layout, Piece, PieceRows, read_pieces, rows_counted_from
from activecover.pool import DenseMatrix, Pool, VectorsLike, as_matrix, dense_vectors, value_range

#: Shifts every key below zero, preserving order: to a shard all positives come from outside.
_OUTSIDE = 1 << 62
#: Vectors are sent with an answer up to this size.
_VECTOR_BYTES = 1 << 22

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ShardSummary:
    """What a shard reports about its rows before storing them: the range of each column, and the ids."""

    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    ids: list[str] | None


@dataclass(frozen=True, slots=True)
class Later:
    """Changes to a shard's rows since its files were read."""

    added: tuple[Vectors, ...] = ()
    withdrawn: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes to a frontier since the last query; ``whole`` means since it was created."""

    whole: bool
    removed: Rows
    keys: Rows
    vectors: Vectors
    closed: Rows
    opened: Rows
    rows: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A shard's nearest rows, with the squared distances that decide ties."""

    rows: Rows
    squares: npt.NDArray[np.float64]
    distances: npt.NDArray[np.float64]
    sources: Rows
    vectors: Vectors | None


class StoredMatrix(DenseMatrix):
    """Rows of a larger pool, centred on the origin of that pool."""

    def __init__(self, matrix: npt.NDArray[Any], metric: str, origin: Vectors) -> None:
        self._metric, self._columns = metric, None
        self.dimensions = int(matrix.shape[1])
        self.origin = origin
        as_it_is = metric == "euclidean" and matrix.dtype == np.float32 and not origin.any()
        # Read by this process only: no protective copy is needed.
        self._values = matrix if as_it_is and matrix.flags.c_contiguous else self._stored(matrix)


class _Part(StoredMatrix):
    """The matrix of a shard; rows that are added later arrive encoded."""

    def encode(self, given: VectorsLike) -> Vectors:
        return np.asarray(given, np.float32)


class _Known:
    """One frontier of a shard, and the vectors of its positives by key."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self.rows = 0
        self.vectors: dict[int, Vectors] = {}


class Shard:
    """Rows ``first``, ``first + 1``, … of a pool. Row numbers always refer to the whole pool.

    Files are read on the first call, so that an error has a caller to report to.
    """

    def __init__(self, pieces: Sequence[Piece], layout: Layout, first: int, backend: str) -> None:
        self._pieces, self._layout, self._first, self._backend = pieces, layout, first, backend
        self._table: PieceRows | None = None
        self._pool: Pool | None = None
        self._frontiers: dict[int, _Known] = {}

    def process(self) -> int:
        """The id of the process that this runs in."""
        return os.getpid()

    def node(self) -> str:
        """The node that this runs on."""
        place: str = import_ray().get_runtime_context().get_node_id()
        return place

    def summary(self) -> ShardSummary:
        """Read and check the rows, and return what the other shards need to know."""
        table = self._read()
        with rows_counted_from(self._first):
            low, high = value_range(as_matrix(table.vectors), None)
        return ShardSummary(low, high, table.ids)

    def build(self, metric: str, origin: npt.NDArray[np.float32], later: Later) -> None:
        """Store the rows as a pool of all rows would."""
        table = self._read()
        self._table = None
        with rows_counted_from(self._first):
            self._pool = Pool(_Part(table.vectors, metric, origin), metric=metric)
        self._contents: dict[str, list[str | None]] = {name: list(texts) for name, texts in table.contents.items()}
        for vectors in later.added:
            self.extend(vectors)
        self.withdraw(np.array(later.withdrawn, np.int64))

    def take(self, rows: Rows) -> Vectors:
        """The stored vectors of some rows."""
        return dense_vectors(self._stored().take(rows - self._first))

    def content(self, row: int) -> dict[str, Any]:
        """What to show a person for a row."""
        return {name: texts[row - self._first] for name, texts in self._contents.items()}

    def extend(self, encoded: Vectors) -> None:
        """Add encoded rows at the end."""
        self._stored().extend(encoded)

    def withdraw(self, rows: Rows) -> None:
        """Erase rows."""
        self._stored().withdraw(rows - self._first)
        for texts in self._contents.values():
            for row in (rows - self._first).tolist():
                # The contents of added rows are held by the process that added them.
                if row < len(texts):
                    texts[row] = None

    def digest(self, stop: int) -> tuple[int, int]:
        """A sum of hashes of the rows before ``stop``; the total does not depend on how rows are spread."""
        pool = self._stored()
        total = np.zeros(2, np.uint64)
        for start in range(0, min(len(pool), stop - self._first), 4096):
            rows = np.arange(start, min(start + 4096, len(pool), stop - self._first))
            hashes = [
                hashlib.blake2b(vector.tobytes(), digest_size=16, salt=row.to_bytes(16, "little")).digest()
                for row, vector in zip((rows + self._first).tolist(), pool.take(rows), strict=True)
            ]
            total += np.frombuffer(b"".join(hashes), "<u8").reshape(-1, 2).sum(axis=0, dtype=np.uint64)
        return int(total[0]), int(total[1])

    def step(self, number: int, changes: Changes, k: int, without: Rows, ended: Sequence[int] = ()) -> Answer | None:
        """Apply changes to a frontier and return its nearest rows; None if the frontier is not known here."""
        for old in ended:
            self._frontiers.pop(old, None)
        if changes.whole:
            self._frontiers[number] = _Known(self._new_frontier())
        known = self._frontiers.get(number)
        if known is None:
            return None
        self._apply(known, changes)
        found = known.frontier.nearest(k, without=without - self._first)
        return self._answer(known, found)

    def _apply(self, known: _Known, changes: Changes) -> None:
        frontier = known.frontier
        self._cover(known, changes.rows, whole=changes.whole)
        # Close first and open last, so that nothing is computed unnecessarily.
        frontier.retire(changes.closed - self._first)
        if len(changes.removed):
            frontier.remove(changes.removed - _OUTSIDE)
            for key in changes.removed.tolist():
                del known.vectors[key]
        if len(changes.keys):
            frontier.add(changes.keys - _OUTSIDE, changes.vectors)
            known.vectors.update(zip(changes.keys.tolist(), changes.vectors, strict=True))
        if len(changes.opened):
            frontier.restore(changes.opened - self._first)

    def _cover(self, known: _Known, rows: int, *, whole: bool) -> None:
        """Limit a frontier to the rows that it has been told about."""
        there = len(self._stored())
        rows = min(rows - self._first, there)
        if not whole and rows == known.rows:
            return
        if not whole:
            known.frontier.extend()
            known.frontier.restore(np.arange(known.rows, rows))
        known.frontier.retire(np.arange(rows, there))
        known.rows = rows

    def _answer(self, known: _Known, found: Nearest) -> Answer:
        vectors = dense_vectors(self._stored().take(found.rows))
        keys = found.sources + _OUTSIDE
        sources = np.array([known.vectors[key] for key in keys.tolist()], np.float32).reshape(vectors.shape)
        # Different squares may have the same root, so the merge needs the squares, as the kernel defines them.
        squares = ((vectors.astype(np.float64) - sources.astype(np.float64)) ** 2).sum(axis=1)
        small = vectors.nbytes <= _VECTOR_BYTES
        return Answer(found.rows + self._first, squares, found.distances, keys, vectors if small else None)

    def _new_frontier(self) -> Frontier:
        from activecover.frontier._choose import choose_frontier

        frontier = choose_frontier(self._stored(), self._backend)
        if not frontier.exact:
            raise InputError(f"backend {self._backend!r} is approximate: shards need an exact one")
        return frontier

    def _read(self) -> PieceRows:
        if self._table is None:
            self._table = read_pieces(self._pieces, self._layout)
        return self._table

    def _stored(self) -> Pool:
        assert self._pool is not None, "call build first"
        return self._pool
