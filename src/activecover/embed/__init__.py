"""Making vectors: small networks trained on the first sample, whose last hidden layer is the embedding."""

from activecover.embed._cache import EmbeddingCache
from activecover.embed._dense import DenseNetwork
from activecover.embed._networks import NETWORKS, Network

__all__ = ["NETWORKS", "DenseNetwork", "EmbeddingCache", "Network"]
