"""A pool whose vectors are held by shards and not by this process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError, check_count
from activecover.frontier._base import Rows
from activecover.frontier.ray._actors import Shards
from activecover.frontier.ray._connect import connect, import_ray
from activecover.frontier.ray._files import Layout, cut, find_files
from activecover.frontier.ray._shard import ShardSummary, StoredMatrix
from activecover.pool import DenseMatrix, DenseVectors, Matrix, Pool, VectorsLike, as_matrix, origin_of

#: Bytes of vectors to keep of proposed rows, which may turn out positive.
_KEPT_BYTES = 1 << 24
_METRICS = ("euclidean", "cosine")
_PATIENCE = 1800.0


class ShardedPool(Pool):
    """A pool spread over the processes of a Ray cluster, each of which reads its own part of the files.

    Values are stored, and distances computed, exactly as in a :class:`~activecover.pool.Pool` of the same files: the
    shards exchange the range of every column before they store a row.
    :class:`~activecover.learners.ExploreCommit`, :class:`~activecover.Campaign` and
    :func:`~activecover.simulate_one` accept it in place of a pool. Learners that need all vectors at once
    (the one-class baselines) do not.

    Parameters
    ----------
    sources : path, address, or sequence of them
        ``.npy`` or Parquet files, local or in any storage that fsspec knows (``s3://bucket/part-*.npy``).
        Patterns are expanded in alphabetical order. All nodes must be able to read the files.
    shards : int, optional
        Number of shards; one per processor of the cluster by default.
    metric : {"euclidean", "cosine"}
        The distance between two rows.
    columns, id_col, label_col, content_cols : optional
        Columns of Parquet files: vectors (by default all numeric ones except id and label), ids (row numbers by
        default; ids are held by this process), labels (left out), and what to show to a person.
    storage_options : mapping, optional
        Options for fsspec, such as keys and endpoints; better set in the environment of the nodes.
    address : str, optional
        The cluster, as in :func:`connect`.
    backend : str
        The exact frontier that shards use.
    actor_options : mapping, optional
        Options of the Ray actors, such as ``{"num_cpus": 4}`` (then a shard uses four threads) or
        ``{"memory": 12 << 30}`` (then Ray counts it).
    patience : float
        Seconds to wait for a shard's answer, including the time to read its files.

    Notes
    -----
    Rows added with :meth:`extend` go to the last shard. As there is no file to read them from again, this process
    keeps them too.
    """

    def __init__(
        self,
        sources: str | Path | Sequence[str | Path],
        *,
        shards: int | None = None,
        metric: str = "euclidean",
        columns: Sequence[str] | None = None,
        id_col: str | None = None,
        label_col: str | None = None,
        content_cols: Sequence[str] = (),
        storage_options: Mapping[str, Any] | None = None,
        address: str | None = None,
        backend: str = "auto",
        actor_options: Mapping[str, Any] | None = None,
        patience: float = _PATIENCE,
    ) -> None:
        check_count("shards", shards)
        if metric not in _METRICS:
            raise InputError(f"metric {metric!r}: a pool in shards supports {' and '.join(_METRICS)}")
        if not patience > 0:
            raise InputError(f"patience {patience!r}: give a number of seconds above 0")
        vector_columns = None if columns is None else tuple(columns)
        layout = Layout(vector_columns, id_col, label_col, tuple(content_cols), dict(storage_options or {}))
        connect(address)
        parts = cut(find_files(sources, layout), shards or _processors())
        group = Shards(parts, layout, backend=backend, options=actor_options or {}, patience=patience)
        try:
            self._sharded, ids = _open(group, metric)
            super().__init__(self._sharded, ids=ids, metric=metric)
        except BaseException:
            group.close()
            raise
        #: Numbers of deleted frontiers that the shards have not been told about.
        self.ended_frontiers: list[int] = []
        self._content_cols = layout.content_cols
        self._added_contents: dict[int, dict[str, Any]] = {}

    def __repr__(self) -> str:
        count = len(self.shards)
        return f"<ShardedPool: {len(self):,} rows x {self.dimensions}, {self.metric}, {count} shards>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def shards(self) -> Shards:
        """The processes that hold the rows."""
        return self._sharded.shards

    def close(self) -> None:
        """End the shards' processes; the cluster keeps running."""
        self.shards.close()

    def content(self, row: int) -> dict[str, Any]:
        """What to show a person for one row, read from its shard."""
        if row in self._added_contents:
            return self._added_contents[row]
        if not self._content_cols:
            return {}
        ((shard, _),) = self.shards.split(np.array([row])).items()
        found: dict[str, Any] = self.shards.call("content", {shard: (int(row),)})[shard]
        return found

    def extend(
        self,
        vectors: VectorsLike,
        *,
        ids: Sequence[str] | None = None,
        contents: Mapping[str, Sequence[Any]] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Add rows at the end, to the last shard, and return their numbers."""
        columns = {name: list(values) for name, values in (contents or {}).items()}
        count = len(as_matrix(vectors))
        if set(columns) != set(self._content_cols) or any(len(values) != count for values in columns.values()):
            raise InputError(f"added rows need the pool's content columns: {sorted(self._content_cols) or 'none'}")
        rows = super().extend(vectors, ids=ids)
        if columns:
            for place, row in enumerate(rows.tolist()):
                self._added_contents[row] = {name: values[place] for name, values in columns.items()}
        return rows

    def withdraw(self, rows: npt.ArrayLike) -> None:
        """Erase rows in their shards and here; the original files are not changed."""
        super().withdraw(rows)
        for row in np.atleast_1d(np.asarray(rows)).tolist():
            if row in self._added_contents:
                self._added_contents[row] = dict.fromkeys(self._content_cols)

    def without(self, rows: npt.ArrayLike) -> Pool:
        """Not supported: a pool in shards has only one copy of its rows."""
        raise InputError("a pool in shards cannot be copied: withdraw erases rows in place")

    def check_dense(self, who: str) -> None:
        """Refuse, on behalf of something that needs all vectors in memory."""
        raise InputError(
            f"{who} needs all vectors in memory, and this pool is in shards: use explore-commit or offline"
        )

    def fingerprint(self, rows: int | None = None, *, contents: bool = False) -> dict[str, str]:
        """Hashes of the first ``rows`` ids and vectors, independent of how they are spread over shards.

        They differ from those of an ordinary pool, whose vectors are hashed in sequence. Contents are not hashed, as
        they stay in their files, which are never read as a whole.
        """
        count = len(self) if rows is None else rows
        names = hashlib.blake2b(digest_size=16)
        names.update(f"sharded:{self.metric}:{self.dimensions}:{count}\n".encode())
        names.update(self.origin.tobytes())
        if self._names is not None:
            names.update("\0".join(self._names[:count]).encode())
        sums = self.shards.call("digest", dict.fromkeys(range(len(self.shards)), (count,))).values()
        totals = [sum(part) % 2**64 for part in zip(*sums, strict=True)]
        return {"ids": names.hexdigest(), "vectors": "".join(f"{total:016x}" for total in totals)}

    def remember(self, rows: Rows, vectors: npt.NDArray[np.float32]) -> None:
        """Keep the vectors of proposed rows, since :meth:`take` will be called for the positive ones."""
        self._sharded.remember(rows, vectors)

    def forget(self, rows: Rows) -> None:
        """Drop vectors kept by :meth:`remember`, once their rows are closed."""
        self._sharded.forget(rows)


class ShardedMatrix(Matrix[DenseVectors]):
    """What the driver holds of the vectors: their origin, and the few that may be needed next."""

    kind = "sharded"

    def __init__(self, shards: Shards, metric: str, origin: npt.NDArray[np.float32]) -> None:
        self.shards = shards
        self.origin, self.dimensions = origin, len(origin)
        self._rows, self._metric = shards.rows, metric
        self._encoder = StoredMatrix(np.zeros((0, self.dimensions), np.float32), metric, origin)
        self._kept: dict[int, npt.NDArray[np.float32]] = {}
        self._most = max(1, _KEPT_BYTES // (4 * self.dimensions))

    def __len__(self) -> int:
        return self._rows

    @property
    def vectors(self) -> DenseVectors:
        raise InputError(
            "the vectors of a pool in shards are not in this process: use the frontier 'ray', or take some rows"
        )

    def take(self, rows: Rows) -> npt.NDArray[np.float32]:
        taken = np.empty((len(rows), self.dimensions), np.float32)
        places = rows.tolist()
        missing = np.array([place for place, row in enumerate(places) if row not in self._kept], np.int64)
        if len(missing):
            away = rows[missing]
            if not 0 <= away.min() <= away.max() < self._rows:
                raise IndexError(f"a row lies outside the pool of {self._rows} rows")
            masks = self.shards.split(away)
            answers = self.shards.call("take", {shard: (away[mask],) for shard, mask in masks.items()})
            for shard, mask in masks.items():
                taken[missing[mask]] = answers[shard]
        gone = set(missing.tolist())
        for place, row in enumerate(places):
            if place not in gone:
                taken[place] = self._kept[row]
        return taken

    def encode(self, given: VectorsLike) -> npt.NDArray[np.float32]:
        return self._encoder.encode(given)

    def append(self, encoded: npt.NDArray[np.float32]) -> None:
        self.shards.extend(encoded)
        self._rows += len(encoded)

    def erase(self, rows: Rows) -> None:
        self.forget(rows)
        self.shards.withdraw(rows)

    def copy(self) -> Self:
        raise InputError("a pool in shards cannot be copied")

    def part(self, rows: Rows) -> Matrix[DenseVectors]:
        return DenseMatrix.restored(self.take(rows), self.origin, self._metric, None)

    def chunks(self, vectors: npt.NDArray[np.float32], count: int) -> Iterator[bytes]:
        return self._encoder.chunks(vectors, count)

    def remember(self, rows: Rows, vectors: npt.NDArray[np.float32]) -> None:
        for row, vector in zip(rows.tolist(), vectors, strict=True):
            self._kept.pop(row, None)
            self._kept[row] = vector
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]

    def forget(self, rows: Rows) -> None:
        for row in rows.tolist():
            self._kept.pop(row, None)


def _open(shards: Shards, metric: str) -> tuple[ShardedMatrix, list[str] | None]:
    """Let all shards read their rows, combine their column ranges, and let them store the rows."""
    answers = shards.call("summary", dict.fromkeys(range(len(shards)), ()))
    summaries: list[ShardSummary] = [answers[shard] for shard in range(len(shards))]
    widths = {len(summary.low) for summary in summaries}
    if len(widths) > 1:
        raise InputError(f"the files differ in their number of vector columns: {sorted(widths)}")
    low = np.min([summary.low for summary in summaries], axis=0)
    high = np.max([summary.high for summary in summaries], axis=0)
    origin = origin_of(low, high) if metric == "euclidean" else np.zeros(len(low), np.float32)
    shards.build(metric, origin)
    if summaries[0].ids is None:
        return ShardedMatrix(shards, metric, origin), None
    return ShardedMatrix(shards, metric, origin), [name for summary in summaries for name in summary.ids or ()]


def _processors() -> int:
    return max(1, int(import_ray().cluster_resources().get("CPU", 1)))
