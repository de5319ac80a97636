"""MNIST and Fashion-MNIST: gzipped idx files."""

from __future__ import annotations

import gzip
import math
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from activecover.lab.datasets._base import Dataset, Watcher, damaged, need, readable

FILES = ("train", "t10k")
SIDE = 28


def read_idx(path: Path, name: str) -> npt.NDArray[np.uint8]:
    """Read one idx file of unsigned bytes; errors name the data set."""
    with readable(path, name):
        data = gzip.decompress(path.read_bytes())
        if data[:3] != b"\x00\x00\x08":
            raise damaged(path, "not an idx file of bytes", name)
        axes = data[3]
        shape = struct.unpack_from(f">{axes}I", data, 4)
        if len(data) != 4 + 4 * axes + math.prod(shape):
            raise damaged(path, f"{len(data):,} bytes do not match its shape {shape}", name)
        return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def reader(name: str) -> Callable[[Path, Watcher | None], Dataset]:
    """A reader of the four idx files of a data set."""

    def read(folder: Path, watch: Watcher | None = None) -> Dataset:
        images, labels = [], []
        for part in FILES:
            of_images = need(folder / f"{part}-images-idx3-ubyte.gz", name)
            of_labels = need(folder / f"{part}-labels-idx1-ubyte.gz", name)
            images.append(read_idx(of_images, name))
            labels.append(read_idx(of_labels, name))
            if images[-1].shape[1:] != (SIDE, SIDE):
                raise damaged(of_images, f"not images of {SIDE} x {SIDE} pixels", name)
            if labels[-1].shape != images[-1].shape[:1]:
                raise damaged(of_labels, f"not one label for each image of {of_images.name}", name)
            if (labels[-1] > 9).any():
                raise damaged(of_labels, "a label is beyond 9", name)
        return Dataset(name, np.concatenate(images), np.concatenate(labels).astype(np.str_))

    return read
