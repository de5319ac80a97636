"""Exploration: a seeded random order of the pool, of which the first rows are the sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError

Rows = npt.NDArray[np.int64]

_AFTER_A_GIVEN_SAMPLE = 1
_STRIDE = 1024


@dataclass(frozen=True, slots=True)
class FreeRows:
    """The rows that may be proposed: open, and not held. Made at each ask, so it costs no pass over the pool."""

    closed: npt.NDArray[np.bool_]
    held: Rows
    count: int

    def among(self, rows: Rows) -> Rows:
        """Those of some rows that are free, in their order."""
        found = rows[~self.closed[rows]]
        return found[~np.isin(found, self.held)] if len(self.held) else found

    def all(self) -> Rows:
        """Every free row, ascending: a pass over the pool."""
        return self.among(np.arange(len(self.closed)))

    def without(self, rows: Rows) -> FreeRows:
        """As this, with some more rows held."""
        if not len(rows):
            return self
        return FreeRows(self.closed, np.concatenate([self.held, rows]), self.count - len(rows))


class Exploration:
    """Random rows to begin with, and more of them for as long as nobody is positive.

    Every row draws a number from a stream keyed by the seed; the rows are ordered by it. The stream of
    a larger pool begins with that of a smaller one, so that rows added later fall in fairly.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to sample, or which (a stratified sample, say).
    seed : int
        Of the order.
    """

    def __init__(self, explore: int | Sequence[int], seed: int) -> None:
        self.explore = explore
        self.seed = seed

    def begin(self, rows: int) -> Self:
        """Draw the order of a pool of so many rows."""
        counted = isinstance(self.explore, int | np.integer)
        # A sample that was given may have been drawn with the same seed: what follows it must not repeat
        # its stream.
        stream = np.random.Philox(key=self.seed if counted else [self.seed % 2**64, _AFTER_A_GIVEN_SAMPLE])
        order = np.argsort(np.random.Generator(stream).random(rows), kind="stable")
        if isinstance(self.explore, int | np.integer):
            if self.explore < 0:
                raise InputError(f"cannot explore {self.explore} rows: give a number from 0")
            self._size = min(int(self.explore), rows)
        else:
            chosen = check_sample(self.explore, rows)
            order = np.concatenate([chosen, order[~np.isin(order, chosen)]])
            self._size = len(chosen)
        self._order: Rows = order
        self.rewind()
        return self

    @property
    def size(self) -> int:
        """How many rows the sample has."""
        return self._size

    def rewind(self) -> None:
        """Rows may have become free again: look from the start."""
        self._passed = 0

    def sample(self, k: int, free: FreeRows) -> Rows:
        """The next ``k`` free rows of the sample; fewer, and at last none, when it is through."""
        return free.among(self._order[self._passed : self._size])[:k]

    def order(self) -> Rows:
        """All rows, in the order in which they would be drawn."""
        return self._order

    def on(self, k: int, free: FreeRows) -> Rows:
        """The next ``k`` free rows, past the sample where need be."""
        found: list[Rows] = []
        missing, at = k, self._passed
        while missing > 0 and at < len(self._order):
            part = self._order[at : at + max(4096, missing)]
            chosen = free.among(part)[:missing]
            found.append(chosen)
            missing -= len(chosen)
            at += len(part)
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def skip_closed(self, closed: npt.NDArray[np.bool_]) -> None:
        """Remember how far the order is closed for good, so that it is not walked again."""
        while self._passed < len(self._order):
            part = closed[self._order[self._passed : self._passed + _STRIDE]]
            if not part.all():
                self._passed += int(part.argmin())
                return
            self._passed += len(part)


def check_sample(chosen: Sequence[int] | Rows, rows: int) -> Rows:
    """Rows that somebody chose to explore, checked to be different rows of a pool of ``rows``."""
    sample = np.asarray(chosen, np.int64)
    if len(np.unique(sample)) != len(sample) or (len(sample) and not 0 <= sample.min() <= sample.max() < rows):
        raise InputError("the rows to explore must be different rows of the pool")
    return sample


def stratified_sample(strata: Sequence[Any] | npt.NDArray[Any], size: int, seed: int) -> Rows:
    """Draw rows at random with every stratum present in proportion (largest remainders).

    Examples
    --------
    >>> rows = stratified_sample(["a"] * 6 + ["b"] * 3, 3, seed=0)
    >>> sorted((rows >= 6).tolist())
    [False, False, True]
    """
    names, codes, counts = np.unique(np.asarray(strata), return_inverse=True, return_counts=True)
    if not 0 <= size <= len(codes):
        raise InputError(f"cannot draw {size} of {len(codes)} rows")
    random = np.random.Generator(np.random.Philox(key=seed))
    share = counts * size / len(codes)
    take = np.floor(share).astype(np.int64)
    # Equal remainders are common (equal classes): chance, not the alphabet, decides among them.
    by_remainder = np.lexsort((random.random(len(names)), -(share - take)))
    take[by_remainder[: size - int(take.sum())]] += 1
    keys = random.random(len(codes))
    rows = [np.flatnonzero(codes == code) for code in range(len(names))]
    chosen = [members[np.argsort(keys[members])[:count]] for members, count in zip(rows, take, strict=True)]
    sample: Rows = np.concatenate(chosen)
    return sample[np.argsort(keys[sample])]
