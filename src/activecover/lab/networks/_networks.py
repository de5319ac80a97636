"""The networks by name, with a common interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from activecover.lab.networks._convolutional import LeNet, SmallVgg
from activecover.lab.networks._dense import DenseNetwork
from activecover.registry import Entry, Registry

#: Called with the number of embedded inputs and the total.
Watcher = Callable[[int, int], None]


class Network(Protocol):
    """A network that is trained on a sample and turns any inputs into vectors."""

    def fit(self, inputs: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Self:
        """Train on a sample."""

    def transform(self, inputs: npt.NDArray[Any], watch: Watcher | None = None) -> npt.NDArray[np.float32]:
        """The vectors of any inputs."""


#: Each takes ``epochs``, ``scale`` (a factor for inputs) and ``seed``.
NETWORKS: Registry[Network] = Registry("network", group="activecover.networks")
NETWORKS.add(Entry("dense", DenseNetwork, "one hidden layer of 100 ReLU units"))
NETWORKS.add(Entry("lenet", LeNet, "LeNet-5 with ReLU and max-pooling, 84 dimensions"))
NETWORKS.add(Entry("vgg", SmallVgg, "three blocks of two 3 x 3 convolutions, 128 dimensions"))
