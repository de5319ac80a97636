"""Small networks trained on the first sample; their last hidden layer is the embedding."""

from activecover.lab.networks._cache import EmbeddingCache
from activecover.lab.networks._dense import DenseNetwork
from activecover.lab.networks._networks import NETWORKS, Network

__all__ = ["NETWORKS", "DenseNetwork", "EmbeddingCache", "Network"]
