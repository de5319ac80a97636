"""Reading a pool folder: ids into memory, arrays as memory maps, each checked against ``pool.json``."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import StoreError
from activecover.pool._bits import BitMatrix
from activecover.pool._dense import DenseMatrix
from activecover.pool._matrix import AnyMatrix, blocks
from activecover.pool._parts import (
    HEADER,
    array_header,
)
from activecover.pool._sparse import SparseMatrix
from activecover.pool._state import (
    DATA,
    EMBEDDING,
    ENDS,
    IDS,
    INDICES,
    ORIGIN,
    ROW_ENDS,
    VECTORS,
    WITHDRAWN,
    FolderState,
)
from activecover.pool._stored import Statistic


def read_ids(path: Path, state: FolderState) -> list[str]:
    """The ids of all rows."""
    try:
        with path.open("rb") as file:
            lines = file.read(state.files[IDS].size).decode()
        names: list[str] = json.loads("[" + lines.rstrip("\n").replace("\n", ",") + "]")
    except ValueError:
        names = []
    if len(names) != state.rows:
        raise StoreError(f"{path}: damaged, not {state.rows:,} ids; restore the pool from a copy")
    return names


def mapped(folder: Path, state: FolderState, name: str) -> npt.NDArray[Any]:
    """An array of the folder, mapped read-only; it must have the length that ``pool.json`` implies."""
    layout = state.layout(name)
    assert layout is not None
    shape = state.shape(name)
    fixed = {WITHDRAWN: state.rows, VECTORS: state.rows, ROW_ENDS: state.rows + 1, ENDS: state.rows + 1}
    if shape[0] != fixed.get(name, shape[0]):
        raise StoreError(f"{folder / name}: damaged, {shape[0]:,} entries; restore the pool from a copy")
    return map_bytes(folder / name, layout[0], shape, HEADER)


def map_bytes(path: Path, dtype: str, shape: tuple[int, ...], start: int) -> npt.NDArray[Any]:
    """A memory map; an empty array if there is nothing to map."""
    # The system refuses to map an empty file.
    return np.memmap(path, dtype, "r", start, shape) if math.prod(shape) else np.empty(shape, dtype)


def mapped_matrix(folder: Path, state: FolderState) -> AnyMatrix:
    """The vectors of the pool, mapped."""
    if state.kind == "dense":
        origin = np.array(mapped(folder, state, ORIGIN))
        return DenseMatrix.restored(mapped(folder, state, VECTORS), origin, state.metric, state.columns)
    if state.kind == "bits":
        return BitMatrix.restored(mapped(folder, state, VECTORS).view(np.uint64), state.dimensions, state.columns)
    data, indices, ends = (mapped(folder, state, name) for name in (DATA, INDICES, ROW_ENDS))
    _check_entries(folder, state, data, indices, ends)
    parts = (data, indices, ends.astype(indices.dtype))
    rows = sparse.csr_array(parts, shape=(state.rows, state.dimensions), copy=False)
    return SparseMatrix.restored(rows, state.metric, state.columns)


def _check_entries(
    folder: Path,
    state: FolderState,
    data: npt.NDArray[np.float32],
    indices: npt.NDArray[np.integer],
    ends: npt.NDArray[np.int64],
) -> None:
    """Refuse offsets and indices that point outside: compiled code would follow them."""
    if ends[0] != 0 or ends[-1] != len(data) or len(data) != len(indices) or (np.diff(ends) < 0).any():
        raise StoreError(f"{folder / ROW_ENDS}: damaged; restore the pool from a copy")
    for block in blocks(len(indices), 4):
        if indices[block].min() < 0 or indices[block].max() >= state.dimensions:
            raise StoreError(f"{folder / INDICES}: damaged; restore the pool from a copy")


def read_statistic(folder: Path, state: FolderState, name: str) -> Statistic:
    """A stored statistic, in memory."""
    kept = state.statistics[name]
    arrays = {part: np.array(mapped(folder, state, file)) for file, part in kept["parts"].items()}
    return Statistic(arrays, kept["facts"])


def check_header(path: Path, state: FolderState) -> None:
    """Refuse an array whose header contradicts pool.json; it may record fewer rows."""
    layout = state.layout(path.name) if path.parent.name != EMBEDDING else None
    if layout is None:
        return
    with path.open("rb") as file:
        header = file.read(HEADER)
    told = re.search(rb"'shape': \((\d{1,18}),", header)
    rows = int(told[1]) if told else -1
    if header != array_header(layout[0], (rows, *layout[1])) or rows > state.shape(path.name)[0]:
        raise StoreError(f"{path}: its header is damaged; restore the pool from a copy")
