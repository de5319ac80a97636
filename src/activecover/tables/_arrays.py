"""NumPy files, including SciPy's sparse matrices; nothing is unpickled."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError
from activecover.tables._reading import readable

_MAGIC = b"\x93NUMPY"
#: Members that ``scipy.sparse.save_npz`` writes for every matrix format.
_SPARSE = {"format", "shape", "data"}


def read_array(path: str | Path) -> npt.NDArray[Any]:
    """Read an array of any shape from a ``.npy`` file (memory-mapped)."""
    path = Path(path)
    with readable(path):
        # NumPy recognises its formats by their first bytes and treats anything else as a pickle.
        _check_start(path, _MAGIC, "a .npy file; write it with numpy.save")
        try:
            return np.lib.format.open_memmap(path, mode="r")
        except ValueError as wrong:
            if "Python objects" in str(wrong):
                raise InputError(f"{path}: holds Python objects; save numbers or text (astype) instead") from wrong
            raise


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """Type and shape of the array in a ``.npy`` file, and where its values begin."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]
    offset: int


def npy_header(file: IO[bytes], where: str | Path) -> NpyHeader:
    """Read the header of a ``.npy`` file."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise InputError(f"{where}: not a .npy file; write it with numpy.save")
    file.seek(0)
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise InputError(f"{where}: .npy of version {version}; write it with numpy.save as a plain table of numbers")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(file)
    return NpyHeader(shape, by_columns, dtype, file.tell())


@contextmanager
def npz_arrays(path: Path) -> Iterator[Mapping[str, npt.NDArray[Any]]]:
    """The arrays of an ``.npz`` file by name, each read on demand."""
    with readable(path):
        _check_start(path, b"PK", "an .npz file; write it with numpy.savez")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            yield archive


def sparse_in(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> sparse.csr_array | None:
    """The sparse matrix, in any format, of an ``.npz`` file written by SciPy; None if it is not one."""
    return cast("sparse.csr_array", sparse.load_npz(path)) if {*arrays} >= _SPARSE else None


def vectors_in(where: str | Path, arrays: Mapping[str, npt.NDArray[Any]], others: Collection[str] = ()) -> str | None:
    """The name of the array with the vectors: X, or the only two-dimensional one."""
    if "X" in arrays and "X" not in others:
        return "X"
    tables = [name for name in arrays if name not in others and np.ndim(arrays[name]) == 2]
    if len(tables) > 1:
        names = ", ".join(arrays)
        raise InputError(f"{where}: several arrays have two dimensions; name the vectors X (arrays are: {names})")
    return tables[0] if tables else None


def _check_start(path: Path, start: bytes, what: str) -> None:
    with path.open("rb") as file:
        if file.read(len(start)) != start:
            raise InputError(f"{path}: not {what}")
