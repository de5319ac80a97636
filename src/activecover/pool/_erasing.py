"""Which bytes to overwrite, in which files, to erase rows from a pool folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from activecover.pool._mapping import mapped
from activecover.pool._records import BLANK
from activecover.pool._state import (
    CONTENTS,
    DATA,
    ENDS,
    INDICES,
    ROW_ENDS,
    VECTORS,
    WITHDRAWN,
    FolderState,
    row_bytes,
)


def statistic_spans(
    folder: Path, state: FolderState, gone: npt.NDArray[np.int64]
) -> dict[str, Iterator[tuple[int, bytes]]]:
    """What to write where, in the files of the statistics, to erase rows."""
    spans: dict[str, Iterator[tuple[int, bytes]]] = {}
    for kept in state.statistics.values():
        for file, (dtype, width) in kept["files"].items():
            nothing = np.array(-1 if dtype == "<i4" else np.inf, dtype).tobytes()
            inside, size = gone[gone < kept["rows"]].tolist(), len(nothing)
            places = [(row * width * size, nothing * width) for row in inside]
            if dtype == "<i4":
                named = np.flatnonzero(np.isin(mapped(folder, state, file), gone))
                places += [(place * size, nothing) for place in named.tolist()]
            spans[file] = iter(places)
    return spans


def erased_spans(
    folder: Path, state: FolderState, rows: npt.NDArray[np.int64]
) -> dict[str, Iterator[tuple[int, bytes]]]:
    """What to write where, in each file, to erase rows."""
    spans: dict[str, Iterator[tuple[int, bytes]]] = {}
    if state.kind == "sparse":
        ends = mapped(folder, state, ROW_ENDS)
        starts, lengths = ends[rows].tolist(), (ends[rows + 1] - ends[rows]).tolist()
        width, nan = np.dtype(state.index).itemsize, np.float32(np.nan).tobytes()
        spans[DATA] = ((4 * a, nan * n) for a, n in zip(starts, lengths, strict=True))
        spans[INDICES] = ((width * a, bytes(width * n)) for a, n in zip(starts, lengths, strict=True))
    else:
        layout = state.layout(VECTORS)
        assert layout is not None
        size = row_bytes(layout)
        empty = np.full(state.dimensions, np.nan, "<f4").tobytes() if state.kind == "dense" else bytes(size)
        spans[VECTORS] = ((row * size, empty) for row in rows.tolist())
    if state.contents:
        ends = mapped(folder, state, ENDS)
        bounds = zip(ends[rows].tolist(), ends[rows + 1].tolist(), strict=True)
        spans[CONTENTS] = ((first, BLANK * (last - first)) for first, last in bounds)
    spans |= statistic_spans(folder, state, rows)
    spans[WITHDRAWN] = ((row, b"\1") for row in rows.tolist())
    return spans
