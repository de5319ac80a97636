"""The frontier's contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.pool import Pool, Vectors

#: Where a key is expected and there is none.
NO_KEY = int(np.iinfo(np.int64).min)

Rows = npt.NDArray[np.int64]
RowsLike = Sequence[int] | npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Nearest:
    """Rows in the order in which to ask for them, how far each is, and from which positive."""

    rows: Rows
    distances: npt.NDArray[np.float64]
    sources: npt.NDArray[np.int64]


class Frontier(ABC):
    """The open rows of a pool, ordered by distance to the nearest positive.

    Rules for implementers (``activecover.testing.check_frontier`` holds them all):

    - The distance of two rows is that of the pool's stored values: differences squared and summed in
      float64 by the shared kernel (of sparse rows: in the order of their columns), or the share of bits
      that are not in common. Anything faster may only filter.
    - Rows come by ascending distance, ties by the lower row. Among equally near positives the one with
      the lower key is the source.
    - The order of ``add``, ``remove``, ``retire`` and ``restore`` never shows: the state is that of the
      sets of positives and open rows.
    - ``nearest`` changes nothing, and ``nearest(k)`` is ``k`` times ``nearest(1)`` with the row so found
      retired in between.
    - A closed row's vector is never read, so that it may have been erased. A positive of the pool that
      is erased is one no more, as if it had been removed.
    - Calls may come from several threads.
    - An approximate frontier sets ``exact = False`` and says so by name.

    A positive's key is its row number if it lies in the pool and a negative number of the caller's
    choice if it does not.
    """

    exact: ClassVar[bool] = True
    #: The kind of pools that it serves: dense, sparse or bits.
    kind: ClassVar[str] = "dense"

    @property
    @abstractmethod
    def positives(self) -> int:
        """How many positives there are."""

    @abstractmethod
    def add(self, keys: RowsLike, vectors: Vectors) -> None:
        """Add positives by key, with vectors as the pool stores (or encodes) them."""

    @abstractmethod
    def remove(self, keys: RowsLike) -> None:
        """Take positives back, as if they had never been added."""

    @abstractmethod
    def retire(self, rows: RowsLike) -> None:
        """Close rows: they are not proposed any more, and their vectors not read."""

    @abstractmethod
    def restore(self, rows: RowsLike) -> None:
        """Open closed rows again."""

    @abstractmethod
    def extend(self) -> None:
        """Take in the rows by which the pool has grown."""

    @abstractmethod
    def nearest(self, k: int, without: RowsLike = ()) -> Nearest:
        """The ``k`` open rows nearest to any positive, leaving out some; fewer where fewer are left.

        With no positive there is no nearest row: the answer is empty.
        """


def new_keys(keys: RowsLike, known: Container[int]) -> Rows:
    """The keys of positives to add; one that is known already, or given twice, is refused."""
    added = np.asarray(keys, np.int64)
    if len(np.unique(added)) != len(added) or any(key in known for key in added.tolist()):
        raise InputError("a positive can be added only once: remove it before adding it again")
    return added


def known_keys(keys: RowsLike, known: Container[int]) -> Rows:
    """The keys of positives to remove; one that is not known is refused."""
    gone = np.asarray(keys, np.int64)
    for key in gone.tolist():
        if key not in known:
            raise InputError(f"positive {key} is not known here")
    return gone


def check_kind(served: str, pool: Pool, name: str) -> None:
    """Refuse a pool of a kind that a frontier does not serve."""
    if served != pool.kind:
        raise InputError(f"frontier {name!r} serves {served!r} pools, and this one is {pool.kind!r}: use 'auto'")
