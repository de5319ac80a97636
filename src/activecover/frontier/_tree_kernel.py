"""Compiled part of the tree frontier: a k-d tree that tracks open rows and their distances.

Every node stores the numbers of open rows and positives below it, and its best open row. Distances are known only up
to a *horizon*: a row whose nearest positive is farther has no distance yet. A new positive is compared only with rows
within the horizon. When no row within it is left, the horizon widens, and the rows without a distance search for their
nearest positive again. A step costs about one descent of the tree plus the open rows nearby, regardless of the number
of positives.

The tree only decides which pairs are compared; distances come from the shared kernel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from activecover.compiling import compiled
from activecover.frontier._base import NO_KEY
from activecover.frontier.distance import squared_distance

#: Bounds of boxes are off by a few units in the last place; reduced by this factor they are true lower bounds.
_SAFE = 1.0 - 1e-12
_SLOWEST, _FASTEST = 1.3, 4.0
_AMONG = 200_000


class Tree(NamedTuple):
    """The arrays of a tree; nodes in heap order, all leaves on the last level."""

    vectors: Any  # the pool's rows, float32
    plan: Any  # the kernel's order of summation
    index: Any  # rows in the tree's order
    leaf: Any  # leaf of each row, -1 if it is not in the tree
    start: Any  # first place of each node in index
    end: Any
    low: Any  # box of each node, float64
    high: Any
    opened: Any  # open rows below each node
    positives: Any  # positives below each node
    best: Any  # smallest squared distance of an open row below each node
    best_row: Any  # and its row
    worst: Any  # no open row below the node is farther than this
    is_open: Any  # per row
    is_positive: Any
    squared: Any  # per row: squared distance to the nearest positive, inf beyond the horizon
    sources: Any
    horizon: Any  # the squared horizon, and the factor by which it widens
    outside_keys: Any  # positives from outside the pool
    outside: Any


def depth_of(rows: int, leaf_rows: int) -> int:
    """Number of halvings needed for leaves of at most ``leaf_rows`` rows."""
    depth = 0
    while rows > leaf_rows << depth:
        depth += 1
    return depth


@compiled()
def _select(index: Any, points: Any, axis: int, first: int, last: int, nth: int) -> None:
    """Partition rows so that the ``nth`` smallest is in its place, smaller ones before it and larger ones after."""
    while last > first:
        a = points[index[first], axis]
        b = points[index[(first + last) // 2], axis]
        c = points[index[last], axis]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = first, last
        while i <= j:
            while points[index[i], axis] < pivot:
                i += 1
            while points[index[j], axis] > pivot:
                j -= 1
            if i <= j:
                index[i], index[j] = index[j], index[i]
                i += 1
                j -= 1
        if nth <= j:
            last = j
        elif nth >= i:
            first = i
        else:
            return


@compiled()
def build(points: Any, index: Any, start: Any, end: Any, low: Any, high: Any, leaf: Any) -> None:
    """Split the rows at the median of the widest dimension, level by level."""
    nodes = start.shape[0]
    inner = nodes // 2
    start[0], end[0] = 0, index.shape[0]
    for node in range(nodes):
        for axis in range(points.shape[1]):
            low[node, axis], high[node, axis] = np.inf, -np.inf
        for place in range(start[node], end[node]):
            row = index[place]
            for axis in range(points.shape[1]):
                value = np.float64(points[row, axis])
                low[node, axis] = min(low[node, axis], value)
                high[node, axis] = max(high[node, axis], value)
        if node >= inner:
            for place in range(start[node], end[node]):
                leaf[index[place]] = node
            continue
        middle = (start[node] + end[node]) // 2
        if end[node] - start[node] > 1:
            widest, width = 0, -1.0
            for axis in range(points.shape[1]):
                if high[node, axis] - low[node, axis] > width:
                    widest, width = axis, high[node, axis] - low[node, axis]
            _select(index, points, widest, start[node], end[node] - 1, middle)
        start[2 * node + 1], end[2 * node + 1] = start[node], middle
        start[2 * node + 2], end[2 * node + 2] = middle, end[node]


@compiled()
def _box_distance(tree: Any, node: int, points: Any, row: int) -> float:
    """A lower bound on the squared distance of a point from anything below a node."""
    total = 0.0
    for axis in range(points.shape[1]):
        value = np.float64(points[row, axis])
        gap = max(tree.low[node, axis] - value, value - tree.high[node, axis], 0.0)
        total += gap * gap
    return total * _SAFE


@compiled()
def _refresh(tree: Any, node: int) -> bool:
    """Recompute a node's best open row and largest distance; return whether anything changed."""
    best, best_row, worst = np.inf, np.int64(-1), -np.inf
    if node >= tree.start.shape[0] // 2:
        for place in range(tree.start[node], tree.end[node]):
            row = tree.index[place]
            if tree.is_open[row]:
                value = tree.squared[row]
                worst = max(worst, value)
                if value < best or (value == best and value < np.inf and row < best_row):
                    best, best_row = value, row
    else:
        left, right = 2 * node + 1, 2 * node + 2
        best, best_row = tree.best[left], tree.best_row[left]
        if tree.best[right] < best or (tree.best[right] == best and 0 <= tree.best_row[right] < best_row):
            best, best_row = tree.best[right], tree.best_row[right]
        worst = max(tree.worst[left], tree.worst[right])
    changed: bool = best != tree.best[node] or best_row != tree.best_row[node] or worst != tree.worst[node]
    tree.best[node], tree.best_row[node], tree.worst[node] = best, best_row, worst
    return changed


