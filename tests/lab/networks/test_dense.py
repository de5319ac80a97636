"""The dense network learns, repeats itself, and has the right gradients."""

import numpy as np

from activecover.lab.networks import DenseNetwork, _dense


def test_it_learns_and_is_deterministic():
    random = np.random.default_rng(0)
    labels = np.repeat(["a", "b"], 50)
    points = random.normal(size=(100, 5)) + 3 * (labels == "b")[:, None]
    network = DenseNetwork(epochs=60, seed=1).fit(points, labels)
    hidden = network.transform(points)
    logits = hidden @ network.weights_[2] + network.weights_[3]
    assert ((logits.argmax(axis=1) == 1) == (labels == "b")).mean() > 0.95
    assert (DenseNetwork(epochs=60, seed=1).fit(points, labels).transform(points) == hidden).all()
    assert (DenseNetwork(epochs=60, seed=2).fit(points, labels).transform(points) != hidden).any()
    assert hidden.dtype == np.float32
    assert (hidden >= 0).all()


def test_gradients_agree_with_finite_differences():
    random = np.random.default_rng(3)
    weights = [random.normal(size=shape) for shape in ((4, 6), (6,), (6, 3), (3,))]
    points, targets = random.normal(size=(8, 4)), np.eye(3)[random.integers(0, 3, 8)]

    def loss():
        hidden = np.maximum(points @ weights[0] + weights[1], 0)
        logits = hidden @ weights[2] + weights[3]
        return (np.log(np.exp(logits).sum(axis=1)) - (logits * targets).sum(axis=1)).mean()

    gradients = _dense._gradients(weights, points, targets)
    for weight, gradient in zip(weights, gradients, strict=True):
        for _ in range(5):
            place = tuple(random.integers(0, size) for size in weight.shape)
            kept, step = weight[place], 1e-6
            weight[place] = kept + step
            above = loss()
            weight[place] = kept - step
            below = loss()
            weight[place] = kept
            assert np.isclose((above - below) / (2 * step), gradient[place], atol=1e-5)


def test_images_are_flattened():
    images = np.random.default_rng(0).integers(0, 255, (20, 4, 4)).astype(np.uint8)
    vectors = DenseNetwork(hidden=7, epochs=1).fit(images, np.arange(20) % 2).transform(images)
    assert vectors.shape == (20, 7)
