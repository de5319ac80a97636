"""Embeddings on disk, shared by many methods and labels."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.files import lock, replacing


class EmbeddingCache:
    """A folder of matrices, each named by a hash of everything that it depends on.

    Processes that want the same matrix wait for each other; partial files are never visible.

    Parameters
    ----------
    folder : path
        Created if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as wrong:
            raise InputError(f"{folder}: the folder cannot be made ({wrong.strerror})") from wrong

    @staticmethod
    def key(**parts: object) -> str:
        """A key for everything that an embedding depends on: data set, sample, network, seed."""
        plain = {name: part.tolist() if isinstance(part, np.ndarray) else part for name, part in parts.items()}
        return hashlib.blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=12).hexdigest()

    def get(self, key: str, make: Callable[[], npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
        """The matrix of a key, memory-mapped; computed if it is missing."""
        path = self.folder / f"{key}.npy"
        with self._locked(key):
            if not path.exists():
                # Computed before a file is opened, so that a process killed meanwhile leaves none.
                made = make()
                with replacing(path) as temporary:
                    np.save(temporary, made)
            matrix: npt.NDArray[np.float32] = np.load(path, mmap_mode="r")
            return matrix

    def drop(self, key: str) -> None:
        """Remove a matrix that is no longer needed; existing maps stay valid."""
        with self._locked(key):
            # The lock file is removed last: once it is gone, the next process starts.
            for path in sorted(self.folder.glob(f"{key}.*"), key=lambda path: path.suffix == ".lock"):
                path.unlink(missing_ok=True)

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        while True:
            with (self.folder / f"{key}.lock").open("w") as file:
                lock(file.fileno())
                # Removed while waiting for it: the next process would lock another file of that name.
                if os.fstat(file.fileno()).st_nlink:
                    yield
                    return
