"""The paper's six data sets: public locations, hashes, and counts as published."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from activecover.lab.datasets._base import DATASETS, DatasetSpec, Download, Experiment
from activecover.lab.datasets._celeba import read_celeba
from activecover.lab.datasets._cifar10 import read_cifar10
from activecover.lab.datasets._idx import reader
from activecover.lab.datasets._letters import load_letters
from activecover.lab.datasets._svhn import read_svhn


def _idx_files(base: str, md5: Mapping[str, str]) -> tuple[Download, ...]:
    return tuple(Download(file, f"{base}/{file}", f"md5:{digest}") for file, digest in md5.items())


def _digits(*counts: int) -> dict[str, int]:
    return {str(digit): count for digit, count in enumerate(counts)}


_LETTER_COUNTS = (
    789, 766, 736, 805, 768, 775, 773, 734, 755, 747, 739, 761, 792, 783, 753, 803, 783, 758, 748, 796,
    813, 764, 752, 787, 786, 734,
)  # fmt: skip

SOURCES = (
    DatasetSpec(
        "letters",
        "20,000 letters as 16 integers (bundled)",
        load_letters,
        Experiment(),
        terms="CC BY 4.0 (Slate 1991, UCI)",
        bundled=True,
        counts={chr(ord("A") + place): count for place, count in enumerate(_LETTER_COUNTS)},
        downloads=(
            Download(
                "letter-recognition.data",
                "https://archive.ics.uci.edu/ml/machine-learning-databases/letter-recognition/letter-recognition.data",
                "md5:6a2d740def5d13ea6096272546f6d41e",
            ),
        ),
    ),
    DatasetSpec(
        "mnist",
        "70,000 handwritten digits, 28 x 28",
        reader("mnist"),
        Experiment(),
        terms="free to use, cite LeCun et al. 1998",
        counts=_digits(6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
        downloads=_idx_files(
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            {
                "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
                "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
                "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
            },
        ),
    ),
    DatasetSpec(
        "fashion_mnist",
        "70,000 pieces of clothing, 28 x 28",
        reader("fashion_mnist"),
        Experiment(),
        terms="MIT (Xiao et al. 2017)",
        counts=_digits(*[7000] * 10),
        downloads=_idx_files(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            {
                "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
                "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
                "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
            },
        ),
    ),
    DatasetSpec(
        "cifar10",
        "60,000 photographs of ten kinds of things, 32 x 32 in colour",
        read_cifar10,
        Experiment(network="vgg", epochs=100, scale=1 / 255),
        terms="cite Krizhevsky 2009",
        counts=_digits(*[6000] * 10),
        downloads=(
            Download(
                "cifar-10-batches-bin",
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "md5:c32a1d4ab5d03f1284b67883e8d87530",
                unpack=True,
            ),
        ),
    ),
    DatasetSpec(
        "svhn",
        "99,289 house numbers, cropped digits, 32 x 32 in colour (train + test)",
        read_svhn,
        Experiment(network="lenet", scale=1 / 255, percent="1%", batches=50),
        terms="non-commercial (Netzer et al. 2011)",
        counts=_digits(6692, 18960, 14734, 11379, 9981, 9266, 7704, 7614, 6705, 6254),
        downloads=(
            Download(
                "train_32x32.mat",
                "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
                "md5:e26dedcc434d2e4c54c9b2d4a06d8373",
            ),
            Download(
                "test_32x32.mat",
                "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
                "md5:eb5a983be6a315427106f1b164d9cef3",
            ),
        ),
    ),
    DatasetSpec(
        "celeba",
        "faces with 40 attributes, the train split or a subset of it at 28 x 28 in colour",
        read_celeba,
        Experiment(network="lenet", scale=1 / 255, percent="1%", batches=30),
        terms="non-commercial research (Liu et al. 2015)",
        by_hand=(
            "Its terms must be accepted on the project page (search for 'CelebFaces Attributes Dataset'): download "
            "img_align_celeba.zip, list_attr_celeba.txt and list_eval_partition.txt, and put them into {folder} as "
            "img_align_celeba/NNNNNN.jpg, list_attr_celeba.txt and list_eval_partition.txt"
        ),
        subset_allowed=True,
    ),
)


def _giving(source: DatasetSpec) -> Callable[[], DatasetSpec]:
    return lambda: source


for _source in SOURCES:
    DATASETS.register(_source.name, _source.summary)(_giving(_source))
