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

#: The key of a row that has no nearest positive.
NO_KEY = int(np.iinfo(np.int64).min)

Rows = npt.NDArray[np.int64]
RowsLike = Sequence[int] | npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Nearest:
    """Rows in the order to ask for them, their distances, and the positive that each is nearest to."""

    rows: Rows
    distances: npt.NDArray[np.float64]
    sources: npt.NDArray[np.int64]


class Frontier(ABC):
    """The open rows of a pool, ordered by distance to the nearest positive.

    Rules for implementers (``activecover.testing.check_frontier`` tests them all):

    - The distance between two rows is computed from the pool's stored values: differences squared and summed in
      float64 by the shared kernel (for sparse rows, in the order of their columns), or the fraction of bits that
      are not in common. Faster methods may only be used as filters.
    - Rows are returned in order of distance, ties by the lower row. Among equally near positives the source is the
      one with the lower key.
    - The order of calls to ``add``, ``remove``, ``retire`` and ``restore`` has no effect: the state depends only on
      the sets of positives and open rows.
    - ``nearest`` changes nothing, and ``nearest(k)`` equals ``k`` calls of ``nearest(1)``, each followed by
      retiring the row found.
    - The vector of a closed row is never read, since it may have been erased. A positive of the pool that is erased
      stops being one, as if it had been removed.
    - Methods may be called from several threads.
    - An approximate frontier sets ``exact = False``, and its name says that it is approximate.

    A positive's key is its row number if it is in the pool, or a negative number of the caller's choice if it is
    not.
    """

    exact: ClassVar[bool] = True
    #: The kind of pool that it supports: dense, sparse or bits.
    kind: ClassVar[str] = "dense"

    @property
    @abstractmethod
    def positives(self) -> int:
        """Number of positives."""

    @abstractmethod
    def add(self, keys: RowsLike, vectors: Vectors) -> None:
        """Add positives by key, with vectors as stored or encoded by the pool."""

    @abstractmethod
    def remove(self, keys: RowsLike) -> None:
        """Remove positives, as if they had never been added."""

    @abstractmethod
    def retire(self, rows: RowsLike) -> None:
        """Close rows: they are no longer proposed, and their vectors no longer read."""

    @abstractmethod
    def restore(self, rows: RowsLike) -> None:
        """Reopen closed rows."""

    @abstractmethod
    def extend(self) -> None:
        """Include the rows that were added to the pool."""

    @abstractmethod
    def nearest(self, k: int, without: RowsLike = ()) -> Nearest:
        """The ``k`` open rows nearest to any positive, except those in ``without``; fewer if fewer are left.

        The result is empty if there are no positives.
        """


def new_keys(keys: RowsLike, known: Container[int]) -> Rows:
    """The keys of positives to add; one that is already known, or repeated, is refused."""
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
    """Refuse a pool of a kind that the frontier does not support."""
    if served != pool.kind:
        raise InputError(
            f"frontier {name!r} needs a pool of kind {served!r}, but this one is {pool.kind!r}: use 'auto'"
        )
