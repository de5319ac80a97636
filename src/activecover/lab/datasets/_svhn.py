"""SVHN, cropped digits: the MATLAB files of the train and test parts."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.lab.datasets._base import Dataset, Watcher, damaged, need, readable

_MATRIX, _COMPRESSED = 14, 15
#: Numeric types, by their code in the file.
_NUMBERS = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}


def read_svhn(folder: Path, watch: Watcher | None = None) -> Dataset:
    """Read ``train_32x32.mat`` and ``test_32x32.mat`` in a folder; label 10 is the digit 0."""
    images, labels = [], []
    for part in ("train", "test"):
        path = need(folder / f"{part}_32x32.mat", "svhn")
        with readable(path, "svhn"):
            data = dict(_matrices(memoryview(path.read_bytes())))
        if not {"X", "y"} <= data.keys():
            raise damaged(path, "has no images X and labels y", "svhn")
        pixels, digits = data["X"], data["y"]
        if pixels.dtype != np.uint8 or pixels.shape != (32, 32, 3, digits.size):
            raise damaged(path, f"images of shape {pixels.shape} for {digits.size:,} labels", "svhn")
        if not np.isin(digits, np.arange(1, 11)).all():
            raise damaged(path, "a label is not from 1 to 10", "svhn")
        images.append(pixels.transpose(3, 0, 1, 2))
        labels.append(digits.reshape(-1).astype(np.uint8) % 10)
    return Dataset("svhn", np.concatenate(images), np.concatenate(labels).astype(np.str_))


# SciPy reads these files too, but crashes the process on an unknown numeric type (seen with 1.17).
def _matrices(data: memoryview) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """The numeric matrices of a MATLAB 5 file, by name."""
    if bytes(data[124:128]) != b"\x00\x01IM":
        raise ValueError("not a MATLAB 5 file")
    for kind, content in _elements(data[128:]):
        if kind == _COMPRESSED:
            kind, content = next(_elements(memoryview(zlib.decompress(content))))
        if kind != _MATRIX:
            raise ValueError("not a matrix")
        (_, flags), (_, shape), (_, name), (number, values), *_ = _elements(content)
        # Classes from 6 on are numeric; lower ones are cells, structures, objects, text and sparse matrices.
        if flags[0] >= 6 and number in _NUMBERS:
            array = np.frombuffer(values, _NUMBERS[number]).reshape(np.frombuffer(shape, "<i4"), order="F")
            yield bytes(name).decode("ascii"), array


def _elements(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The elements in a range of a file, each with its type and bytes."""
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        start, end = at + 8, at + 8 + size
        if kind >> 16:  # up to four bytes are stored in the header itself
            kind, size, start, end = kind & 0xFFFF, kind >> 16, at + 4, at + 4 + (kind >> 16)
        if end > len(data):
            raise ValueError("cut short")
        yield kind, data[start:end]
        at = end if kind == _COMPRESSED else end + -end % 8