@compiled()
def _refresh_up(tree: Any, node: int) -> None:
    while _refresh(tree, node) and node > 0:
        node = (node - 1) // 2


@compiled()
def refresh_all(tree: Any) -> None:
    """Find every node's best row, from the leaves up."""
    for node in range(tree.start.shape[0] - 1, -1, -1):
        _refresh(tree, node)


@compiled()
def _count(counts: Any, node: int, change: int) -> None:
    counts[node] += change
    while node > 0:
        node = (node - 1) // 2
        counts[node] += change


@compiled()
def close(tree: Any, row: int) -> None:
    """Close an open row."""
    tree.is_open[row] = False
    tree.squared[row] = np.inf
    tree.sources[row] = NO_KEY
    node = tree.leaf[row]
    _count(tree.opened, node, -1)
    if tree.best_row[node] == row:
        _refresh_up(tree, node)


@compiled()
def close_all(tree: Any, rows: Any) -> None:
    """Close the given rows that are open."""
    for row in rows:
        if tree.is_open[row]:
            close(tree, row)


@compiled()
def spread(tree: Any, points: Any, place: int, key: int, stack: Any, sums: Any) -> None:
    """Bring the open rows within the horizon of a new positive up to date."""
    horizon = tree.horizon[0]
    inner = tree.start.shape[0] // 2
    stack[0], top = 0, 1
    while top > 0:
        top -= 1
        node = stack[top]
        # Skip what lies beyond the horizon, and nodes in which every row has a nearer positive.
        limit = min(horizon, tree.worst[node])
        if tree.opened[node] == 0 or _box_distance(tree, node, points, place) > limit:
            continue
        if node < inner:
            stack[top], stack[top + 1] = 2 * node + 1, 2 * node + 2
            top += 2
            continue
        changed = False
        for at in range(tree.start[node], tree.end[node]):
            row = tree.index[at]
            if not tree.is_open[row]:
                continue
            exact = squared_distance(tree.vectors, row, points, place, tree.plan, sums)
            if exact > horizon:
                continue
            if exact < tree.squared[row] or (exact == tree.squared[row] and key < tree.sources[row]):
                tree.squared[row] = exact
                tree.sources[row] = key
                changed = True
        if changed:
            _refresh_up(tree, node)


@compiled()
def add_positive(tree: Any, row: int, stack: Any, sums: Any) -> None:
    """Make a row of the pool a positive."""
    tree.is_positive[row] = True
    _count(tree.positives, tree.leaf[row], 1)
    spread(tree, tree.vectors, row, row, stack, sums)


