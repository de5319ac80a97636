"""The experiments' settings of each data set, as docs/bench.md gives them: a change here is one of the figures."""

import pytest

from activecover.lab.datasets import DATASETS
from activecover.lab.networks import NETWORKS
from activecover.simulate import batch_size

#: Network, epochs, what inputs are multiplied by, share of a batch, number of batches.
RECIPES = {
    "letters": ("dense", 20, 1.0, "5%", 20),
    "mnist": ("dense", 20, 1.0, "5%", 20),
    "fashion_mnist": ("dense", 20, 1.0, "5%", 20),
    "cifar10": ("vgg", 100, 1 / 255, "5%", 20),
    "svhn": ("lenet", 20, 1 / 255, "1%", 50),
    "celeba": ("lenet", 20, 1 / 255, "1%", 30),
}


@pytest.mark.parametrize("name", RECIPES)
def test_the_recipe_of_a_data_set(name):
    experiment = DATASETS.build(name).experiment
    assert (experiment.network, experiment.epochs, experiment.scale, experiment.percent, experiment.batches) == RECIPES[
        name
    ]


@pytest.mark.parametrize(
    ("name", "rows", "batch"), [("letters", 20_000, 995), ("mnist", 70_000, 3495), ("svhn", 99_289, 992)]
)
def test_the_size_of_a_batch(name, rows, batch):
    assert batch_size(DATASETS.build(name).experiment.percent, rows - 100) == batch


@pytest.mark.parametrize("name", ["dense", "lenet", "vgg"])
def test_how_a_network_is_trained(name):
    network = NETWORKS.build(name)
    assert (network.epochs, network.batch_size, network.learning_rate) == (20, 32, 1e-3)


def test_the_layers_of_the_convolutional_networks():
    pytest.importorskip("torch")

    def layers(name: str, side: int) -> list[str]:
        return [str(layer).partition(", dilation")[0] for layer in NETWORKS.build(name)._body((side, side, 3))]

    pool = "MaxPool2d(kernel_size=2, stride=2, padding=0"
    start = ["Flatten(start_dim=1, end_dim=-1)"]
    assert layers("lenet", 32) == [
        "Conv2d(3, 6, kernel_size=(5, 5), stride=(1, 1))", "ReLU()", pool,
        "Conv2d(6, 16, kernel_size=(5, 5), stride=(1, 1))", "ReLU()", pool, *start,
        "Linear(in_features=400, out_features=120, bias=True)", "ReLU()",
        "Linear(in_features=120, out_features=84, bias=True)", "ReLU()",
    ]  # fmt: skip
    expected: list[str] = []
    for before, width in ((3, 32), (32, 64), (64, 128)):
        for channels in (before, width):
            expected += [f"Conv2d({channels}, {width}, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))", "ReLU()"]
        expected.append(pool)
    assert layers("vgg", 32) == [*expected, *start, "Linear(in_features=2048, out_features=128, bias=True)", "ReLU()"]
