"""Pools in shards on a Ray cluster, with the same order of rows as on one machine."""

from activecover.frontier.ray._connect import Actor, connect, disconnect, import_ray
from activecover.frontier.ray._frontier import RayFrontier
from activecover.frontier.ray._pool import ShardedPool

__all__ = ["Actor", "RayFrontier", "ShardedPool", "connect", "disconnect", "import_ray"]
