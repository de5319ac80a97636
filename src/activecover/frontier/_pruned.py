"""The backend for tens to hundreds of dimensions, one positive at a time: a scan that mostly looks away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from activecover.frontier import _pruned_kernel as kernel
from activecover.frontier._base import Rows, RowsLike
from activecover.frontier._exact import ExactFrontier
from activecover.parallel import for_each, thread_count
from activecover.pool import Pool, blocks

_FIRST = 8
_PREFIX = 40
_SAMPLE = 20_000
#: With more new positives than this at once, blocked products are quicker.
MOST_SCANS = 12


@dataclass(slots=True)
class _Rotation:
    """Leading principal axes: a short prefix of the rotated coordinates carries most of a distance."""

    centre: npt.NDArray[np.float64]
    axes: npt.NDArray[np.float32]
    #: The rotated coordinates of a row err by at most this, relative to its distance from the centre.
    error: float

    @classmethod
    def of(cls, vectors: npt.NDArray[np.float32], rows: Rows, width: int) -> _Rotation:
        sample = vectors[rows[:: max(1, len(rows) // _SAMPLE)]].astype(np.float64)
        centre = sample.mean(axis=0)
        _, axes = np.linalg.eigh((sample - centre).T @ (sample - centre))
        dimensions = vectors.shape[1]
        # Rounding of the axes, of the centred row, and of a float32 product of so many terms.
        unit = 2.0**-24
        error = np.sqrt(width) * (dimensions + 8) * unit * 1.01
        return cls(centre, np.ascontiguousarray(axes[:, ::-1][:, :width], np.float32), float(error))

    def apply(self, vectors: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
        """Rotated coordinates of rows, and their distances from the centre."""
        centred = vectors.astype(np.float64) - self.centre
        return centred.astype(np.float32) @ self.axes, np.sqrt((centred**2).sum(axis=1))


class PrunedFrontier(ExactFrontier):
    """The exact frontier for single positives among many rows of tens to hundreds of dimensions.

    Rows are rotated once so that a few coordinates carry most of every distance. A new positive scans
    those few coordinates of all rows; only where the sum so far could still beat the row's present
    distance is the exact distance computed. Batches of positives go through blocked products.

    Parameters
    ----------
    pool : Pool
        The rows; those that were withdrawn are closed from the start.

    Notes
    -----
    Beside the pool it holds 40 float32 coordinates per row (fewer in fewer dimensions).

    Examples
    --------
    >>> import numpy as np
    >>> frontier = PrunedFrontier(Pool([[0.0], [1.0], [5.0], [6.5]]))
    >>> frontier.add([0], np.array([[0.0]], dtype=np.float32))
    >>> frontier.retire([0])
    >>> frontier.nearest(2).rows
    array([1, 2])
    """

    def __init__(self, pool: Pool) -> None:
        self._ready = False
        super().__init__(pool)
        self._rotate()

    def retire(self, rows: RowsLike) -> None:
        super().retire(rows)
        self._limit(np.asarray(rows, np.int64))

    def restore(self, rows: RowsLike) -> None:
        super().restore(rows)
        self._limit(np.asarray(rows, np.int64))

    def extend(self) -> None:
        was_ready, self._ready = self._ready, False
        super().extend()
        if was_ready:
            self._rotate()

    def _rotate(self) -> None:
        """Rotate all rows that are not erased."""
        total, dimensions = len(self._pool), self._pool.dimensions
        width = min(_PREFIX, dimensions)
        rows = np.flatnonzero(~self._pool.withdrawn)
        self._rotation = _Rotation.of(self._pool.vectors, rows, width) if len(rows) else None
        lead = min(_FIRST, width)
        self._first = np.zeros((lead, total), np.float32)
        self._rest = np.zeros((total, width - lead), np.float32)
        lengths = np.zeros(total)
        for block in blocks(len(rows), dimensions * 8):
            assert self._rotation is not None
            rotated, lengths[rows[block]] = self._rotation.apply(self._pool.vectors[rows[block]])
            self._first[:, rows[block]] = rotated[:, :lead].T
            self._rest[rows[block]] = rotated[:, lead:]
        self._lengths = lengths
        self._reach = float(lengths.max(initial=0.0))
        self._limits = np.empty(total, np.float32)
        self._changed = np.empty(total, np.int64)
        self._ready = True
        self._reset_limits()

    def _reset_limits(self) -> None:
        """The error of a distance has a part of each end: the row's, and the farthest positive's."""
        error = self._rotation.error if self._rotation is not None else 0.0
        self._errors = error * (self._lengths + self._reach)
        self._limit(np.arange(len(self._limits)))

    def _limit(self, rows: Rows) -> None:
        if self._ready:
            kernel.set_limits(rows, self._values, self._open, self._errors, self._limits)

    def _recompute(self, rows: Rows) -> None:
        # These rows have lost their distances, and with them their limits: products know no limits.
        ready, self._ready = self._ready, False
        super()._recompute(rows)
        self._ready = ready
        self._limit(rows)

    def _improve(self, rows: Rows | None, new: slice) -> None:
        keys = self._known.keys[new]
        if not self._ready or len(keys) > MOST_SCANS:
            super()._improve(rows, new)
            self._limit(np.arange(len(self._open)) if rows is None else rows)
            return
        positives = self._known.vectors[new]
        for place in range(len(keys)):
            self._scan(positives, place, int(keys[place]))

    def _scan(self, positives: npt.NDArray[np.float32], place: int, key: int) -> None:
        assert self._rotation is not None
        rotated, length = self._rotation.apply(positives[place : place + 1])
        if length[0] > self._reach:
            self._reach = float(length[0])
            self._reset_limits()
        point = rotated[0]
        total = len(self._open)
        step = -(-total // thread_count())
        vectors = np.asarray(self._pool.vectors)

        def work(start: int) -> None:
            stop = min(start + step, total)
            count = kernel.scan(
                vectors, self._first, self._rest, self._limits, start, stop, point, positives, place, key,
                self._plan, self._values, self._sources, self._changed,
            )  # fmt: skip
            kernel.set_limits(
                self._changed[start : start + count], self._values, self._open, self._errors, self._limits
            )

        for_each(work, list(range(0, total, step)))
