"""The choice of a backend; all exact ones return the same rows in the same order."""

from __future__ import annotations

from functools import partial

import numpy as np

from activecover.frontier._base import Frontier, check_kind
from activecover.frontier._bits import BitFrontier
from activecover.frontier._exact import ExactFrontier
from activecover.frontier._faiss import FaissFrontier
from activecover.frontier._pruned import PrunedFrontier
from activecover.frontier._sparse import SparseFrontier
from activecover.frontier._tree import TreeFrontier
from activecover.frontier.ray import RayFrontier
from activecover.pool import Pool
from activecover.registry import Entry, Registry

#: Up to this many dimensions, a tree leaves most of the pool untouched at each step.
TREE_DIMENSIONS = 4
#: With at least this many rows, rotating them once soon pays off.
MANY_ROWS = 50_000

FRONTIERS: Registry[Frontier] = Registry("frontier", group="activecover.frontiers")
FRONTIERS.add(Entry("exact", ExactFrontier, "blocked products, compared exactly; any number of dimensions"))
FRONTIERS.add(Entry("pruned", PrunedFrontier, "scan of a few rotated coordinates; many rows"))
FRONTIERS.add(Entry("pruned-half", partial(PrunedFrontier, half=True), "the same in float16; pools mapped from a file"))
FRONTIERS.add(Entry("tree", TreeFrontier, "k-d tree; few dimensions, or low intrinsic dimension"))
FRONTIERS.add(Entry("sparse", SparseFrontier, "products of sparse rows, compared exactly; sparse pools"))
FRONTIERS.add(Entry("bits", BitFrontier, "counts of common bits; pools of bits"))
FRONTIERS.add(Entry("ray", RayFrontier, "an exact frontier in every shard of a Ray cluster; pools in shards"))
# Approximate backends are used only if named.
FRONTIERS.add(Entry("faiss-hnsw", partial(FaissFrontier, structure="hnsw"), "approximate: FAISS graph; huge pools"))
FRONTIERS.add(Entry("faiss-ivf", partial(FaissFrontier, structure="ivf"), "approximate: FAISS cells; quick to build"))

#: The backends of pools that are not dense.
_BY_KIND = {"sparse": "sparse", "bits": "bits", "sharded": "ray"}


def choose_frontier(pool: Pool, name: str = "auto") -> Frontier:
    """A frontier by name, or (``auto``) the fastest exact one for the pool.

    Examples
    --------
    >>> type(choose_frontier(Pool([[0.0, 1.0]]))).__name__
    'TreeFrontier'
    """
    if name == "auto" and pool.kind in _BY_KIND:
        name = _BY_KIND[pool.kind]
    if name == "auto":
        name = _quickest(pool)
    entry = FRONTIERS[name]
    check_kind(getattr(entry.build, "kind", "dense"), pool, entry.name)
    return entry.build(pool)


def _quickest(pool: Pool) -> str:
    if pool.dimensions <= TREE_DIMENSIONS:
        return "tree"
    if len(pool) < MANY_ROWS:
        return "exact"
    return "pruned-half" if isinstance(pool.vectors, np.memmap) else "pruned"
