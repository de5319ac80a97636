"""The single definition of distance, compiled, and the filter that avoids most of its work.

The squared distance is the sum of squared float64 differences in NumPy's order of summation (pairwise, eight lanes),
so that ``((a - b) ** 2).sum()`` in float64 gives the same number to the last bit, independent of anything else that is
computed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from activecover.compiling import compiled
from activecover.pool import DenseVectors

_PAIRWISE_BLOCK = 128
Float32s = npt.NDArray[np.float32]
#: Number of estimates examined together.
LANES = 32


@compiled(inline="always")
def _square(x: DenseVectors, i: int, p: DenseVectors, j: int, t: int) -> float:
    difference = np.float64(x[i, t]) - np.float64(p[j, t])
    return difference * difference


@compiled()
def _block(x: DenseVectors, i: int, p: DenseVectors, j: int, start: int, size: int) -> float:
    """Sum of at most 128 squared differences: eight running sums, then the rest one by one."""
    t = start
    end = start + size
    if size < 8:
        total = 0.0
    else:
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        while t < end - size % 8:
            s0 += _square(x, i, p, j, t)
            s1 += _square(x, i, p, j, t + 1)
            s2 += _square(x, i, p, j, t + 2)
            s3 += _square(x, i, p, j, t + 3)
            s4 += _square(x, i, p, j, t + 4)
            s5 += _square(x, i, p, j, t + 5)
            s6 += _square(x, i, p, j, t + 6)
            s7 += _square(x, i, p, j, t + 7)
            t += 8
        total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
    while t < end:
        total += _square(x, i, p, j, t)
        t += 1
    return total


def summation_plan(dimensions: int) -> npt.NDArray[np.int64]:
    """The order in which NumPy sums ``dimensions`` terms: leaves of at most 128, each with the merges that follow it.

    NumPy halves a sum until its parts are small, and adds the parts up again. As a list of (start, size, merges) this
    needs no recursion, which compiled code cached on disk does not support.
    """
    leaves: list[list[int]] = []

    def split(start: int, size: int) -> None:
        if size <= _PAIRWISE_BLOCK:
            leaves.append([start, size, 0])
            return
        half = size // 2
        half -= half % 8
        split(start, half)
        split(start + half, size - half)
        leaves[-1][2] += 1

    split(0, dimensions)
    return np.array(leaves, np.int64)


@compiled()
def squared_distance(
    x: DenseVectors, i: int, p: DenseVectors, j: int, plan: npt.NDArray[np.int64], sums: npt.NDArray[np.float64]
) -> float:
    """Squared distance of row ``i`` of ``x`` from row ``j`` of ``p``; ``sums`` is scratch space."""
    top = -1
    for leaf in range(plan.shape[0]):
        top += 1
        sums[top] = _block(x, i, p, j, plan[leaf, 0], plan[leaf, 1])
        for _ in range(plan[leaf, 2]):
            top -= 1
            sums[top] += sums[top + 1]
    return sums[0]


@compiled(fastmath={"nnan", "nsz"})
def smallest(products: DenseVectors, row: int, offsets: Float32s, lanes: Float32s) -> np.float32:
    """The smallest difference of offset and product, computed in lanes for SIMD instructions."""
    count, here = offsets.shape[0], products[row]
    whole = count - count % LANES
    best = np.float32(np.inf)
    if whole:
        for lane in range(LANES):
            lanes[lane] = np.float32(np.inf)
        for j in range(0, whole, LANES):
            for lane in range(LANES):
                value = offsets[j + lane] - here[j + lane]
                lanes[lane] = value if value < lanes[lane] else lanes[lane]
        for lane in range(LANES):
            best = min(best, lanes[lane])
    for j in range(whole, count):
        best = min(best, offsets[j] - here[j])
    return best


@compiled(fastmath={"nnan", "nsz"})
def any_within(products: DenseVectors, row: int, offsets: Float32s, start: int, stop: int, reach: np.float32) -> bool:
    """Whether any of the positives ``start`` to ``stop`` may be within ``reach``."""
    here = products[row, start:stop]
    those = offsets[start:stop]
    hits = 0
    for j in range(stop - start):
        hits += those[j] - here[j] <= reach
    return hits > 0


@compiled()
def refine(
    vectors: DenseVectors,
    places: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    products: DenseVectors,
    row_squares: npt.NDArray[np.float64],
    positives: DenseVectors,
    positive_squares: npt.NDArray[np.float64],
    keys: npt.NDArray[np.int64],
    slack: float,
    plan: npt.NDArray[np.int64],
    squared: npt.NDArray[np.float64],
    sources: npt.NDArray[np.int64],
) -> None:
    """Bring rows up to date with new positives: the products filter, and the kernel compares exactly.

    ``vectors[places[r]]`` is the vector of row ``rows[r]``, ``row_squares[r]`` its squared length;
    ``products[places[r], j]`` twice its float32 inner product with positive ``j``. ``slack`` bounds the error
    of twice a product relative to the two vectors' lengths.
    """
    sums = np.empty(plan.shape[0])
    lanes = np.empty(LANES, np.float32)
    longest = 0.0
    offsets = np.empty(positive_squares.shape[0], np.float32)
    for j in range(positive_squares.shape[0]):
        longest = max(longest, positive_squares[j])
        offsets[j] = positive_squares[j]
    for r in range(rows.shape[0]):
        row, place = rows[r], places[r]
        error = error_bound(row_squares[r], longest, slack)
        nearest = row_squares[r] + smallest(products, place, offsets, lanes)
        if nearest - error > squared[row]:
            continue
        # Only a positive that may still be nearest needs an exact distance.
        bound = min(squared[row], nearest + error) - row_squares[r] + error
        reach = np.float32(bound + 1e-6 * abs(bound))
        for start in range(0, offsets.shape[0], LANES):
            stop = min(start + LANES, offsets.shape[0])
            if not any_within(products, place, offsets, start, stop, reach):
                continue
            for j in range(start, stop):
                if offsets[j] - products[place, j] > reach:
                    continue
                exact = squared_distance(vectors, place, positives, j, plan, sums)
                if exact < squared[row] or (exact == squared[row] and keys[j] < sources[row]):
                    squared[row] = exact
                    sources[row] = keys[j]


@compiled()
def error_bound(row_square: float, positive_square: float, slack: float) -> float:
    """Bound on the error of an estimated squared distance.

    The error of the float32 product is at most ``slack`` relative to the lengths of both vectors, in any order of
    summation. The positive's square and its difference from the product are rounded to float32, each by at most
    2**-24 of the squares or of their terms. The last term covers products so small that float32 rounds them to zero.
    """
    return slack * np.sqrt(row_square * positive_square) + 2.5e-7 * (row_square + positive_square) + 1e-30


def squares(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Squared lengths of rows, in float64."""
    wide = vectors.astype(np.float64)
    result: npt.NDArray[np.float64] = (wide * wide).sum(axis=1)
    return result


@compiled(fastmath={"reassoc", "contract"})
def quick_squares(vectors: DenseVectors) -> npt.NDArray[np.float64]:
    """The same without a float64 copy of the rows, summed in the fastest order."""
    result = np.empty(vectors.shape[0])
    for row in range(vectors.shape[0]):
        total = 0.0
        for t in range(vectors.shape[1]):
            value = np.float64(vectors[row, t])
            total += value * value
        result[row] = total
    return result


def slack_of(dimensions: int) -> float:
    """Generous relative error bound of twice a float32 inner product of ``dimensions`` terms."""
    unit = 2.0**-24
    terms = dimensions + 2
    return 2.0 * 1.01 * terms * unit / (1.0 - min(0.5, terms * unit))
