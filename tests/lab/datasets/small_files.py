"""Small valid files of every data set format."""

from __future__ import annotations

import gzip
import io
import pickle
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from activecover.cli import main
from activecover.errors import InputError
from activecover.lab.datasets import load_dataset

RANDOM = np.random.default_rng(7)
BATCHES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


def idx_of(array: Any) -> bytes:
    array = np.asarray(array, np.uint8)
    return gzip.compress(struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes(), mtime=0)


def mat_of(compressed: bool = False, **arrays: Any) -> bytes:
    file = io.BytesIO()
    savemat(file, arrays, do_compression=compressed)
    return file.getvalue()


def image_of(pixels: Any, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(file, kind)
    return file.getvalue()


def noise(*shape: int) -> Any:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def idx_files() -> dict[str, bytes]:
    return {
        "train-images-idx3-ubyte.gz": idx_of(noise(3, 28, 28)),
        "train-labels-idx1-ubyte.gz": idx_of([5, 0, 9]),
        "t10k-images-idx3-ubyte.gz": idx_of(noise(2, 28, 28)),
        "t10k-labels-idx1-ubyte.gz": idx_of([1, 5]),
    }


def cifar_files() -> dict[str, bytes]:
    records = [np.column_stack([np.array([[n], [0], [9]], np.uint8), noise(3, 3072)]).tobytes() for n in range(6)]
    return {f"cifar-10-batches-bin/{name}.bin": part for name, part in zip(BATCHES, records, strict=True)}


def cifar_pickles() -> dict[str, bytes]:
    def batch(number: int) -> bytes:
        content = {
            b"batch_label": b"a batch",
            b"labels": [number, 0, 9],
            b"data": noise(3, 3072),
            b"filenames": [b"a.png", b"b\xff.png", b"c.png"],
        }
        return pickle.dumps(content, protocol=2)

    return {f"cifar-10-batches-py/{name}": batch(number) for number, name in enumerate(BATCHES)}


def svhn_files() -> dict[str, bytes]:
    return {
        "train_32x32.mat": mat_of(X=noise(32, 32, 3, 3), y=np.array([[10], [1], [9]], np.uint8)),
        "test_32x32.mat": mat_of(True, X=noise(32, 32, 3, 2), y=np.array([[10], [2]], np.uint8)),
    }


def celeba_files() -> dict[str, bytes]:
    rows = ["1 -1  1", "-1 -1 1", "1  1 -1", "1 1 1"]
    listed = [f"{number:06}.jpg {row}" for number, row in enumerate(rows, start=1)]
    return {
        "list_attr_celeba.txt": "\n".join(["4", "Bald Male Young", *listed, ""]).encode(),
        "list_eval_partition.txt": b"000001.jpg 0\n000002.jpg 1\n000003.jpg 0\n000004.jpg 0\n",
        "img_align_celeba/000001.jpg": image_of(noise(218, 178, 3), "JPEG"),
        "img_align_celeba/000002.jpg": image_of(noise(28, 28, 3), "JPEG"),
        "img_align_celeba/000003.png": image_of(noise(28, 28, 3)),
    }


LETTERS = (
    "T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\nI,5,12,3,7,2,10,5,5,4,13,3,9,2,8,4,10\nT,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,15\n"
)
SMALL: dict[str, dict[str, bytes]] = {
    "letters": {"letter-recognition.data": LETTERS.encode()},
    "mnist": idx_files(),
    "fashion_mnist": idx_files(),
    "cifar10": cifar_files(),
    "cifar10 in Python": cifar_pickles(),
    "svhn": svhn_files(),
    "celeba": celeba_files(),
}
#: Images outside of the train split are not looked at, and batches in the middle are as those at the ends.
LEFT_OUT = re.compile(r".*/000002\.jpg|.*/data_batch_[2-5].*")
EACH_FILE = [(kind, file) for kind, files in SMALL.items() for file in files if not LEFT_OUT.fullmatch(file)]


def put(folder: Path, kind: str, **changes: bytes) -> str:
    """Write the small files of a kind, some of them changed; the result is the data set's name."""
    name = kind.partition(" ")[0]
    for file, content in {**SMALL[kind], **changes}.items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return name


def refused(name: str, folder: Path, file: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Reading and checking both say one line that names the file."""
    with pytest.raises(InputError) as caught:
        load_dataset(name, folder)
    said = str(caught.value)
    assert len(said.splitlines()) == 1
    assert said.startswith(str(folder / name / file)), said
    assert f"activecover data fetch {name}" in said
    assert main(["data", "check", name, "--data-dir", str(folder)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"activecover: {' '.join(said.split())}\n"
    return said
