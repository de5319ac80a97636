"""The backend for tens to hundreds of dimensions: a scan that skips most of the rows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from activecover.frontier import _pruned_kernel as kernel
from activecover.frontier import distance
from activecover.frontier._base import Nearest, Rows, RowsLike
from activecover.frontier._exact import PRODUCT_BYTES, ExactFrontier
from activecover.frontier._locked import one_at_a_time
from activecover.frontier._scan import smallest
from activecover.parallel import for_each, thread_count
from activecover.pool import Pool, Vectors, blocks, dense_vectors, longer

_PREFIX = 40
_SAMPLE = 4096
#: Small blocks, as memory freed from large ones stays with the process for a long time.
_BLOCK_BYTES = 1 << 20
#: With more new positives than this at once, blocked products are faster.
MOST_SCANS = 24
#: Approximate number of rows to keep within reach, and the number that is too many.
_FRONT = 1024
_CROWD = 16 * _FRONT
_ROOM = 1 << 14
#: Parts of a scan per thread, and the fewest rows per part: a thread that finishes early takes another part.
_PARTS = 4
_LEAST_ROWS = 1 << 14
#: Rows to try the leading coordinates on, and the most pairs per row that they may leave undecided.
_TRIED = 256
_MOST_OPEN = 16
_BEYOND_NOTHING = np.float32(-1.0)
_FROM_NOTHING = np.float32(-0.5)


@dataclass(frozen=True, slots=True)
class _Rotation:
    """Leading principal axes, scaled so that nearly all rows lie in the unit ball.

    A few of the rotated coordinates carry most of a distance. They are clipped at one, which never increases a
    distance, so the distance between rotated points is at most the true one plus ``error``, a bound on rounding. If
    there are fewer dimensions than ``width``, the last coordinates are zero.
    """

    centre: npt.NDArray[np.float64]
    axes: npt.NDArray[np.float64]
    scale: float
    error: float

    @classmethod
    def of(cls, vectors: npt.NDArray[np.float32], width: int, half: bool) -> _Rotation:
        sample = vectors.astype(np.float64)
        centre = sample.mean(axis=0)
        sample -= centre
        _, axes = np.linalg.eigh(sample.T @ sample)
        scale = float(np.sqrt((sample**2).sum(axis=1).max())) or 1.0
        # Both points are rounded: a positive to float32, a row to float32 or float16 (near zero, to the nearest
        # multiple of 2**-24).
        error = 1.01 * np.sqrt(width) * ((2.0**-11 + 2.0**-25 if half else 2.0**-24) + 2.0**-24)
        wide = np.zeros((len(centre), width))
        wide[:, : axes.shape[1]] = axes[:, ::-1][:, :width] / scale
        return cls(centre, wide, scale, float(error))

    def apply(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Rotated coordinates of rows."""
        rotated = (vectors.astype(np.float64) - self.centre) @ self.axes
        return np.clip(rotated, -1.0, 1.0, out=rotated).astype(np.float32)


