"""Checks of a pool folder from an untrusted source, byte by byte, before it is mapped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.pool._mapping import mapped, mapped_matrix
from activecover.pool._matrix import blocks
from activecover.pool._parts import HEADER, check_blocks
from activecover.pool._records import BLANK
from activecover.pool._state import (
    ABOUT,
    CONTENTS,
    DATA,
    ENDS,
    IDS,
    VECTORS,
    WITHDRAWN,
    FolderState,
    read_state,
)
from activecover.strict import JsonLimits, read_json

#: The largest value a pool accepts: squares of larger ones leave float32's range.
_LARGEST = 1e15


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Limits on a pool from an untrusted source."""

    rows: int = 2_000_000
    #: For pool.json: column names, hashes of blocks, and facts of statistics.
    about: JsonLimits = field(default_factory=lambda: JsonLimits(size=1 << 24, values=1_000_000, depth=16))
    id: int = 1 << 16
    content: JsonLimits = field(default_factory=lambda: JsonLimits(size=1 << 26, values=2_000_000, depth=16))


def check_pool_folder(folder: Path, limits: PoolLimits | None = None) -> None:
    """Refuse a folder that is not a sound pool; every byte is read and none is written.

    ``pool.json`` must match its schema and its own hash. The folder must hold exactly the files it names, each with
    the recorded size and hashes. Everything that later code relies on is checked: headers, offsets in sparse rows
    and contents, row numbers, finite values, unique ids, and contents that are valid JSON. The first problem raises
    an InputError or StoreError of one line.
    """
    limits = limits or PoolLimits()
    path = folder / ABOUT
    if not path.is_file():
        raise InputError(f"{ABOUT} is missing")
    if path.stat().st_size > limits.about.size:
        raise InputError(f"{ABOUT}: {path.stat().st_size:,} bytes, {limits.about.size:,} at most")
    try:
        read_json(path.read_bytes(), limits.about)
    except InputError as wrong:
        raise InputError(f"{ABOUT}: {wrong}") from wrong
    state = read_state(folder)
    if state.rows > limits.rows:
        raise InputError(f"a pool of {state.rows:,} rows, {limits.rows:,} at most")
    _check_files(folder, state)
    _check_values(folder, state)
    _check_statistics(folder, state)
    if state.named:
        _check_ids(folder / IDS, state.rows, limits.id)
    if state.contents:
        _check_contents(folder, state, limits.content)


def _check_files(folder: Path, state: FolderState) -> None:
    """Check that the folder holds exactly the named files, with their headers, sizes and hashes."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    expected = {ABOUT, *state.files}
    for name in sorted(found ^ expected):
        raise InputError(f"{name}: {'not part of' if name in found else 'missing from'} the pool")
    for name, part in state.files.items():
        path, header = folder / name, state.header(name)
        if path.stat().st_size != state.start(name) + part.size:
            raise InputError(f"{name}: not the size that {ABOUT} records")
        with path.open("rb") as file:
            # The header may record fewer rows if some were added later; activecover itself never reads it.
            start = file.read(len(header))
        if header and (len(start) != HEADER or not start.startswith(header[:10])):
            raise InputError(f"{name}: not an array written by activecover")
        check_blocks(path, state.start(name), part)


def _check_values(folder: Path, state: FolderState) -> None:
    """Check that values are finite; the positions of sparse entries are checked when they are mapped."""
    matrix, withdrawn = mapped_matrix(folder, state), mapped(folder, state, WITHDRAWN)
    raw = withdrawn.view(np.uint8)
    if any((raw[block] > 1).any() for block in blocks(len(raw), 1)):
        raise InputError(f"{WITHDRAWN}: a byte that is neither 0 nor 1")
    if state.kind == "dense":
        values = mapped(folder, state, VECTORS)
        for block in blocks(state.rows, 4 * state.dimensions):
            wrong = block.start + np.flatnonzero(_unsound(values[block]).any(axis=1))
            _need_withdrawn(VECTORS, withdrawn[wrong])
    elif state.kind == "sparse":
        data, ends = mapped(folder, state, DATA), matrix.vectors.indptr
        for block in blocks(len(data), 4):
            places = block.start + np.flatnonzero(_unsound(data[block]))
            _need_withdrawn(DATA, withdrawn[np.searchsorted(ends, places, "right") - 1])


def _unsound(values: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
    """Which values are not finite, or too large."""
    with np.errstate(invalid="ignore"):
        return np.asarray(~(np.abs(values) <= _LARGEST))


def _need_withdrawn(name: str, withdrawn: npt.NDArray[np.bool_]) -> None:
    if not withdrawn.all():
        raise InputError(f"{name}: a value that is not finite, or too large")


def _check_statistics(folder: Path, state: FolderState) -> None:
    """Check that row numbers exist: compiled code follows them."""
    for kept in state.statistics.values():
        for file, (dtype, _) in kept["files"].items():
            values = mapped(folder, state, file)
            for block in blocks(len(values), 8 * max(1, values.shape[1])):
                part = values[block]
                if dtype == "<i4" and part.size and not (part.min() >= -1 and part.max() < state.rows):
                    raise InputError(f"{file}: names a row that does not exist")
                if dtype != "<i4" and np.isnan(part).any():
                    raise InputError(f"{file}: a value that is not a number")


def _check_ids(path: Path, rows: int, longest: int) -> None:
    seen: set[str] = set()
    for number, line in enumerate(_lines(path, longest)):
        name = read_json(line, JsonLimits(size=longest, values=longest))
        if not isinstance(name, str) or name in seen or number >= rows:
            raise InputError(f"{path.name}: line {number + 1} is not a unique id")
        seen.add(name)
    if len(seen) != rows:
        raise InputError(f"{path.name}: {len(seen):,} ids for {rows:,} rows")


def _lines(path: Path, longest: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        while line := file.readline(longest + 1):
            if len(line) > longest or not line.endswith(b"\n"):
                raise InputError(f"{path.name}: a line that is too long or cut off")
            yield line


def _check_contents(folder: Path, state: FolderState, limits: JsonLimits) -> None:
    ends = mapped(folder, state, ENDS)
    size = state.files[CONTENTS].size
    falls = ((np.diff(ends[block.start : block.stop + 1]) < 0).any() for block in blocks(len(ends), 8))
    if ends[0] != 0 or ends[-1] != size or any(falls):
        raise InputError(f"{ENDS}: offsets outside {CONTENTS}")
    with (folder / CONTENTS).open("rb") as file:
        for row in range(state.rows):
            length = int(ends[row + 1] - ends[row])
            if length > limits.size:
                raise InputError(f"{CONTENTS}: row {row} has {length:,} bytes, {limits.size:,} at most")
            record = file.read(length)
            if record.startswith(BLANK):
                continue
            _check_record(record, row, len(state.contents), limits)


def _check_record(record: bytes, row: int, width: int, limits: JsonLimits) -> None:
    try:
        # Texts may hold unpaired surrogates, which are stored as they are and are not valid UTF-8.
        text = record.decode("utf-8", "surrogatepass").encode("utf-8", "replace") if b"\xed" in record else record
        values = read_json(text, limits)
    except (InputError, UnicodeDecodeError) as wrong:
        raise InputError(f"{CONTENTS}: row {row}: {wrong}") from wrong
    if not isinstance(values, list) or len(values) != width:
        raise InputError(f"{CONTENTS}: row {row} does not have {width} values")
