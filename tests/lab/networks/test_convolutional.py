"""The convolutional networks: shapes, seeds, first weights, and that they learn."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from activecover.errors import InputError, MissingExtraError
from activecover.lab.networks import NETWORKS, _convolutional
from activecover.lab.networks._convolutional import LeNet, SmallVgg

EACH = pytest.mark.parametrize(("network", "width"), [(LeNet, 84), (SmallVgg, 128)])


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Images this small are done before other threads have woken up."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def stripes(count: int = 40, side: int = 16, channels: int = 3, seed: int = 0) -> tuple[Any, Any]:
    """Noisy images with stripes across or down."""
    random = np.random.default_rng(seed)
    labels = np.array(["across", "down"])[random.integers(0, 2, count)]
    waves = np.tile((np.arange(side) // 2 % 2) * 150, (side, 1))
    images = np.where((labels == "down")[:, None, None], waves, waves.T)[..., None]
    return (images + random.integers(0, 100, (count, side, side, channels))).astype(np.uint8), labels


@EACH
@pytest.mark.parametrize("shape", [(28, 28), (28, 28, 1), (32, 32, 3), (16, 20, 3)])
def test_shapes(network: type[LeNet], width: int, shape: tuple[int, ...]) -> None:
    images = np.random.default_rng(0).integers(0, 256, (7, *shape)).astype(np.uint8)
    vectors = network(epochs=1).fit(images, np.arange(7) % 3).transform(images[:5])
    assert (vectors.shape, vectors.dtype) == ((5, width), np.float32)
    assert (vectors >= 0).all()
    assert vectors.any()
    assert network(epochs=0).fit(images, np.arange(7) % 3).transform(images[:0]).shape == (0, width)


@EACH
def test_what_is_no_image(network: type[LeNet], width: int) -> None:
    for shape in ((9, 16), (9, 7, 30, 3), (9, 30, 7), (9, 30, 30, 3, 1)):
        with pytest.raises(InputError, match="this network needs images of"):
            network().fit(np.zeros(shape), np.arange(9) % 2)


@EACH
def test_first_weights(network: type[LeNet], width: int) -> None:
    images, labels = stripes(4)
    body = network(epochs=0, seed=3).fit(images, labels).body_
    layers = [layer for layer in body if hasattr(layer, "weight")]
    assert len(layers) == (4 if network is LeNet else 7)
    for layer in layers:
        weight = layer.weight.detach().numpy()
        field = np.prod(weight.shape[2:], initial=1)
        limit = np.sqrt(6 / (field * weight.shape[0] + field * weight.shape[1]))
        assert 0.97 * limit < abs(weight).max() <= limit * (1 + 1e-6)
        assert abs(weight.mean()) < 0.1 * limit
        assert weight.std() == pytest.approx(limit / np.sqrt(3), rel=0.1)
        assert not layer.bias.detach().numpy().any()


@EACH
def test_it_learns(network: type[LeNet], width: int) -> None:
    vectors = network(epochs=10).fit(*stripes(40)).transform(stripes(60, seed=1)[0])
    labels = stripes(60, seed=1)[1]
    # By the nearer mean of the other half, on images that training has not seen.
    means = [vectors[:30][labels[:30] == name].mean(axis=0) for name in ("across", "down")]
    nearer = np.argmin([np.linalg.norm(vectors[30:] - mean, axis=1) for mean in means], axis=0)
    assert (np.array(["across", "down"])[nearer] == labels[30:]).mean() > 0.95


@EACH
def test_seeds(network: type[LeNet], width: int) -> None:
    images, labels = stripes()
    vectors = network(epochs=2, seed=5).fit(images, labels).transform(images)
    torch.manual_seed(999)  # what others did with the generator of PyTorch is of no importance
    assert (network(epochs=2, seed=5).fit(images, labels).transform(images) == vectors).all()
    assert (network(epochs=2, seed=6).fit(images, labels).transform(images) != vectors).any()
    assert (network(epochs=3, seed=5).fit(images, labels).transform(images) != vectors).any()


HASHES = """
import hashlib
import numpy as np
import torch
from activecover.lab.networks import NETWORKS
torch.set_num_threads(1)
images = np.random.default_rng(0).integers(0, 256, (40, 16, 16, 3)).astype(np.uint8)
for name in ("lenet", "vgg"):
    network = NETWORKS.build(name, epochs=2, scale=1 / 255, seed=5).fit(images, np.arange(40) % 3)
    print(hashlib.sha256(network.transform(images).tobytes()).hexdigest())
"""


def test_a_second_process_gives_the_same() -> None:
    images = np.random.default_rng(0).integers(0, 256, (40, 16, 16, 3)).astype(np.uint8)
    networks = [NETWORKS.build(name, epochs=2, scale=1 / 255, seed=5) for name in ("lenet", "vgg")]
    vectors = [network.fit(images, np.arange(40) % 3).transform(images) for network in networks]
    said = subprocess.run([sys.executable, "-B", "-c", HASHES], capture_output=True, text=True, check=True).stdout
    assert said.split() == [hashlib.sha256(part.tobytes()).hexdigest() for part in vectors]


@EACH
def test_batches_and_who_watches(network: type[LeNet], width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    images, labels = stripes(25)
    trained = network(epochs=1).fit(images, labels)
    seen: list[tuple[int, int]] = []
    whole = trained.transform(images, lambda *told: seen.append(told))
    assert seen == [(25, 25)]
    monkeypatch.setattr(_convolutional, "_INFERENCE_BATCH", 10)
    parts = trained.transform(images, lambda *told: seen.append(told))
    assert seen[1:] == [(10, 25), (20, 25), (25, 25)]
    assert abs(parts - whole).max() <= 1e-5


def test_the_scale_is_that_of_the_pixels() -> None:
    images, labels = stripes(10)
    small = LeNet(epochs=1, scale=1 / 255).fit(images, labels).transform(images)
    same = LeNet(epochs=1, scale=1.0).fit(images / np.float32(255), labels).transform(images / np.float32(255))
    assert abs(small - same).max() < 1e-4


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in ("lenet", "vgg"):
        network = NETWORKS.build(name, epochs=1, scale=1.0, seed=0)
        with pytest.raises(MissingExtraError) as caught:
            network.fit(*stripes(4))
        assert str(caught.value) == "convolutional networks need torch: pip install 'activecover[torch]'"
