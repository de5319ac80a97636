"""Embeddings on disk, so that many methods and labels share one."""

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
    """A folder of matrices, named by a hash of all that they depend on.

    Two processes that want the same one wait for each other; a file is never there in part.

    Parameters
    ----------
    folder : path
        Created where needed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as wrong:
            raise InputError(f"{folder}: the folder cannot be made ({wrong.strerror})") from wrong

    @staticmethod
    def key(**parts: object) -> str:
        """A name for what an embedding depends on: data set, sample, network, seed."""
        plain = {name: part.tolist() if isinstance(part, np.ndarray) else part for name, part in parts.items()}
        return hashlib.blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=12).hexdigest()

    def get(self, key: str, make: Callable[[], npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
        """The matrix of a key, memory-mapped; made once where it is not there."""
        path = self.folder / f"{key}.npy"
        with self._locked(key):
            if not path.exists():
                # Made before a file is opened: a process killed meanwhile leaves none.
                made = make()
                with replacing(path) as temporary:
                    np.save(temporary, made)
            matrix: npt.NDArray[np.float32] = np.load(path, mmap_mode="r")
            return matrix

    def drop(self, key: str) -> None:
        """Remove a matrix that is no longer needed; who has it mapped keeps it."""
        with self._locked(key):
            # The lock goes last: once it is gone, the next process is at work.
            for path in sorted(self.folder.glob(f"{key}.*"), key=lambda path: path.suffix == ".lock"):
                path.unlink(missing_ok=True)

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        while True:
            with (self.folder / f"{key}.lock").open("w") as file:
                lock(file.fileno())
                # Dropped while waiting for it: the next process would lock another file of that name.
                if os.fstat(file.fileno()).st_nlink:
                    yield
                    return