class PrunedFrontier(ExactFrontier):
    """The exact frontier for many rows of tens to hundreds of dimensions.

    Rows are rotated once so that a few coordinates carry most of every distance. A new positive is compared with
    those coordinates of all rows. A row that stays out of reach (beyond about the next thousand proposals) is not
    compared exactly; only a lower bound on its distance is kept, and the first positive it has not been compared
    with. It catches up when it comes within reach. Rows within reach are always exact. Batches of positives use
    blocked products.

    Parameters
    ----------
    pool : Pool
        The rows; withdrawn ones are closed from the start.
    half : bool
        Keep only the leading coordinates, in float16. This needs a quarter of the extra memory, for pools that are
        mapped from a file or barely fit. The results are the same.

    Notes
    -----
    Memory per row in addition to the pool: 185 bytes, or 41 with ``half``.

    Examples
    --------
    >>> import numpy as np
    >>> frontier = PrunedFrontier(Pool([[0.0], [1.0], [5.0], [6.5]]))
    >>> frontier.add([0], np.array([[0.0]], dtype=np.float32))
    >>> frontier.retire([0])
    >>> frontier.nearest(2).rows
    array([1, 2])
    """

    def __init__(self, pool: Pool, half: bool = False) -> None:
        self._lock = threading.RLock()
        self._half = half
        self._width = kernel.LEAD if half else max(kernel.LEAD, min(_PREFIX, pool.dimensions))
        self._rotation: _Rotation | None = None
        self._lead = np.zeros((kernel.LEAD, 0), np.uint16 if half else np.float32)
        self._rest = np.zeros((0, self._width - kernel.LEAD), np.float32)
        self._limits = np.zeros(0, np.float32)
        #: The first positive that each row has not been compared with; -1 if its value is exact.
        self._pending = np.zeros(0, np.int32)
        self._points = np.zeros((8, self._width), np.float32)
        #: Rows with limits up to this are exact and in the front, along with some that have been closed since.
        self._reach = _BEYOND_NOTHING
        self._front = np.zeros(0, np.int64)
        #: Number of rows asked for last time.
        self._wanted = 1
        self._entered = np.empty((_PARTS * thread_count(), _ROOM), np.int64)
        super().__init__(pool)

    @one_at_a_time
    def add(self, keys: RowsLike, vectors: Vectors) -> None:
        super().add(keys, vectors)

    @one_at_a_time
    def remove(self, keys: RowsLike) -> None:
        super().remove(keys)

    @one_at_a_time
    def retire(self, rows: RowsLike) -> None:
        super().retire(rows)
        chosen = np.asarray(rows, np.int64)
        self._limits[chosen] = -1.0
        self._pending[chosen] = -1

    @one_at_a_time
    def restore(self, rows: RowsLike) -> None:
        # Closed rows leave the front, so that none can be in it twice.
        self._candidates(np.zeros(0, np.int64))
        super().restore(rows)

    @one_at_a_time
    def extend(self) -> None:
        super().extend()

    @one_at_a_time
    def nearest(self, k: int, without: RowsLike = ()) -> Nearest:
        self._close_erased()
        self._wanted = k
        left_out = np.asarray(without, np.int64)
        rows = self._candidates(left_out)
        more = _FRONT
        while len(rows) < k and self._widen(k - len(rows) + more):
            rows = self._candidates(left_out)
            more *= 2
        rows = rows[smallest(self._values[rows], k)]
        return Nearest(rows, self._distances(self._values[rows]), self._sources[rows])

    # -- the front: rows within reach ------------------------------------------------------------

    def _candidates(self, left_out: Rows) -> Rows:
        """Open rows within reach, in ascending order."""
        is_open = self._open[self._front]
        if not is_open.all():
            self._front = self._front[is_open]
        return self._front[~np.isin(self._front, left_out)] if len(left_out) else self._front

    def _enter(self, rows: Rows) -> None:
        """Add rows that have come within reach to the front; reduce the reach if there are too many."""
        if len(rows):
            self._set_front(np.sort(np.concatenate([self._front, rows])))

    def _set_front(self, rows: Rows) -> None:
        self._front = rows
        if len(rows) > _CROWD:
            limits = self._limits[rows]
            self._reach = np.partition(limits, 2 * _FRONT)[2 * _FRONT]
            self._front = rows[limits <= self._reach]

    def _widen(self, wanted: int) -> bool:
        """Extend the reach to add about ``wanted`` rows to the front; return whether there were any."""
        if not len(self._known):
            return False
        reach = self._next_reach(wanted)
        rows = self._within(self._reach, reach)
        if not len(rows):
            return False
        self._catch_up(rows)
        self._reach = reach
        self._front = np.sort(np.concatenate([self._front, rows[self._limits[rows] <= reach]]))
        return True

    def _next_reach(self, wanted: int) -> np.float32:
        """A limit beyond the current reach with about ``wanted`` more rows below it, estimated from a sample."""
        stride = max(1, len(self._limits) // (8 * _SAMPLE))
        sample = self._limits[::stride]
        beyond = sample[sample > self._reach]
        place = wanted // stride
        return np.partition(beyond, place)[place] if place < len(beyond) else np.float32(np.inf)

    def _within(self, low: np.float32, high: np.float32) -> Rows:
        """Rows with limits above ``low`` and at most ``high``."""
        found: Rows = self._entered[0]
        count = kernel.within(self._limits, low, high, found)
        if count > len(found):
            found = np.empty(count, np.int64)
            kernel.within(self._limits, low, high, found)
        return found[:count].copy()

    def _catch_up(self, rows: Rows) -> None:
        """Compare rows with their pending positives."""
        if self._rotation is None or not len(rows):
            return
        first = self._pending[rows]
        long = (first >= 0) & (first < len(self._known) - MOST_SCANS)
        self._catch_up_by_products(rows[long])
        rows = rows[~long]
        if not len(rows):
            return
        vectors, known, rotation = np.asarray(self._pool.vectors), self._known, self._rotation

        def work(part: Rows) -> None:
            kernel.catch_up(
                part, vectors, self._rest, self._points, known.vectors, known.keys, self._plan,
                rotation.scale, rotation.error, self._values, self._sources, self._limits, self._pending,
            )  # fmt: skip

        for_each(work, np.array_split(rows, -(-len(rows) // 256)), blas=False)

    def _catch_up_by_products(self, rows: Rows) -> None:
        """The same for rows with many pending positives, grouped by how many."""
        assert self._rotation is not None
        rows = rows[np.argsort(self._pending[rows], kind="stable")]
        for part in np.split(rows, range(_FRONT, len(rows), _FRONT)):
            if len(part):
                super()._improve(np.sort(part), slice(int(self._pending[part[0]]), None))
        kernel.settle_limits(
            rows, self._rotation.scale, self._rotation.error, self._values, self._limits, self._pending
        )

    # -- adding and removing positives and rows ----------------------------------------------------------

    def _improve(self, rows: Rows | None, new: slice) -> None:
        if rows is not None:
            self._compare_anew(rows)
        elif self._rotation is not None:
            places = range(len(self._known))[new]
            self._place(places)
            # A caller that asks for many rows at a time would need most of them up to date anyway.
            if places and (len(places) > MOST_SCANS or self._wanted > _FRONT):
                self._multiply(new)
            else:
                for place in places:
                    self._scan(place, self._rotation)

    def _place(self, places: range) -> None:
        """Store new positives in the rotated space."""
        assert self._rotation is not None
        self._make_room()
        if places:
            new = slice(places.start, places.stop)
            self._points[new] = self._rotation.apply(self._known.vectors[new])

    def _make_room(self) -> None:
        while len(self._points) < len(self._known):
            self._points = np.concatenate([self._points, np.zeros_like(self._points)])

    def _scan(self, place: int, rotation: _Rotation) -> None:
        """Compare all rows with one positive, lazily."""
        vectors, known, total = np.asarray(self._pool.vectors), self._known, len(self._open)
        point, key = self._points[place], int(known.keys[place])
        step = max(_LEAST_ROWS, -(-total // len(self._entered)))
        counts = [0] * -(-total // step)
        scan = kernel.scan_half if self._half else kernel.scan

        def work(turn: int) -> None:
            counts[turn] = scan(
                vectors, self._lead, self._rest, turn * step, min((turn + 1) * step, total), point, known.vectors,
                place, key, self._plan, self._reach, rotation.scale, rotation.error, self._values, self._sources,
                self._limits, self._pending, self._entered[turn],
            )  # fmt: skip

        for_each(work, range(len(counts)), blas=False)
        if max(counts) > _ROOM:
            self._set_front(self._within(_FROM_NOTHING, self._reach))
        elif any(counts):
            self._enter(np.concatenate([self._entered[turn, :count] for turn, count in enumerate(counts)]))

    def _multiply(self, new: slice) -> None:
        """Compare all rows with many positives by products, at once."""
        assert self._rotation is not None
        first = range(len(self._known))[new].start
        oldest = int(self._pending[self._pending >= 0].min(initial=first))
        if first - oldest <= len(self._known) - first:
            # Clearing what is pending costs less now than after the new positives are pending too.
            new = slice(oldest, None)
            self._pending[:] = -1
        if first == 0 or not self._multiply_rotated(new):
            super()._improve(None, new)
        kernel.set_limits(
            self._rotation.scale, self._rotation.error, self._values, self._open, self._limits, self._pending
        )
        self._set_front(self._within(_FROM_NOTHING, self._reach))

    def _multiply_rotated(self, new: slice) -> bool:
        """The same with only the leading coordinates, which is cheaper; return whether they decide enough pairs.

        Undecided pairs are compared one by one. A sample of the rows estimates how many there are.
        """
        if self._half:
            return False
        rows = np.flatnonzero(self._open)
        sample = rows[:: max(1, len(rows) // _TRIED)]
        refine = self._refining(new)
        if refine(sample) > _MOST_OPEN * len(sample):
            return False
        step = max(64, PRODUCT_BYTES // (4 * len(self._known.keys[new])))
        for_each(refine, np.split(rows, range(step, len(rows), step)))
        return True

    def _refining(self, new: slice) -> Callable[[Rows], int]:
        """A function that compares rows with positives by products of rotated points and counts undecided pairs."""
        assert self._rotation is not None
        vectors, positives, keys = np.asarray(self._pool.vectors), self._known.vectors[new], self._known.keys[new]
        points = self._points[: len(self._known)][new]
        doubled, squares = np.ascontiguousarray(2 * points.T), distance.squares(points)
        slack, scale, error = distance.slack_of(self._width), self._rotation.scale, self._rotation.error

        def refine(rows: Rows) -> int:
            rotated = self._scratch.array("rotated", len(rows), self._width)
            rotated[:, : kernel.LEAD] = self._lead[:, rows].T
            rotated[:, kernel.LEAD :] = self._rest[rows]
            products = self._scratch.array("products", len(rows), len(keys))
            np.matmul(rotated, doubled, out=products)
            compared: int = kernel.refine(
                vectors, rows, products, distance.quick_squares(rotated), positives, squares, keys, slack, self._plan,
                scale, error, self._values, self._sources,
            )  # fmt: skip
            return compared

        return refine

    def _compare_anew(self, rows: Rows) -> None:
        """Compare rows that have not been compared with any positive: immediately if they may be within reach."""
        if not len(self._known):
            self._limits[rows], self._pending[rows] = np.inf, -1
            return
        self._pending[rows] = 0
        near = rows[self._limits[rows] <= self._reach]
        self._catch_up(near)
        self._enter(near[self._limits[near] <= self._reach])

    def _drop(self, gone: Rows) -> None:
        if not len(gone):
            return
        places = np.flatnonzero(np.isin(self._known.keys, gone))
        self._make_room()
        left = np.delete(self._points[: len(self._known)], places, axis=0)
        self._points[: len(left)] = left
        waiting = np.flatnonzero(self._pending > 0)
        self._pending[waiting] -= np.searchsorted(places, self._pending[waiting]).astype(np.int32)
        if not len(left):
            self._reach = _BEYOND_NOTHING
            self._pending[:] = -1
            self._limits[self._open] = np.inf
        super()._drop(gone)

    def _recompute(self, rows: Rows) -> None:
        # Removing positives brings no row nearer: the limits still hold, and most rows can wait.
        self._front = np.setdiff1d(self._front, rows, assume_unique=True)
        super()._recompute(rows)

    # -- the rotated space -----------------------------------------------------------------------

    def _squares_of(self, rows: Rows, vectors: npt.NDArray[np.float32], places: Rows) -> npt.NDArray[np.float64]:
        # Only needed for batches, where it is cheap, so it is not stored.
        squares: npt.NDArray[np.float64] = distance.quick_squares(vectors)
        return squares[places]

    def _take_in(self, first: int, total: int) -> None:
        added = total - first
        rest = self._rest.shape[1]
        self._lead = longer(self._lead, np.zeros((kernel.LEAD, added), self._lead.dtype), axis=1)
        self._rest = longer(self._rest, np.zeros((added, rest), np.float32))
        # Nothing is known about new rows yet: they may be arbitrarily near.
        self._limits = longer(self._limits, np.where(self._open[first:], np.float32(0), np.float32(-1)))
        self._pending = longer(self._pending, np.full(added, -1, np.int32))
        for block in blocks(added, self._pool.dimensions * 8, _BLOCK_BYTES):
            start, stop = first + block.start, first + block.stop
            rows = start + np.flatnonzero(~self._pool.withdrawn[start:stop])
            if len(rows):
                rotated = self._rotation_of(first, total).apply(self._pool.vectors[rows])
                leading = rotated[:, : kernel.LEAD].T
                self._lead[:, rows] = leading.astype(np.float16).view(np.uint16) if self._half else leading
                self._rest[rows] = rotated[:, kernel.LEAD :]

    def _rotation_of(self, first: int, total: int) -> _Rotation:
        """The rotation, computed once from a sample of the first rows."""
        if self._rotation is None:
            sample = first + np.arange(0, total - first, max(1, (total - first) // _SAMPLE))
            sample = sample[~self._pool.withdrawn[sample]]
            if not len(sample):
                sample = first + np.flatnonzero(~self._pool.withdrawn[first:total])[:_SAMPLE]
            self._rotation = _Rotation.of(dense_vectors(self._pool.take(sample)), self._width, self._half)
            self._place(range(len(self._known)))
        return self._rotation
