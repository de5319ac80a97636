"""What people would use in place of a frontier, each at its best and with the same number of threads.

A rival is told the answer for a row and says which row is the nearest to a positive now. What counts is the work that a
step cannot do without; where a rival would have to do more to be right, it is spared that.
"""

from __future__ import annotations

import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_info, threadpool_limits

Vectors = npt.NDArray[np.float32]


class Rival(ABC):
    """One way to find the next row; ``tell`` is what is timed."""

    name: str

    @abstractmethod
    def tell(self, row: int, positive: bool) -> int:
        """Take an answer in, and give back the next row."""


class RunningMinimum(Rival):
    """NumPy in float32: a product with the new positive, a running minimum, its smallest value."""

    name = "NumPy, running minimum in float32"

    def __init__(self, points: Vectors) -> None:
        self._points = points
        self._squares = np.einsum("ij,ij->i", points, points)
        self._nearest = np.full(len(points), np.inf, np.float32)

    def tell(self, row: int, positive: bool) -> int:
        if positive:
            distances = self._points @ (np.float32(-2) * self._points[row])
            distances += self._squares
            distances += self._points[row] @ self._points[row]
            np.minimum(self._nearest, distances, out=self._nearest)
        # Infinitely far from everything that comes.
        self._squares[row] = self._nearest[row] = np.inf
        return int(self._nearest.argmin())


class Faiss(Rival):
    """A flat FAISS index, asked for the nearest neighbour of the new positive only.

    That is less than is needed: the nearest row may be closed, and it is not compared with those of earlier positives.
    With one shard a single query runs on one thread whatever FAISS is given; with one shard per thread on all of them.
    """

    def __init__(self, points: Vectors, shards: int) -> None:
        import faiss

        self.name = f"FAISS, flat, {shards} shard{'s' if shards > 1 else ''}"
        self._points = points
        self._last = 0
        # FAISS has no types of its own that fit.
        self._index: Any = faiss.IndexFlatL2(points.shape[1])
        if shards == 1:
            self._index.add(points)
            return
        sharded: Any = faiss.IndexShards
        self._index = sharded(points.shape[1], True, True)
        self._parts = [faiss.IndexFlatL2(points.shape[1]) for _ in range(shards)]
        for part, rows in zip(self._parts, np.array_split(points, shards), strict=True):
            part.add(np.ascontiguousarray(rows))
            self._index.add_shard(part)

    def tell(self, row: int, positive: bool) -> int:
        if positive:
            _, found = self._index.search(self._points[row : row + 1], 2)
            # The row itself is its own nearest neighbour.
            self._last = int(found[0, 1] if found[0, 0] == row else found[0, 0])
        return self._last


def rivals(points: Vectors, threads: int) -> Iterator[Rival]:
    """All of them, one at a time: each may keep a copy of the points."""
    yield RunningMinimum(points)
    try:
        import faiss
    except ImportError:
        return
    faiss.omp_set_num_threads(threads)
    for shards in sorted({1, threads}):
        yield Faiss(points, shards)


@contextmanager
def threads_for_all(threads: int) -> Iterator[None]:
    """The same number of threads for ours, BLAS, OpenMP and FAISS."""
    names = ("ACTIVECOVER_THREADS", "OMP_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(threads)))
    try:
        with threadpool_limits(limits=threads):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def versions() -> str:
    """What was compared, in one line."""
    parts = [f"Python {platform.python_version()}", f"NumPy {np.__version__}"]
    parts += sorted({
        f"{one['internal_api']} {one.get('version')} ({one.get('architecture')})"
        for one in threadpool_info() if one.get("user_api") == "blas"
    })  # fmt: skip
    try:
        import faiss

        parts.append(f"FAISS {faiss.__version__}")
    except ImportError:
        parts.append("no FAISS")
    return ", ".join(parts)
