"""Small pools of every kind, and comparisons of pools, for the tests of pool folders."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from activecover.pool import PackedBits, Pool

KINDS = pytest.mark.parametrize("kind", ["dense", "sparse", "bits"])
FORK = multiprocessing.get_context("fork")


def values_of(kind: str, rows: int, first: int = 0) -> Any:
    """Rows with bytes that no other row has: numbers for dense and sparse, bits for bits."""
    if kind == "bits":
        marks = [np.frombuffer(f"ROW{first + row:05d}".encode(), np.uint8) for row in range(rows)]
        return PackedBits(np.stack(marks), 64)
    dense = np.zeros((rows, 4), np.float32)
    # Not to be centred, but for one column.
    dense[:, 0], dense[:, 2] = 1000.25 * np.arange(first + 1, first + rows + 1), 0.5
    dense[:, 3] = np.arange(first, first + rows) % 2
    return sparse.csr_array(dense) if kind == "sparse" else dense


def texts_of(rows: int, first: int = 0) -> dict[str, list[Any]]:
    return {
        "text": [f"Märker-{first + row:05d}-" + "x" * (row % 7) for row in range(rows)],
        "year": [1900 + row for row in range(rows)],
    }


def names_of(rows: int, first: int = 0) -> list[str]:
    return [f"id{first + row}\n" for row in range(rows)]


def make(kind: str, rows: int = 6) -> Pool:
    metric = "jaccard" if kind == "bits" else "euclidean"
    return Pool(values_of(kind, rows), metric=metric, ids=names_of(rows), contents=texts_of(rows))


def raw(kind: str, pool: Pool, row: int) -> bytes:
    """The bytes that a row's vector has in a file."""
    stored = pool.take([row])
    return bytes((stored.data[:1] if kind == "sparse" else stored[0, :1]).tobytes())


def plain(vectors: Any) -> list[bytes]:
    if sparse.issparse(vectors):
        return [part.tobytes() for part in (vectors.data, vectors.indices, vectors.indptr)]
    return [np.ascontiguousarray(vectors).tobytes()]


def same(one: Pool, other: Pool) -> None:
    assert (one.kind, one.metric, one.dimensions, one.columns) == (
        other.kind, other.metric, other.dimensions, other.columns,
    )  # fmt: skip
    assert one.vectors.dtype == other.vectors.dtype
    assert plain(one.vectors) == plain(other.vectors)
    assert one.origin.tobytes() == other.origin.tobytes()
    assert one.ids == other.ids
    assert (one._names is None) == (other._names is None)
    assert repr({k: list(v) for k, v in one.contents.items()}) == repr({k: list(v) for k, v in other.contents.items()})
    assert one.withdrawn.tolist() == other.withdrawn.tolist()
    assert one.fingerprint(contents=True) == other.fingerprint(contents=True)


def everything(folder: Path) -> bytes:
    """The raw bytes of every file, hidden ones and neighbours included."""
    return b"\n".join(path.read_bytes() for path in sorted(folder.parent.rglob("*")) if path.is_file())