@compiled()
def add_all(tree: Any, rows: Any, stack: Any, sums: Any) -> None:
    """Make rows of the pool positives."""
    for row in rows:
        add_positive(tree, row, stack, sums)


@compiled()
def _search(tree: Any, row: int, stack: Any, bounds: Any, sums: Any) -> None:
    """Find a row's nearest positive within the horizon."""
    inner = tree.start.shape[0] // 2
    best, source = tree.horizon[0], NO_KEY
    for j in range(tree.outside.shape[0]):
        exact = squared_distance(tree.vectors, row, tree.outside, j, tree.plan, sums)
        if exact < best or (exact == best and (source == NO_KEY or tree.outside_keys[j] < source)):
            best, source = exact, tree.outside_keys[j]
    stack[0], bounds[0], top = 0, 0.0, 1
    while top > 0:
        top -= 1
        node = stack[top]
        if tree.positives[node] == 0 or bounds[top] > best:
            continue
        if node < inner:
            near, far = 2 * node + 1, 2 * node + 2
            near_bound = _box_distance(tree, near, tree.vectors, row)
            far_bound = _box_distance(tree, far, tree.vectors, row)
            if far_bound < near_bound:
                near, far = far, near
                near_bound, far_bound = far_bound, near_bound
            # The nearer child is pushed last, so that it is visited first.
            stack[top], bounds[top] = far, far_bound
            stack[top + 1], bounds[top + 1] = near, near_bound
            top += 2
            continue
        for at in range(tree.start[node], tree.end[node]):
            other = tree.index[at]
            if not tree.is_positive[other]:
                continue
            exact = squared_distance(tree.vectors, row, tree.vectors, other, tree.plan, sums)
            if exact < best or (exact == best and (source == NO_KEY or other < source)):
                best, source = exact, other
    if source != NO_KEY:
        tree.squared[row], tree.sources[row] = best, source


@compiled()
def search_all(tree: Any, rows: Any, stack: Any, bounds: Any, sums: Any) -> None:
    """Find the nearest positives of open rows that have no distance."""
    for row in rows:
        _search(tree, row, stack, bounds, sums)
        _refresh_up(tree, tree.leaf[row])


