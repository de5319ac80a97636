"""Known positives from outside the pool: kept in a file of the home, as the log holds no vectors."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError, StoreError
from activecover.files import private_folder, write_whole
from activecover.pool import PackedBits, Pool, VectorsLike, as_csr

#: What the arrays in such a file are called.
ARRAYS = frozenset({"data", "indices", "indptr", "shape", "packed", "dimensions", "vectors"})


def joined(pool: Pool, first: VectorsLike | None, more: VectorsLike) -> VectorsLike:
    """Outside vectors of a pool, and more of them."""
    for vectors in (more,) if first is None else (first, more):
        _checked(pool, vectors)
    if first is None:
        return more
    if sparse.issparse(more):
        stacked: sparse.csr_array = sparse.vstack([as_csr(first), as_csr(more)], format="csr")
        return stacked
    if isinstance(first, PackedBits) and isinstance(more, PackedBits):
        return PackedBits(np.concatenate([np.asarray(first.packed), np.asarray(more.packed)]), more.dimensions)
    return np.concatenate([np.asarray(first), np.asarray(more)])


def save_outside(path: Path, vectors: VectorsLike) -> None:
    """Write outside vectors to a file: whole, or not at all."""
    data = io.BytesIO()
    if sparse.issparse(vectors):
        csr = as_csr(vectors)
        np.savez(data, data=csr.data, indices=csr.indices, indptr=csr.indptr, shape=csr.shape)
    elif isinstance(vectors, PackedBits):
        np.savez(data, packed=np.asarray(vectors.packed), dimensions=vectors.dimensions)
    else:
        np.savez(data, vectors=np.asarray(vectors))
    private_folder(path.parent)
    write_whole(path, data.getvalue())


def load_outside(path: Path) -> VectorsLike:
    """What :func:`save_outside` wrote."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found: dict[str, npt.NDArray[Any]] = {name: file[name] for name in file.files}
        if "vectors" in found:
            return found["vectors"]
        if "packed" in found:
            return PackedBits(found["packed"], int(found["dimensions"]))
        return sparse.csr_array((found["data"], found["indices"], found["indptr"]), shape=tuple(found["shape"]))
    except (OSError, ValueError, KeyError, EOFError) as wrong:
        raise StoreError(f"{path}: the known positives from outside cannot be read ({wrong})") from wrong


def _checked(pool: Pool, vectors: VectorsLike) -> None:
    try:
        pool.encode(vectors)
    except InputError as wrong:
        raise InputError(f"known positives from outside: {wrong}") from wrong
