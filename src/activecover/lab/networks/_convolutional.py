"""The paper's convolutional networks, in PyTorch: deterministic for a seed, on a GPU if there is one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.extras import require

if TYPE_CHECKING:
    from torch import Tensor, nn

_INFERENCE_BATCH = 500


def _torch() -> ModuleType:
    return require("torch", extra="torch", purpose="convolutional networks")


class _Convolutional(ABC):
    """Glorot-uniform weights, zero biases, Adam, cross-entropy; no batch norm, no dropout.

    Parameters
    ----------
    epochs, batch_size, learning_rate
        Parameters of the training.
    scale : float
        Factor for pixels (1/255 for values from 0 to 1).
    seed : int
        Seed for the weights and the order of the points.
    """

    #: The smallest image side that pooling does not reduce to nothing.
    least: int

    def __init__(
        self,
        *,
        epochs: int = 20,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        scale: float = 1 / 255,
        seed: int = 0,
    ) -> None:
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.scale = scale
        self.seed = seed

    def fit(self, inputs: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Self:
        """Train on a sample of images (n, height, width, channels)."""
        torch = _torch()
        if inputs.ndim not in (3, 4) or min(inputs.shape[1:3]) < self.least:
            raise InputError(
                f"inputs of shape {inputs.shape[1:]}: this network needs images of {self.least} x {self.least} or more"
            )
        classes, codes = np.unique(labels, return_inverse=True)
        random = np.random.default_rng(self.seed)
        self.device_ = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.body_ = self._body(inputs.shape[1:]).to(self.device_)
        head = torch.nn.Linear(self._width(), len(classes)).to(self.device_)
        model = torch.nn.Sequential(self.body_, head)
        self._initialise(model, random)
        points = self._tensor(inputs)
        targets = torch.as_tensor(codes, dtype=torch.long, device=self.device_)
        adam = torch.optim.Adam(model.parameters(), lr=self.learning_rate, eps=1e-7)
        loss_of = torch.nn.CrossEntropyLoss()
        for _ in range(self.epochs):
            order = torch.as_tensor(random.permutation(len(points)), device=self.device_)
            for part in order.split(self.batch_size):
                adam.zero_grad()
                loss_of(model(points[part]), targets[part]).backward()
                adam.step()
        self.body_.eval()
        return self

    def transform(
        self, inputs: npt.NDArray[Any], watch: Callable[[int, int], None] | None = None
    ) -> npt.NDArray[np.float32]:
        """The activations of the layer before the logits."""
        torch = _torch()
        vectors = np.empty((len(inputs), self._width()), np.float32)
        with torch.inference_mode():
            for start in range(0, len(inputs), _INFERENCE_BATCH):
                part = slice(start, start + _INFERENCE_BATCH)
                vectors[part] = self.body_(self._tensor(inputs[part])).cpu().numpy()
                if watch is not None:
                    watch(min(start + _INFERENCE_BATCH, len(inputs)), len(inputs))
        return vectors

    @abstractmethod
    def _body(self, shape: tuple[int, ...]) -> nn.Sequential:
        """The layers up to the vectors."""

    @abstractmethod
    def _width(self) -> int:
        """Dimensions of the vectors."""

    def _tensor(self, inputs: npt.NDArray[Any]) -> Tensor:
        torch = _torch()
        images = inputs if inputs.ndim == 4 else inputs[..., None]
        pixels = np.ascontiguousarray(images.transpose(0, 3, 1, 2), np.float32) * np.float32(self.scale)
        return torch.as_tensor(pixels, device=self.device_)

    def _initialise(self, model: nn.Module, random: np.random.Generator) -> None:
        """Weights come from NumPy's generator: the same on every device and version of PyTorch."""
        torch = _torch()
        for weight in model.parameters():
            if weight.ndim < 2:
                torch.nn.init.zeros_(weight)
                continue
            field = int(np.prod(weight.shape[2:]))
            limit = np.sqrt(6 / ((weight.shape[0] + weight.shape[1]) * field))
            values = random.uniform(-limit, limit, tuple(weight.shape)).astype(np.float32)
            with torch.no_grad():
                weight.copy_(torch.as_tensor(values))


class LeNet(_Convolutional):
    """LeNet-5: two 5 x 5 convolutions (6, 16) with ReLU and max-pooling, dense 120 and 84."""

    least = 16

    def _width(self) -> int:
        return 84

    def _body(self, shape: tuple[int, ...]) -> nn.Sequential:
        layer = _torch().nn
        channels = shape[2] if len(shape) > 2 else 1
        side = [((size - 4) // 2 - 4) // 2 for size in shape[:2]]
        return layer.Sequential(
            layer.Conv2d(channels, 6, 5), layer.ReLU(), layer.MaxPool2d(2),
            layer.Conv2d(6, 16, 5), layer.ReLU(), layer.MaxPool2d(2), layer.Flatten(),
            layer.Linear(16 * side[0] * side[1], 120), layer.ReLU(), layer.Linear(120, 84), layer.ReLU(),
        )  # fmt: skip


class SmallVgg(_Convolutional):
    """Three blocks of two 3 x 3 convolutions (32, 64, 128 channels) with ReLU and max-pooling, dense 128."""

    least = 8

    def _width(self) -> int:
        return 128

    def _body(self, shape: tuple[int, ...]) -> nn.Sequential:
        layer = _torch().nn
        layers: list[nn.Module] = []
        channels = shape[2] if len(shape) > 2 else 1
        for width in (32, 64, 128):
            layers += [layer.Conv2d(channels, width, 3, padding=1), layer.ReLU()]
            layers += [layer.Conv2d(width, width, 3, padding=1), layer.ReLU(), layer.MaxPool2d(2)]
            channels = width
        size = 128 * (shape[0] // 8) * (shape[1] // 8)
        return layer.Sequential(*layers, layer.Flatten(), layer.Linear(size, 128), layer.ReLU())
