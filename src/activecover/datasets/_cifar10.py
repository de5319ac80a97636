"""CIFAR-10: the binary batches, or the Python ones, read without running what is in them."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.datasets._base import Dataset, Watcher, need
from activecover.errors import InputError

BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
_RECORD = 1 + 3 * 32 * 32


def read_cifar10(folder: Path, watch: Watcher | None = None) -> Dataset:
    """Read ``cifar-10-batches-bin`` (or ``cifar-10-batches-py``) of a folder."""
    python = folder / "cifar-10-batches-py"
    if python.is_dir() and not (folder / "cifar-10-batches-bin").is_dir():
        parts = [_read_python(need(python / name, "cifar10")) for name in BATCHES]
    else:
        parts = [_read_binary(need(folder / "cifar-10-batches-bin" / f"{name}.bin", "cifar10")) for name in BATCHES]
    pixels = np.concatenate([pixels for pixels, _ in parts]).reshape(-1, 3, 32, 32)
    labels = np.concatenate([labels for _, labels in parts])
    return Dataset("cifar10", pixels.transpose(0, 2, 3, 1), labels.astype(np.str_))


Part = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


def _read_binary(path: Path) -> Part:
    data = np.fromfile(path, np.uint8)
    if not len(data) or len(data) % _RECORD:
        raise InputError(f"{path}: {len(data)} bytes are no whole number of images; fetch it again")
    records = data.reshape(-1, _RECORD)
    if records[:, 0].max() > 9:
        raise InputError(f"{path}: a label is beyond 9; fetch it again")
    return records[:, 1:], records[:, 0]


def _read_python(path: Path) -> Part:
    try:
        batch = _ArraysOnly(io.BytesIO(path.read_bytes()), encoding="bytes").load()
        pixels, labels = np.asarray(batch[b"data"]), np.asarray(batch[b"labels"])
    except (pickle.UnpicklingError, EOFError, AttributeError, KeyError, TypeError, ValueError) as wrong:
        raise InputError(f"{path}: not a CIFAR-10 batch ({wrong}); fetch it again") from wrong
    if pixels.dtype != np.uint8 or pixels.shape != (len(labels), _RECORD - 1):
        raise InputError(f"{path}: images of shape {pixels.shape} for {len(labels)} labels; fetch it again")
    return pixels, labels.astype(np.uint8)


class _ArraysOnly(pickle.Unpickler):
    """Unpickles NumPy arrays and plain values; anything that could run code is refused."""

    _ALLOWED = frozenset({("_reconstruct",), ("ndarray",), ("dtype",), ("encode",)})

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] in ("numpy", "_codecs") and (name,) in self._ALLOWED:
            if module.startswith("numpy") and name == "_reconstruct":
                from numpy._core.multiarray import _reconstruct

                return _reconstruct
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a batch of images")
