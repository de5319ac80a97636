"""Writing a whole pool to a folder, piece by piece."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.files import private_folder, sync_folder, write_whole
from activecover.pool._matrix import Vectors, blocks, dense_vectors, sparse_vectors
from activecover.pool._parts import (
    Part,
    add_to,
    write_header,
)
from activecover.pool._pool import Pool
from activecover.pool._records import BLANK, heading_of, record_of
from activecover.pool._state import (
    ABOUT,
    CONTENTS,
    DATA,
    EMBEDDING,
    ENDS,
    IDS,
    INDICES,
    MOST_NARROW,
    ORIGIN,
    ROW_ENDS,
    STATISTICS,
    VECTORS,
    WITHDRAWN,
    FolderState,
    checked_about,
)
from activecover.pool._stored import Statistic


def write_pool(
    place: Path,
    pool: Pool,
    embedding: Mapping[str, bytes],
    about: Mapping[str, Any],
    *,
    compact: bool = False,
    hash_contents: bool = False,
) -> None:
    """Write all files of a pool; ``pool.json`` goes last and makes them a pool."""
    state = FolderState(
        kind=pool.kind,
        metric=pool.metric,
        dimensions=pool.dimensions,
        rows=len(pool),
        named=pool._names is not None,
        columns=pool.columns,
        contents=list(pool.contents),
        about=checked_about(about),
    )
    for name, chunks in _vector_chunks(pool, state, compact).items():
        _put(place, state, name, chunks)
    _put(place, state, ORIGIN, pieces(pool.origin, "<f4"))
    _put(place, state, WITHDRAWN, pieces(pool.withdrawn, "|b1"))
    if pool._names is not None:
        _put(place, state, IDS, id_lines(pool._names))
    if state.contents:
        ends = np.zeros(len(pool) + 1, np.int64)
        digest = hashlib.blake2b(heading_of(state.contents), digest_size=16)
        _put(place, state, CONTENTS, _record_chunks(pool, ends, digest))
        state.marked = digest.hexdigest() if hash_contents else None
        _put(place, state, ENDS, pieces(ends, "<i8"))
    private_folder(place / EMBEDDING)
    for name, data in embedding.items():
        if name in ("", "..") or Path(name).name != name:
            raise InputError(f"embedding file {name!r}: give a plain file name")
        _put(place, state, f"{EMBEDDING}/{name}", iter([data]))
    sync_folder(place / EMBEDDING)
    private_folder(place / STATISTICS)
    for name, statistic in getattr(pool, "kept_statistics", {}).items():
        put_statistic(place, state, name, statistic)
    sync_folder(place / STATISTICS)
    write_whole(place / ABOUT, state.encoded())


def put_statistic(place: Path, state: FolderState, name: str, statistic: Statistic) -> None:
    """Write the arrays of a statistic and record them in the state."""
    if not re.fullmatch(r"[\w -]+", name):
        raise InputError(f"statistic {name!r}: give a plain name")
    files = {f"{STATISTICS}/{name}-{statistic.rows}.{part}.npy": part for part in statistic.arrays}
    types = {file: ("<i4" if statistic.arrays[part].dtype.kind == "i" else "<f8") for file, part in files.items()}
    state.statistics[name] = {
        "rows": statistic.rows,
        "facts": statistic.facts,
        "files": {file: [types[file], statistic.arrays[part].shape[1]] for file, part in files.items()},
        "parts": files,
    }
    for file, part in files.items():
        (place / file).unlink(missing_ok=True)
        _put(place, state, file, pieces(statistic.arrays[part], types[file]))


def _put(place: Path, state: FolderState, name: str, chunks: Iterator[bytes]) -> None:
    state.files[name] = add_to(place / name, state.start(name), Part(), chunks)
    # Last, as it records the number of rows.
    if state.layout(name):
        write_header(place / name, state.header(name))


def _vector_chunks(pool: Pool, state: FolderState, compact: bool) -> dict[str, Iterator[bytes]]:
    if pool.kind != "sparse":
        return {VECTORS: vector_bytes(pool.vectors)}
    vectors = sparse_vectors(pool.vectors)
    ends, keep = vectors.indptr, None
    if compact and pool.withdrawn.any():
        lengths = np.diff(ends)
        keep = np.repeat(~pool.withdrawn, lengths)
        ends = np.concatenate([[0], np.cumsum(np.where(pool.withdrawn, 0, lengths), dtype=np.int64)])
    state.index = "<i4" if ends[-1] <= MOST_NARROW else "<i8"
    return {
        DATA: pieces(vectors.data, "<f4", keep),
        INDICES: pieces(vectors.indices, state.index, keep),
        ROW_ENDS: pieces(ends, "<i8"),
    }


def vector_bytes(vectors: Vectors) -> Iterator[bytes]:
    """Dense rows as little-endian float32, or packed words as they are in memory."""
    if isinstance(vectors, np.ndarray) and vectors.dtype == np.uint64:
        return pieces(vectors, None)
    return pieces(dense_vectors(vectors), "<f4")


def _record_chunks(pool: Pool, ends: npt.NDArray[np.int64], digest: hashlib.blake2b) -> Iterator[bytes]:
    """The contents of all rows, while their end offsets and hash are computed."""
    for block in blocks(len(pool), 1 << 10):
        rows = range(block.start, block.stop)
        gone = pool.withdrawn[block].tolist()
        records = [
            BLANK if erased else record_of(list(pool.content(row).values()), row)
            for row, erased in zip(rows, gone, strict=True)
        ]
        ends[block.start + 1 : block.stop + 1] = ends[block.start] + np.cumsum([len(record) for record in records])
        whole = b"".join(records)
        digest.update(whole)
        yield whole


def pieces(array: npt.NDArray[Any], dtype: str | None, keep: npt.NDArray[np.bool_] | None = None) -> Iterator[bytes]:
    """An array's bytes, a block at a time; with ``keep``, only those entries."""
    row_bytes = array.dtype.itemsize * math.prod(array.shape[1:])
    for block in blocks(len(array), row_bytes):
        part = array[block] if keep is None else array[block][keep[block]]
        yield np.ascontiguousarray(part, dtype).tobytes()


def id_lines(names: Sequence[str]) -> Iterator[bytes]:
    """The lines of ``ids.jsonl``, in blocks."""
    for block in blocks(len(names), 1 << 10):
        yield "".join(json.dumps(name, ensure_ascii=False) + "\n" for name in names[block]).encode()
