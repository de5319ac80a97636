"""Making vectors."""

from activecover.embed._dense import DenseNetwork

__all__ = ["DenseNetwork"]
