"""Pools in shards over a Ray cluster: the same order, row for row, from many machines."""

from activecover.frontier.ray._connect import Actor, connect, disconnect, import_ray
from activecover.frontier.ray._frontier import RayFrontier
from activecover.frontier.ray._pool import ShardedPool

__all__ = ["Actor", "RayFrontier", "ShardedPool", "connect", "disconnect", "import_ray"]