@compiled()
def widen(tree: Any, wanted: int, stack: Any, bounds: Any, sums: Any) -> bool:
    """Widen the horizon until ``wanted`` more rows have a distance; return whether there was anything farther."""
    factor, found = tree.horizon[1], 0
    while found < wanted:
        if tree.horizon[0] == np.inf:
            break
        tree.horizon[0] *= factor
        # After a step that was too short, take a longer one: the rest may be far away.
        factor *= factor
        for node in range(tree.start.shape[0] // 2, tree.start.shape[0]):
            if tree.opened[node] == 0 or tree.worst[node] < np.inf:
                continue
            for at in range(tree.start[node], tree.end[node]):
                row = tree.index[at]
                if tree.is_open[row] and tree.squared[row] == np.inf:
                    _search(tree, row, stack, bounds, sums)
                    found += tree.squared[row] < np.inf
    refresh_all(tree)
    return found > 0


@compiled()
def follow(tree: Any, truth: Any, order: Any, to_find: int, stack: Any, bounds: Any, sums: Any) -> int:
    """Repeatedly ask for the nearest row and reveal its label until ``wanted`` positives are found."""
    asked = 0
    while asked < order.shape[0] and to_find > 0 and tree.opened[0] > 0:
        row = tree.best_row[0]
        if row < 0:
            if not widen(tree, 1, stack, bounds, sums):
                break
            continue
        order[asked] = row
        asked += 1
        close(tree, row)
        if truth[row]:
            to_find -= 1
            add_positive(tree, row, stack, sums)
    return asked


@compiled()
def _before(values: Any, rows: Any, a: int, b: int) -> bool:
    return values[a] < values[b] or (values[a] == values[b] and rows[a] < rows[b])


@compiled()
def collect(tree: Any, k: int, without: Any, found: Any) -> int:
    """Find the ``k`` nearest open rows except some (sorted), nearest first; return their number.

    Uses a heap of subtrees and rows, each keyed by its best row, so rows come out in order.
    """
    inner = tree.start.shape[0] // 2
    size = 64 + 2 * (k + without.shape[0])
    values, rows, nodes = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    count, taken = 0, 0
    values[0], rows[0], nodes[0], count = tree.best[0], tree.best_row[0], 0, 1
    while count > 0 and taken < k:
        row, node, value = rows[0], nodes[0], values[0]
        count -= 1
        values[0], rows[0], nodes[0] = values[count], rows[count], nodes[count]
        _sink(values, rows, nodes, count)
        if row < 0 or value == np.inf:
            continue
        if node < 0:
            at = np.searchsorted(without, row)
            if at == without.shape[0] or without[at] != row:
                found[taken] = row
                taken += 1
            continue
        if node < inner:
            for child in (2 * node + 1, 2 * node + 2):
                if tree.best_row[child] >= 0:
                    if count == size:
                        values, rows, nodes, size = _double(values, rows, nodes)
                    values[count], rows[count], nodes[count] = tree.best[child], tree.best_row[child], child
                    count += 1
                    _rise(values, rows, nodes, count - 1)
            continue
        for at in range(tree.start[node], tree.end[node]):
            other = tree.index[at]
            if tree.is_open[other] and tree.squared[other] < np.inf:
                if count == size:
                    values, rows, nodes, size = _double(values, rows, nodes)
                values[count], rows[count], nodes[count] = tree.squared[other], other, -1
                count += 1
                _rise(values, rows, nodes, count - 1)
    return taken


@compiled()
def _double(values: Any, rows: Any, nodes: Any) -> Any:
    size = 2 * values.shape[0]
    more_values, more_rows, more_nodes = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    more_values[: values.shape[0]] = values
    more_rows[: rows.shape[0]] = rows
    more_nodes[: nodes.shape[0]] = nodes
    return more_values, more_rows, more_nodes, size


@compiled()
def _swap(values: Any, rows: Any, nodes: Any, a: int, b: int) -> None:
    values[a], values[b] = values[b], values[a]
    rows[a], rows[b] = rows[b], rows[a]
    nodes[a], nodes[b] = nodes[b], nodes[a]


@compiled()
def _rise(values: Any, rows: Any, nodes: Any, place: int) -> None:
    while place > 0 and _before(values, rows, place, (place - 1) // 2):
        _swap(values, rows, nodes, place, (place - 1) // 2)
        place = (place - 1) // 2


@compiled()
def _sink(values: Any, rows: Any, nodes: Any, count: int) -> None:
    place = 0
    while True:
        child = 2 * place + 1
        if child >= count:
            return
        if child + 1 < count and _before(values, rows, child + 1, child):
            child += 1
        if not _before(values, rows, child, place):
            return
        _swap(values, rows, nodes, child, place)
        place = child


def first_horizon(
    vectors: npt.NDArray[np.float32], rows: npt.NDArray[np.int64], neighbours: int, samples: int
) -> npt.NDArray[np.float64]:
    """A squared distance within which a row has about ``neighbours`` others, and the factor that doubles their number.

    Both are estimated from a few rows. The factor depends on the intrinsic dimension of the data: in many dimensions
    a slightly larger distance covers many more rows.
    """
    chosen = rows[np.linspace(0, len(rows) - 1, min(samples, len(rows))).astype(np.int64)]
    among = vectors[rows[:: max(1, len(rows) // _AMONG)]].astype(np.float64)
    near = max(1, round(neighbours * len(among) / len(rows)))
    radii = []
    for row in chosen:
        squared = ((among - vectors[row].astype(np.float64)) ** 2).sum(axis=1)
        apart = squared[squared > 0]
        if len(apart) > 2 * near:
            radii.append(np.partition(apart, [near, 2 * near])[[near, 2 * near]])
    if not radii:
        return np.array([1.0, _FASTEST])
    # Taken from the denser part of the pool: a horizon that is too short is soon widened, one too wide stays.
    once, twice = np.quantile(radii, 0.2, axis=0)
    return np.array([once, np.clip(twice / once, _SLOWEST, _FASTEST)])
