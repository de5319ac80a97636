"""A small interface to FAISS: the rows of a pool that are probably nearest to some vectors."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Protocol

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.extras import require
from activecover.frontier._base import Rows
from activecover.parallel import one_blas_thread
from activecover.pool import Pool, blocks, dense_vectors

STRUCTURES = ("hnsw", "ivf")
_LINKS = 24
_BUILD_EFFORT = 100
_LEAST_EFFORT = 64
_LEAST_CELLS = 48
_TRAINING_ROWS_PER_CELL = 64
_PROBES = 32
#: Vectors per search. From 20 on, FAISS finds cells by matrix products, which round differently; the result for one
#: vector must not depend on how many others are searched with it.
FEW = 16


class FaissIndex(Protocol):
    """The part of ``faiss.Index`` used here."""

    d: int
    ntotal: int
    metric_type: int

    def add(self, vectors: npt.NDArray[np.float32], /) -> None: ...

    def add_with_ids(self, vectors: npt.NDArray[np.float32], ids: Rows, /) -> None: ...

    def remove_ids(self, ids: Rows, /) -> int: ...

    def search(
        self, vectors: npt.NDArray[np.float32], k: int, /, *, params: object = None
    ) -> tuple[npt.NDArray[np.float32], Rows]: ...


def faiss_module() -> ModuleType:
    """The FAISS module, or an error that says how to install it."""
    return require("faiss", extra="faiss", purpose="approximate frontiers")


class RowIndex:
    """A FAISS index whose numbers are the rows of a pool.

    Parameters
    ----------
    index : faiss.Index
        The index.
    shift : array
        Added to the pool's stored values before searching or adding.
    deterministic : bool
        Add rows on one thread.
    wipeable : bool
        Whether the vectors of erased rows may be overwritten, because the index was built here.
    """

    def __init__(
        self,
        index: FaissIndex,
        *,
        shift: npt.NDArray[np.float32],
        deterministic: bool = True,
        wipeable: bool = False,
    ) -> None:
        self._faiss = faiss_module()
        self.index = index
        self._shift = shift
        #: The row of each number in the index, if they differ.
        self._rows: Rows | None = None
        self._deterministic = deterministic
        self._wipeable = wipeable
        self._outer = self._inner = self._faiss.downcast_index(index)
        if isinstance(self._outer, self._faiss.IndexIDMap):
            self._inner = self._faiss.downcast_index(self._outer.index)

    def __len__(self) -> int:
        return int(self.index.ntotal)

    def search(self, vectors: npt.NDArray[np.float32], k: int) -> tuple[Rows, npt.NDArray[np.float64]]:
        """Rows of ``k`` neighbours of each vector (-1 for none), and the approximate squared distance of the last."""
        parts = [
            self.index.search(part, min(k, len(self)), params=self._effort(k))
            for part in np.array_split(self._shifted(vectors), max(1, -(-len(vectors) // FEW)))
        ]
        values, found = (np.concatenate(both) for both in zip(*parts, strict=True))
        if self.index.metric_type == self._faiss.METRIC_INNER_PRODUCT:
            values = 2.0 - 2.0 * values
        far = np.where(found < 0, 0.0, values).max(axis=1, initial=0.0).astype(np.float64)
        if self._rows is not None:
            found = np.where(found < 0, -1, self._rows[found])
        return np.asarray(found, np.int64), far

    def add(self, rows: Rows, vectors: npt.NDArray[np.float32]) -> None:
        """Add rows."""
        with one_blas_thread() if self._deterministic else nullcontext():
            if isinstance(self._inner, self._faiss.IndexIVF) or self._inner is not self._outer:
                self.index.add_with_ids(self._shifted(vectors), rows)
                return
            # Other indexes number their entries themselves, and do not know about rows erased earlier.
            total = len(self)
            if self._rows is None and not np.array_equal(rows, np.arange(total, total + len(rows))):
                self._rows = np.arange(total)
            if self._rows is not None:
                self._rows = np.concatenate([self._rows, rows])
            self.index.add(self._shifted(vectors))

    def wipe(self, rows: Rows) -> None:
        """Overwrite the vectors of erased rows, if the index was built here."""
        if not self._wipeable or not len(rows):
            return
        if isinstance(self._inner, self._faiss.IndexIVF):
            self.index.remove_ids(np.asarray(rows, np.int64))
            return
        numbers = np.flatnonzero(np.isin(self._rows, rows)) if self._rows is not None else rows
        # A graph cannot lose a point that its paths run through, so the point takes the vector of a neighbour.
        flat = self._faiss.downcast_index(self._inner.storage)
        table = self._faiss.rev_swig_ptr(flat.get_xb(), len(self) * self.index.d).reshape(len(self), self.index.d)
        for number in numbers.tolist():
            near = self.index.search(table[number : number + 1].copy(), min(len(self), len(numbers) + 8))[1][0]
            others = near[(near >= 0) & ~np.isin(near, numbers)]
            table[number] = table[others[0]] if len(others) else 0.0

    def _shifted(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return np.ascontiguousarray(vectors + self._shift if self._shift.any() else vectors, np.float32)

    def _effort(self, k: int) -> object:
        if isinstance(self._inner, self._faiss.IndexHNSW):
            return self._faiss.SearchParametersHNSW(efSearch=max(_LEAST_EFFORT, k + k // 2))
        if isinstance(self._inner, self._faiss.IndexIVF):
            cells = self._inner.nlist
            # Enough cells for four times the neighbours wanted, if all are equally full.
            wanted = -(-4 * k * cells // max(1, len(self)))
            return self._faiss.SearchParametersIVF(nprobe=min(cells, max(_LEAST_CELLS, wanted)))
        return None


def build_index(pool: Pool, structure: str, *, deterministic: bool = True) -> RowIndex:
    """Build an index of the rows that are not erased."""
    faiss = faiss_module()
    rows = np.flatnonzero(~pool.withdrawn)
    none = np.zeros(pool.dimensions, np.float32)
    with one_blas_thread() if deterministic else nullcontext():
        if structure == "hnsw":
            index = faiss.IndexHNSWFlat(pool.dimensions, _LINKS)
            index.hnsw.efConstruction = _BUILD_EFFORT
        else:
            index = _trained_cells(faiss, pool, rows)
        made = RowIndex(index, shift=none, deterministic=deterministic, wipeable=True)
        whole = len(rows) == len(pool)
        # In one piece: a graph that is built piece by piece is a different one.
        for block in [slice(0, len(rows))] if structure == "hnsw" else blocks(len(rows), pool.dimensions * 4):
            if len(rows[block]):
                part = pool.vectors[block] if whole else pool.take(rows[block])
                made.add(rows[block], dense_vectors(part))
    return made


def adopt_index(pool: Pool, given: FaissIndex | str | Path) -> RowIndex:
    """Use an existing index, given as an object or a file, after checking it against the pool."""
    faiss = faiss_module()
    name = "the FAISS index"
    if isinstance(given, str | Path):
        name = str(given)
        if not Path(given).is_file():
            raise InputError(f"{name}: no such file")
        try:
            given = faiss.read_index(name)
        except RuntimeError as wrong:
            raise InputError(f"{name}: cannot be read as a FAISS index") from wrong
    if not isinstance(given, faiss.Index):
        raise InputError(f"index {type(given).__name__}: give a FAISS index, or the path of one")
    index = faiss.downcast_index(given)
    if (index.d, index.ntotal) != (pool.dimensions, len(pool)):
        raise InputError(
            f"{name} has {index.ntotal} vectors of {index.d} dimensions, the pool {len(pool)} of {pool.dimensions}"
        )
    if index.metric_type != faiss.METRIC_L2 and not (
        index.metric_type == faiss.METRIC_INNER_PRODUCT and pool.metric == "cosine"
    ):
        raise InputError(f"{name} does not use the pool's metric ({pool.metric}): build it with METRIC_L2")
    # An index made elsewhere holds the original values; one made from pool.vectors holds the stored ones.
    for shift in (pool.origin, np.zeros_like(pool.origin)):
        ready = RowIndex(given, shift=np.asarray(shift, np.float32))
        if _finds_rows(ready, pool):
            return ready
    raise InputError(f"{name}: its ids are not the pool's row numbers, or its vectors are not the pool's")


def _finds_rows(index: RowIndex, pool: Pool) -> bool:
    """Whether searching for rows' own vectors finds most of them (or a duplicate)."""
    rows = np.flatnonzero(~pool.withdrawn)
    probes = np.random.default_rng(0).choice(rows, min(_PROBES, len(rows)), replace=False) if len(rows) else rows
    stored = dense_vectors(pool.vectors)
    found, _ = index.search(stored[probes], 10)
    if found.size and (found.max() >= len(pool)):
        return False
    hits = sum(
        bool((stored[near[near >= 0]] == stored[row]).all(axis=1).any())
        for row, near in zip(probes, found, strict=True)
    )
    return 2 * hits >= len(probes)


def _trained_cells(faiss: ModuleType, pool: Pool, rows: Rows) -> FaissIndex:
    cells = max(1, min(round(4 * len(rows) ** 0.5), len(rows) // 39))
    centres = faiss.IndexFlatL2(pool.dimensions)
    index = faiss.IndexIVFFlat(centres, pool.dimensions, cells)
    index.own_fields = True
    centres.this.disown()
    index.cp.min_points_per_centroid = 1
    sample = rows[:: max(1, len(rows) // (_TRAINING_ROWS_PER_CELL * cells))]
    index.train(np.ascontiguousarray(pool.take(sample) if len(rows) else np.zeros((1, pool.dimensions), np.float32)))
    trained: FaissIndex = index
    return trained
