"""The paper's dense network: one hidden layer of 100 ReLU units, trained on the first sample only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from activecover.lab.networks._arithmetic import exponential, product
from activecover.pool import blocks

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-7


class DenseNetwork:
    """A softmax classifier whose hidden activations are the vectors.

    Adam, mini-batches, Glorot-uniform weights, zero biases, cross-entropy; no batch
    norm, no dropout. The vectors are bit-identical on every machine.

    Parameters
    ----------
    hidden : int
        Units of the hidden layer, which is the dimension of the vectors.
    epochs, batch_size, learning_rate
        Parameters of the training.
    scale : float
        Factor for inputs; the paper's results imply 1.
    seed : int
        Seed for the weights and the order of the points.

    Examples
    --------
    >>> network = DenseNetwork(hidden=4, epochs=1).fit(np.eye(3), np.array(["a", "b", "c"]))
    >>> network.transform(np.eye(3)).shape
    (3, 4)
    """

    def __init__(
        self,
        hidden: int = 100,
        *,
        epochs: int = 20,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        scale: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.hidden = hidden
        self.scale = scale
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.seed = seed

    def fit(self, inputs: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Self:
        """Train on a sample."""
        points = self._flat(inputs)
        classes, codes = np.unique(labels, return_inverse=True)
        targets = np.eye(len(classes), dtype=np.float32)[codes]
        random = np.random.default_rng(self.seed)
        weights = [
            _glorot(random, points.shape[1], self.hidden),
            np.zeros(self.hidden, np.float32),
            _glorot(random, self.hidden, len(classes)),
            np.zeros(len(classes), np.float32),
        ]
        adam = _Adam(weights, self.learning_rate)
        for _ in range(self.epochs):
            order = random.permutation(len(points))
            for start in range(0, len(points), self.batch_size):
                part = order[start : start + self.batch_size]
                adam.step(_gradients(weights, points[part], targets[part]))
        self.weights_ = weights
        return self

    def transform(
        self, inputs: npt.NDArray[Any], watch: Callable[[int, int], None] | None = None
    ) -> npt.NDArray[np.float32]:
        """The hidden activations of any inputs."""
        vectors = np.empty((len(inputs), self.hidden), np.float32)
        for block in blocks(len(inputs), int(np.prod(inputs.shape[1:])) * 4):
            vectors[block] = np.maximum(product(self._flat(inputs[block]), self.weights_[0]) + self.weights_[1], 0)
            if watch is not None:
                watch(block.stop, len(inputs))
        return vectors

    def _flat(self, inputs: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        points = np.asarray(inputs).reshape(len(inputs), -1).astype(np.float32)
        return points if self.scale == 1.0 else points * np.float32(self.scale)


class _Adam:
    def __init__(self, weights: list[npt.NDArray[np.float32]], rate: float) -> None:
        self._weights, self._rate = weights, rate
        self._left_1 = self._left_2 = 1.0
        self._mean = [np.zeros_like(w) for w in weights]
        self._square = [np.zeros_like(w) for w in weights]

    def step(self, gradients: list[npt.NDArray[np.float32]]) -> None:
        self._left_1 *= _BETA_1
        self._left_2 *= _BETA_2
        scale = self._rate * np.sqrt(1 - self._left_2) / (1 - self._left_1)
        for weight, gradient, mean, square in zip(self._weights, gradients, self._mean, self._square, strict=True):
            mean += (1 - _BETA_1) * (gradient - mean)
            square += (1 - _BETA_2) * (gradient * gradient - square)
            weight -= (scale * mean / (np.sqrt(square) + _EPSILON)).astype(np.float32)


def _gradients(
    weights: list[npt.NDArray[np.float32]], points: npt.NDArray[np.float32], targets: npt.NDArray[np.float32]
) -> list[npt.NDArray[np.float32]]:
    hidden = np.maximum(product(points, weights[0]) + weights[1], 0)
    logits = product(hidden, weights[2]) + weights[3]
    shares = exponential(logits - logits.max(axis=1, keepdims=True)).astype(logits.dtype)
    shares /= shares.sum(axis=1, keepdims=True)
    error = (shares - targets) / len(points)
    back = product(error, weights[2].T) * (hidden > 0)
    return [product(points.T, back), back.sum(axis=0), product(hidden.T, error), error.sum(axis=0)]


def _glorot(random: np.random.Generator, inputs: int, outputs: int) -> npt.NDArray[np.float32]:
    limit = np.sqrt(6 / (inputs + outputs))
    return random.uniform(-limit, limit, (inputs, outputs)).astype(np.float32)
