"""CIFAR-10: the binary batches, or the Python ones, read without executing their contents."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from activecover.lab.datasets._base import Dataset, Watcher, need, readable

BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
_RECORD = 1 + 3 * 32 * 32


def read_cifar10(folder: Path, watch: Watcher | None = None) -> Dataset:
    """Read ``cifar-10-batches-bin`` (or ``cifar-10-batches-py``) in a folder."""
    python, binary = folder / "cifar-10-batches-py", folder / "cifar-10-batches-bin"
    if python.is_dir() and not binary.is_dir():
        parts = [_read_python(need(python / name, "cifar10", whole=python)) for name in BATCHES]
    else:
        parts = [_read_binary(need(binary / f"{name}.bin", "cifar10", whole=binary)) for name in BATCHES]
    pixels = np.concatenate([pixels for pixels, _ in parts]).reshape(-1, 3, 32, 32)
    labels = np.concatenate([labels for _, labels in parts])
    return Dataset("cifar10", pixels.transpose(0, 2, 3, 1), labels.astype(np.str_))


Part = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


def _read_binary(path: Path) -> Part:
    with readable(path, "cifar10", whole=path.parent):
        data = np.fromfile(path, np.uint8)
        if not len(data) or len(data) % _RECORD:
            raise ValueError(f"{len(data):,} bytes are not a whole number of images")
        records = data.reshape(-1, _RECORD)
        if records[:, 0].max() > 9:
            raise ValueError("a label is beyond 9")
        return records[:, 1:], records[:, 0]


def _read_python(path: Path) -> Part:
    with readable(path, "cifar10", whole=path.parent):
        batch = _ArraysOnly(io.BytesIO(path.read_bytes()), encoding="bytes").load()
        if not isinstance(batch, dict) or not isinstance(labels := batch.get(b"labels"), list):
            raise ValueError("not a batch of images")
        if not all(type(label) is int and 0 <= label <= 9 for label in labels):
            raise ValueError("a label is not from 0 to 9")
        pixels = batch[b"data"].pixels.reshape(len(labels), _RECORD - 1)
        return pixels, np.array(labels, np.uint8)


class _Array:
    """Stands in for NumPy's array while unpickling: accepts the bytes, and does nothing else."""

    pixels: npt.NDArray[np.uint8]

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, state: tuple[int, tuple[int, ...], object, bool, bytes]) -> None:
        _, shape, kind, columns_first, content = state
        if not isinstance(kind, _Kind) or kind.name not in ("u1", b"u1") or columns_first:
            raise ValueError("not an array of bytes, row by row")
        self.pixels = np.frombuffer(content, np.uint8).reshape(shape)


class _Kind:
    """Stands in for NumPy's dtype."""

    def __init__(self, name: object, *_: object) -> None:
        self.name = name

    def __setstate__(self, state: object) -> None:
        pass


def _as_bytes(text: str, _: str) -> bytes:
    return text.encode("latin1")


StandIn = type[_Array] | type[_Kind] | Callable[[str, str], bytes]


# The C unpickler allocates memory up to any memo index in a damaged file; the Python one uses a dict.
class _ArraysOnly(pickle._Unpickler):
    """Unpickles byte arrays and plain values; anything that could run code is refused."""

    _STAND_INS: ClassVar[Mapping[tuple[str, str], StandIn]] = {
        ("numpy.core.multiarray", "_reconstruct"): _Array,
        ("numpy._core.multiarray", "_reconstruct"): _Array,
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _Kind,
        ("_codecs", "encode"): _as_bytes,
    }

    def find_class(self, module: str, name: str) -> StandIn:
        if (module, name) in self._STAND_INS:
            return self._STAND_INS[module, name]
        raise pickle.UnpicklingError(f"{module}.{name} does not belong in a batch of images")
