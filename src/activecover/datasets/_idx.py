"""MNIST and Fashion-MNIST: gzipped idx files."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.datasets._base import Dataset, Watcher, need
from activecover.errors import InputError

FILES = ("train", "t10k")


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Read one idx file of unsigned bytes."""
    try:
        data = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as wrong:
        raise InputError(f"{path}: not a whole gzip file ({wrong}); fetch it again") from wrong
    if len(data) < 4 or data[:3] != b"\x00\x00\x08":
        raise InputError(f"{path}: not an idx file of bytes; fetch it again")
    axes = data[3]
    shape = struct.unpack(f">{axes}I", data[4 : 4 + 4 * axes])
    if len(data) != 4 + 4 * axes + int(np.prod(shape)):
        raise InputError(f"{path}: {len(data)} bytes do not fit its shape {shape}; fetch it again")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def reader(name: str) -> Any:
    """A reader of the four idx files of a data set."""

    def read(folder: Path, watch: Watcher | None = None) -> Dataset:
        images, labels = [], []
        for part in FILES:
            images.append(read_idx(need(folder / f"{part}-images-idx3-ubyte.gz", name)))
            labels.append(read_idx(need(folder / f"{part}-labels-idx1-ubyte.gz", name)))
            if images[-1].ndim != 3 or labels[-1].shape != images[-1].shape[:1]:
                raise InputError(f"{folder}: the {part} images and labels do not belong together; fetch them again")
        return Dataset(name, np.concatenate(images), np.concatenate(labels).astype(np.str_))

    return read
