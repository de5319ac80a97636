"""Pools kept on disk: stored once, mapped by all who use them, and erased from in place."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import InputError, StoreError
from activecover.files import locked, private_folder, sync_folder, write_whole
from activecover.pool._bits import BitMatrix
from activecover.pool._dense import DenseMatrix
from activecover.pool._matrix import AnyMatrix, Vectors, blocks, dense_vectors, sparse_vectors
from activecover.pool._parts import (
    HEADER,
    Part,
    add_to,
    array_header,
    check_blocks,
    check_size,
    copy_part,
    cut,
    new_folder,
    overwrite,
    said,
    write_header,
)
from activecover.pool._pool import Pool, checked_rows, index_of
from activecover.pool._records import BLANK, heading_of, record_of
from activecover.pool._schema import check_stored
from activecover.pool._sparse import SparseMatrix
from activecover.pool._stored import Mapped, Records, Statistic, StoredPool, rows_encoded

FORMAT = 1
_ABOUT = "pool.json"
_JOURNAL = "erasing.json"
_EMBEDDING = "embedding"
_STATISTICS = "statistics"
_VECTORS, _DATA, _INDICES, _ROW_ENDS = "vectors.npy", "data.npy", "indices.npy", "indptr.npy"
_ORIGIN, _WITHDRAWN, _IDS = "origin.npy", "withdrawn.npy", "ids.jsonl"
_CONTENTS, _ENDS = "contents.bin", "offsets.npy"
#: More entries than this need wider indices than were stored.
_MOST_NARROW = 2**31 - 1


@dataclass
class _State:
    """What ``pool.json`` says: with it a change is there, or not at all."""

    kind: str
    metric: str
    dimensions: int
    rows: int
    named: bool
    columns: list[str] | None
    contents: list[str]
    about: dict[str, Any]
    index: str = "<i4"
    format: int = FORMAT
    files: dict[str, Part] = field(default_factory=dict)
    #: Of each statistic its facts, the file of each of its arrays, and their types and widths.
    statistics: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: A hash of the contents as they were at first, by which the pool is still known when rows have been erased.
    marked: str | None = None

    def layout(self, name: str) -> tuple[str, tuple[int, ...]] | None:
        """Type and width of an array's rows; None for a file that is no array."""
        if name == _VECTORS:
            return ("<f4", (self.dimensions,)) if self.kind == "dense" else ("|u1", (-(-self.dimensions // 64) * 8,))
        if name.startswith(f"{_STATISTICS}/"):
            dtype, width = next(kept["files"][name] for kept in self.statistics.values() if name in kept["files"])
            return dtype, (width,)
        arrays = {_DATA: "<f4", _INDICES: self.index, _ROW_ENDS: "<i8", _ORIGIN: "<f4", _WITHDRAWN: "|b1", _ENDS: "<i8"}
        return (arrays[name], ()) if name in arrays else None

    def start(self, name: str) -> int:
        """Bytes before the first that counts."""
        return HEADER if self.layout(name) else 0

    def header(self, name: str) -> bytes:
        """What an array's file begins with; nothing for others."""
        layout = self.layout(name)
        if layout is None:
            return b""
        return array_header(layout[0], self.shape(name))

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, from what its file holds."""
        layout = self.layout(name)
        assert layout is not None
        return (self.files[name].size // _row_bytes(layout), *layout[1])

    def encoded(self) -> bytes:
        """As it is written."""
        said_of = asdict(self)
        return json.dumps({**said_of, "check": _check(said_of)}).encode()


class PoolFolder:
    """A pool in a folder of plain files.

    ``pool.json`` says what there is, with a size and hashes for each file; ``vectors.npy`` holds the stored
    vectors (``data.npy``, ``indices.npy`` and ``indptr.npy`` where they are sparse), ``contents.bin`` a
    record for each row and ``offsets.npy`` where each ends, ``ids.jsonl`` the ids, ``withdrawn.npy`` which rows
    are erased, ``embedding/`` what made the vectors, and ``statistics/`` what was derived from all rows.

    Several processes may use a folder at once. One at a time changes it; others see erased rows at
    once, and added ones with ``refresh``.

    Parameters
    ----------
    folder : path
        Where :meth:`create` or :meth:`copy_to` has put a pool.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "letters"
    >>> folder = PoolFolder.create(place, Pool([[0.0], [1.0]], ids=["a", "b"], contents={"text": ["x", "y"]}))
    >>> pool = folder.load()
    >>> pool, pool.content(1)
    (<Pool: 2 rows x 1, euclidean>, {'text': 'y'})
    >>> folder.erase([1])
    >>> pool.take([1]), pool.content(1), pool.withdrawn
    (array([[nan]], dtype=float32), {'text': None}, array([False,  True]))
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._pools: weakref.WeakSet[StoredPool] = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"<PoolFolder: {self.folder}>"

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["folder"])  # type: ignore[misc]

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        pool: Pool,
        *,
        embedding_files: Mapping[str, bytes] | None = None,
        about: Mapping[str, Any] | None = None,
        mark: bool = True,
    ) -> PoolFolder:
        """Store a pool in a new folder: all of it, or nothing.

        Parameters
        ----------
        folder : path
            A folder that does not exist yet.
        pool : Pool
            Any kind of pool; its vectors and contents are read piece by piece.
        embedding_files : mapping of file name to bytes, optional
            What made the vectors, to be kept with them.
        about : mapping, optional
            Anything else worth keeping that JSON can hold.
        mark : bool
            Whether to keep a hash of all contents, by which the pool is still known after rows were erased. It says
            something of erased rows to those who know all others.
        """
        target = Path(folder)
        with new_folder(target) as place:
            _write(place, pool, embedding_files or {}, about or {}, mark=mark)
        return cls(target)

    def load(self, *, writable: bool = False) -> StoredPool:
        """The pool, with its vectors mapped and its contents read when they are asked for.

        Parameters
        ----------
        writable : bool
            Whether ``extend`` and ``withdraw`` of the pool change the folder, or the pool in memory alone.
        """
        pool = StoredPool(self, self.mapped(), writable=writable)
        self._pools.add(pool)
        return pool

    def at(self, place: Path, pool: StoredPool) -> PoolFolder:
        """The folder in another place, for a pool that moves there."""
        moved = PoolFolder(place)
        self._pools.discard(pool)
        moved._pools.add(pool)
        return moved

    def append(
        self,
        vectors: Any,
        *,
        ids: Sequence[str] | None = None,
        contents: Mapping[str, Sequence[Any]] | None = None,
        encoded: bool = False,
    ) -> npt.NDArray[np.int64]:
        """Add rows at the end, on the disk, and return their numbers.

        Parameters
        ----------
        vectors : array, sparse matrix or PackedBits
            As ``Pool.extend`` takes them; with ``encoded``, as ``Pool.encode`` gives them.
        ids, contents
            As ``Pool.extend`` takes them.
        encoded : bool
            Whether the vectors are to be stored as they are.
        """
        with self._changing("rows cannot be added") as state:
            matrix = _mapped_matrix(self.folder, state)
            added = rows_encoded(matrix, vectors) if encoded else matrix.encode(vectors)
            grown = self._grown(state, added, ids, contents)
            numbers = np.arange(state.rows, grown.rows)
        for pool in self._pools:
            if pool.writable:
                pool.refresh()
        return numbers

    def erase(self, rows: npt.ArrayLike) -> None:
        """Overwrite the vectors and contents of rows in place, on the disk. Numbers and ids stay."""
        with self._changing("rows cannot be erased") as state:
            chosen = checked_rows(rows, state.rows)
            fresh = np.unique(chosen[~_map(self.folder, state, _WITHDRAWN)[chosen]])
            if fresh.size:
                write_whole(self.folder / _JOURNAL, json.dumps(fresh.tolist()).encode())
                self._erase(state, fresh)
        if chosen.size:
            for pool in self._pools:
                pool.erased(chosen)

    def keep_statistic(self, name: str, statistic: Statistic) -> None:
        """Store what was derived from the first rows; what is known of as many or more of them stays.

        Parameters
        ----------
        name : str
            A file name. What is kept under it of fewer rows is replaced.
        statistic : Statistic
            Its arrays have a line for each row. Whole numbers are those of rows, -1 for none; other numbers
            are infinite for none. When a row is erased, its line and its number are overwritten in place.
        """
        with self._changing("the statistics cannot be kept") as state:
            old = state.statistics.get(name, {"rows": -1, "files": {}})
            if old["rows"] >= statistic.rows:
                return
            private_folder(self.folder / _STATISTICS)
            changed = replace(state, files=dict(state.files), statistics=dict(state.statistics))
            _put_statistic(self.folder, changed, name, statistic)
            sync_folder(self.folder / _STATISTICS)
            # Rows may have been erased since it was derived.
            gone = np.flatnonzero(_map(self.folder, state, _WITHDRAWN)[: statistic.rows])
            for file, spans in _statistic_spans(self.folder, changed, gone).items():
                changed.files[file] = overwrite(self.folder / file, HEADER, changed.files[file], spans)
            for file in old["files"]:
                del changed.files[file]
            self._commit(changed)
            for file in old["files"]:
                (self.folder / file).unlink(missing_ok=True)

    def copy_to(self, folder: str | os.PathLike[str], *, compact: bool = False) -> PoolFolder:
        """A copy of its own in another folder.

        Parameters
        ----------
        folder : path
            A folder that does not exist yet.
        compact : bool
            Whether erased rows take no room in the copy, so that it does not tell how long their contents
            were, nor how many entries their sparse vectors had. Else it is the same byte by byte.
        """
        with self._changing("the pool cannot be copied") as state, new_folder(Path(folder)) as place:
            if compact:
                pool = StoredPool(self, self._open(state), writable=False)
                _write(place, pool, self._embedding(state), state.about, compact=True)
                return PoolFolder(folder)
            for inside in (_EMBEDDING, _STATISTICS):
                private_folder(place / inside)
            for name, part in state.files.items():
                copy_part(self.folder / name, place / name, state.start(name) + part.size)
            for inside in (_EMBEDDING, _STATISTICS):
                sync_folder(place / inside)
            write_whole(place / _ABOUT, state.encoded())
        return PoolFolder(folder)

    def verify(self) -> None:
        """Read every file and compare it with its hashes; the first that differs is named."""
        with self._changing("the pool cannot be checked") as state:
            for name, part in state.files.items():
                check_blocks(self.folder / name, state.start(name), part)
                _check_header(self.folder / name, state)

    def files(self) -> list[Path]:
        """All files that make up the pool."""
        return [self.folder / _ABOUT, *(self.folder / name for name in self._state().files)]

    def size(self) -> int:
        """Bytes of all files together."""
        with said(self.folder, "the pool cannot be read"):
            return sum(path.stat().st_size for path in self.files())

    @property
    def rows(self) -> int:
        """How many rows there are, erased ones included."""
        return self._state().rows

    @property
    def about(self) -> dict[str, Any]:
        """What was kept with the pool when it was created."""
        return self._state().about

    @property
    def marked(self) -> str | None:
        """What ``fingerprint`` said of the contents when the pool was stored, if that was kept."""
        return self._state().marked

    @property
    def embedding_folder(self) -> Path:
        """Where the files lie that made the vectors."""
        return self.folder / _EMBEDDING

    def embedding_files(self) -> dict[str, bytes]:
        """What made the vectors, checked against its hashes."""
        with said(self.folder, "the embedding cannot be read"):
            return self._embedding(self._state())

    def mapped(self) -> Mapped:
        """What the folder holds now; an erasure that was cut short is finished first."""
        with said(self.folder, "the pool cannot be read"):
            if (self.folder / _JOURNAL).exists():
                with self._changing("erasing rows was cut short and cannot be finished"):
                    pass
            return self._open(self._state())

    def _open(self, state: _State) -> Mapped:
        names = _read_ids(self.folder / _IDS, state) if state.named else None
        withdrawn = np.array(_map(self.folder, state, _WITHDRAWN))
        records = None
        if state.contents:
            data = _map_bytes(self.folder / _CONTENTS, "|u1", (state.files[_CONTENTS].size,), 0)
            records = Records(self.folder / _CONTENTS, state.contents, data, _map(self.folder, state, _ENDS))
        matrix = _mapped_matrix(self.folder, state)
        statistics = {name: _read_statistic(self.folder, state, name) for name in state.statistics}
        return Mapped(matrix, state.metric, state.columns, names, withdrawn, records, statistics)

    def _state(self) -> _State:
        state = _read_state(self.folder)
        with said(self.folder, "the pool cannot be read"):
            for name, part in state.files.items():
                check_size(self.folder / name, state.start(name), part)
        return state

    def _embedding(self, state: _State) -> dict[str, bytes]:
        found = {}
        for name, part in state.files.items():
            if name.startswith(f"{_EMBEDDING}/"):
                check_blocks(self.folder / name, 0, part)
                found[Path(name).name] = (self.folder / name).read_bytes()
        return found

    @contextmanager
    def _changing(self, what: str) -> Iterator[_State]:
        """Hold the folder, with what was cut short finished or taken back."""
        if not (self.folder / _ABOUT).is_file():
            _read_state(self.folder)  # says what is wrong
        with said(self.folder, what), locked(self.folder):
            state = self._state()
            journal = self.folder / _JOURNAL
            if journal.exists():
                try:
                    rows = checked_rows(json.loads(journal.read_bytes()), state.rows)
                except ValueError as wrong:
                    raise StoreError(f"{journal}: damaged; restore the pool from a copy") from wrong
                self._erase(state, rows)
            yield state

    def _cut(self, state: _State) -> None:
        for name, part in state.files.items():
            cut(self.folder / name, state.start(name), part)
        if not state.named:
            (self.folder / _IDS).unlink(missing_ok=True)

    def _commit(self, state: _State) -> None:
        write_whole(self.folder / _ABOUT, state.encoded())

    def _erase(self, state: _State, rows: npt.NDArray[np.int64]) -> None:
        """Erase rows that the journal names; any number of times comes to the same."""
        self._cut(state)
        for name, spans in _spans(self.folder, state, rows).items():
            state.files[name] = overwrite(self.folder / name, state.start(name), state.files[name], spans)
        self._commit(state)
        # Where its removal is lost in a crash, the rows are erased once more.
        (self.folder / _JOURNAL).unlink()

    def _grown(
        self,
        state: _State,
        added: Vectors,
        ids: Sequence[str] | None,
        contents: Mapping[str, Sequence[Any]] | None,
    ) -> _State:
        count = int(added.shape[0])
        values = {name: list(given) for name, given in (contents or {}).items()}
        if set(values) != set(state.contents) or any(len(given) != count for given in values.values()):
            raise InputError(f"added rows need the pool's content columns: {sorted(state.contents) or 'none'}")
        names = self._added_names(state, ids, count)
        records = [
            record_of([values[name][row] for name in state.contents], state.rows + row)
            for row in range(count if state.contents else 0)
        ]
        self._cut(state)
        grown = replace(state, rows=state.rows + count, named=names is not None, files=dict(state.files))
        try:
            for name, chunks in self._added(state, added, names, records).items():
                known = state.files.get(name, Part())
                grown.files[name] = add_to(self.folder / name, state.start(name), known, chunks)
            self._commit(grown)
        except BaseException:
            with suppress(OSError, StoreError):
                # Unless it is there as a whole already.
                self._cut(_read_state(self.folder))
            raise
        for name in grown.files:
            # For other readers of such files; we go by pool.json.
            if grown.layout(name) and grown.files[name].size != state.files[name].size:
                write_header(self.folder / name, grown.header(name))
        return grown

    def _added_names(self, state: _State, ids: Sequence[str] | None, count: int) -> list[str] | None:
        """The ids to write, all of them where rows had only numbers before."""
        if ids is None:
            if state.named:
                raise InputError("this pool has ids of its own: give ids for the added rows")
            return None
        if len(ids) != count:
            raise InputError(f"{len(ids)} ids for {count} rows; give one per row")
        known = _read_ids(self.folder / _IDS, state) if state.named else [str(row) for row in range(state.rows)]
        index_of([*known, *ids])
        return list(ids) if state.named else [*known, *ids]

    def _added(
        self, state: _State, added: Vectors, names: list[str] | None, records: list[bytes]
    ) -> dict[str, Iterator[bytes]]:
        """What each file is given at its end."""
        chunks: dict[str, Iterator[bytes]] = {}
        if state.kind == "sparse":
            added, before = sparse_vectors(added), state.files[_DATA].size // 4
            if before + added.nnz > _MOST_NARROW and state.index == "<i4":
                raise InputError("more than 2³¹ entries: create a new pool of all rows")
            chunks[_DATA] = _pieces(added.data, "<f4")
            chunks[_INDICES] = _pieces(added.indices, state.index)
            chunks[_ROW_ENDS] = _pieces(added.indptr[1:].astype(np.int64) + before, "<i8")
        else:
            chunks[_VECTORS] = _rows_of(added)
        if names is not None:
            chunks[_IDS] = _id_lines(names)
        if state.contents:
            ends = state.files[_CONTENTS].size + np.cumsum([len(record) for record in records], dtype=np.int64)
            chunks[_CONTENTS], chunks[_ENDS] = iter([b"".join(records)]), _pieces(ends, "<i8")
        chunks[_WITHDRAWN] = _pieces(np.zeros(added.shape[0], bool), "|b1")
        return chunks


# -- writing a whole pool ------------------------------------------------------------------------------


def _write(
    place: Path,
    pool: Pool,
    embedding: Mapping[str, bytes],
    about: Mapping[str, Any],
    *,
    compact: bool = False,
    mark: bool = False,
) -> None:
    state = _State(
        kind=pool.kind,
        metric=pool.metric,
        dimensions=pool.dimensions,
        rows=len(pool),
        named=pool._names is not None,
        columns=pool.columns,
        contents=list(pool.contents),
        about=_checked_about(about),
    )
    for name, chunks in _vector_chunks(pool, state, compact).items():
        _put(place, state, name, chunks)
    _put(place, state, _ORIGIN, _pieces(pool.origin, "<f4"))
    _put(place, state, _WITHDRAWN, _pieces(pool.withdrawn, "|b1"))
    if pool._names is not None:
        _put(place, state, _IDS, _id_lines(pool._names))
    if state.contents:
        ends = np.zeros(len(pool) + 1, np.int64)
        digest = hashlib.blake2b(heading_of(state.contents), digest_size=16)
        _put(place, state, _CONTENTS, _record_chunks(pool, ends, digest))
        state.marked = digest.hexdigest() if mark else None
        _put(place, state, _ENDS, _pieces(ends, "<i8"))
    private_folder(place / _EMBEDDING)
    for name, data in embedding.items():
        if name in ("", "..") or Path(name).name != name:
            raise InputError(f"embedding file {name!r}: give a plain file name")
        _put(place, state, f"{_EMBEDDING}/{name}", iter([data]))
    sync_folder(place / _EMBEDDING)
    private_folder(place / _STATISTICS)
    for name, statistic in getattr(pool, "kept_statistics", {}).items():
        _put_statistic(place, state, name, statistic)
    sync_folder(place / _STATISTICS)
    write_whole(place / _ABOUT, state.encoded())


def _put_statistic(place: Path, state: _State, name: str, statistic: Statistic) -> None:
    if not re.fullmatch(r"[\w -]+", name):
        raise InputError(f"statistic {name!r}: give a plain name")
    files = {f"{_STATISTICS}/{name}-{statistic.rows}.{part}.npy": part for part in statistic.arrays}
    types = {file: ("<i4" if statistic.arrays[part].dtype.kind == "i" else "<f8") for file, part in files.items()}
    state.statistics[name] = {
        "rows": statistic.rows,
        "facts": statistic.facts,
        "files": {file: [types[file], statistic.arrays[part].shape[1]] for file, part in files.items()},
        "parts": files,
    }
    for file, part in files.items():
        (place / file).unlink(missing_ok=True)
        _put(place, state, file, _pieces(statistic.arrays[part], types[file]))


def _put(place: Path, state: _State, name: str, chunks: Iterator[bytes]) -> None:
    state.files[name] = add_to(place / name, state.start(name), Part(), chunks)
    # After the rest, as it says how many rows came.
    if state.layout(name):
        write_header(place / name, state.header(name))


def _vector_chunks(pool: Pool, state: _State, compact: bool) -> dict[str, Iterator[bytes]]:
    if pool.kind != "sparse":
        return {_VECTORS: _rows_of(pool.vectors)}
    vectors = sparse_vectors(pool.vectors)
    ends, keep = vectors.indptr, None
    if compact and pool.withdrawn.any():
        lengths = np.diff(ends)
        keep = np.repeat(~pool.withdrawn, lengths)
        ends = np.concatenate([[0], np.cumsum(np.where(pool.withdrawn, 0, lengths), dtype=np.int64)])
    state.index = "<i4" if ends[-1] <= _MOST_NARROW else "<i8"
    return {
        _DATA: _pieces(vectors.data, "<f4", keep),
        _INDICES: _pieces(vectors.indices, state.index, keep),
        _ROW_ENDS: _pieces(ends, "<i8"),
    }


def _rows_of(vectors: Vectors) -> Iterator[bytes]:
    """Dense rows as little-endian float32, or words as their bytes lie."""
    if isinstance(vectors, np.ndarray) and vectors.dtype == np.uint64:
        return _pieces(vectors, None)
    return _pieces(dense_vectors(vectors), "<f4")


def _record_chunks(pool: Pool, ends: npt.NDArray[np.int64], digest: hashlib.blake2b) -> Iterator[bytes]:
    """The contents row by row; where each ends is noted on the way, and all of it is hashed."""
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


def _pieces(array: npt.NDArray[Any], dtype: str | None, keep: npt.NDArray[np.bool_] | None = None) -> Iterator[bytes]:
    """An array's bytes, a block at a time; of some entries alone, where it is said which."""
    row_bytes = array.dtype.itemsize * math.prod(array.shape[1:])
    for block in blocks(len(array), row_bytes):
        part = array[block] if keep is None else array[block][keep[block]]
        yield np.ascontiguousarray(part, dtype).tobytes()


def _id_lines(names: Sequence[str]) -> Iterator[bytes]:
    for block in blocks(len(names), 1 << 10):
        yield "".join(json.dumps(name, ensure_ascii=False) + "\n" for name in names[block]).encode()


# -- reading -------------------------------------------------------------------------------------------


def _read_state(folder: Path) -> _State:
    path = folder / _ABOUT
    try:
        with said(folder, "the pool cannot be read"):
            written = json.loads(path.read_bytes()) if folder.is_dir() and path.exists() else None
        if written is None:
            raise InputError(f"{folder}: no pool is stored here ({_ABOUT} is missing)")
        if written["format"] > FORMAT:
            raise StoreError(
                f"{folder}: this pool was stored by a newer version (format {written['format']}, "
                f"this one reads {FORMAT}); update activecover"
            )
        check = written.pop("check")
        if check != _check(written):
            raise ValueError("its check differs")
        check_stored(written)
        files = {name: Part(**part) for name, part in written.pop("files").items()}
        return _State(**written, files=files)
    except (InputError, StoreError):
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise StoreError(f"{path}: damaged; restore the pool from a copy") from wrong


def _read_ids(path: Path, state: _State) -> list[str]:
    try:
        with path.open("rb") as file:
            lines = file.read(state.files[_IDS].size).decode()
        names: list[str] = json.loads("[" + lines.rstrip("\n").replace("\n", ",") + "]")
    except ValueError:
        names = []
    if len(names) != state.rows:
        raise StoreError(f"{path}: damaged, not {state.rows:,} ids; restore the pool from a copy")
    return names


def _map(folder: Path, state: _State, name: str) -> npt.NDArray[Any]:
    layout = state.layout(name)
    assert layout is not None
    shape = state.shape(name)
    fixed = {_WITHDRAWN: state.rows, _VECTORS: state.rows, _ROW_ENDS: state.rows + 1, _ENDS: state.rows + 1}
    if shape[0] != fixed.get(name, shape[0]):
        raise StoreError(f"{folder / name}: damaged, {shape[0]:,} entries; restore the pool from a copy")
    return _map_bytes(folder / name, layout[0], shape, HEADER)


def _map_bytes(path: Path, dtype: str, shape: tuple[int, ...], start: int) -> npt.NDArray[Any]:
    # A map of nothing is refused by the system.
    return np.memmap(path, dtype, "r", start, shape) if math.prod(shape) else np.empty(shape, dtype)


def _mapped_matrix(folder: Path, state: _State) -> AnyMatrix:
    if state.kind == "dense":
        origin = np.array(_map(folder, state, _ORIGIN))
        return DenseMatrix.restored(_map(folder, state, _VECTORS), origin, state.metric, state.columns)
    if state.kind == "bits":
        return BitMatrix.restored(_map(folder, state, _VECTORS).view(np.uint64), state.dimensions, state.columns)
    data, indices, ends = (_map(folder, state, name) for name in (_DATA, _INDICES, _ROW_ENDS))
    _check_entries(folder, state, data, indices, ends)
    parts = (data, indices, ends.astype(indices.dtype))
    rows = sparse.csr_array(parts, shape=(state.rows, state.dimensions), copy=False)
    return SparseMatrix.restored(rows, state.metric, state.columns)


def _check_entries(
    folder: Path,
    state: _State,
    data: npt.NDArray[np.float32],
    indices: npt.NDArray[np.integer],
    ends: npt.NDArray[np.int64],
) -> None:
    """Refuse what points nowhere: compiled code would follow it."""
    if ends[0] != 0 or ends[-1] != len(data) or len(data) != len(indices) or (np.diff(ends) < 0).any():
        raise StoreError(f"{folder / _ROW_ENDS}: damaged; restore the pool from a copy")
    for block in blocks(len(indices), 4):
        if indices[block].min() < 0 or indices[block].max() >= state.dimensions:
            raise StoreError(f"{folder / _INDICES}: damaged; restore the pool from a copy")


def _read_statistic(folder: Path, state: _State, name: str) -> Statistic:
    kept = state.statistics[name]
    arrays = {part: np.array(_map(folder, state, file)) for file, part in kept["parts"].items()}
    return Statistic(arrays, kept["facts"])


def _statistic_spans(
    folder: Path, state: _State, gone: npt.NDArray[np.int64]
) -> dict[str, Iterator[tuple[int, bytes]]]:
    """What is put where, in the files of the statistics, to erase rows."""
    spans: dict[str, Iterator[tuple[int, bytes]]] = {}
    for kept in state.statistics.values():
        for file, (dtype, width) in kept["files"].items():
            nothing = np.array(-1 if dtype == "<i4" else np.inf, dtype).tobytes()
            inside, size = gone[gone < kept["rows"]].tolist(), len(nothing)
            places = [(row * width * size, nothing * width) for row in inside]
            if dtype == "<i4":
                named = np.flatnonzero(np.isin(_map(folder, state, file), gone))
                places += [(place * size, nothing) for place in named.tolist()]
            spans[file] = iter(places)
    return spans


def _spans(folder: Path, state: _State, rows: npt.NDArray[np.int64]) -> dict[str, Iterator[tuple[int, bytes]]]:
    """What is put where, in each file, to erase rows."""
    spans: dict[str, Iterator[tuple[int, bytes]]] = {}
    if state.kind == "sparse":
        ends = _map(folder, state, _ROW_ENDS)
        starts, lengths = ends[rows].tolist(), (ends[rows + 1] - ends[rows]).tolist()
        width, nan = np.dtype(state.index).itemsize, np.float32(np.nan).tobytes()
        spans[_DATA] = ((4 * a, nan * n) for a, n in zip(starts, lengths, strict=True))
        spans[_INDICES] = ((width * a, bytes(width * n)) for a, n in zip(starts, lengths, strict=True))
    else:
        layout = state.layout(_VECTORS)
        assert layout is not None
        size = _row_bytes(layout)
        empty = np.full(state.dimensions, np.nan, "<f4").tobytes() if state.kind == "dense" else bytes(size)
        spans[_VECTORS] = ((row * size, empty) for row in rows.tolist())
    if state.contents:
        ends = _map(folder, state, _ENDS)
        bounds = zip(ends[rows].tolist(), ends[rows + 1].tolist(), strict=True)
        spans[_CONTENTS] = ((first, BLANK * (last - first)) for first, last in bounds)
    spans |= _statistic_spans(folder, state, rows)
    spans[_WITHDRAWN] = ((row, b"\1") for row in rows.tolist())
    return spans


def _check_header(path: Path, state: _State) -> None:
    """Refuse an array whose header says something else than pool.json; it may know fewer rows."""
    layout = state.layout(path.name) if path.parent.name != _EMBEDDING else None
    if layout is None:
        return
    with path.open("rb") as file:
        header = file.read(HEADER)
    told = re.search(rb"'shape': \((\d{1,18}),", header)
    rows = int(told[1]) if told else -1
    if header != array_header(layout[0], (rows, *layout[1])) or rows > state.shape(path.name)[0]:
        raise StoreError(f"{path}: damaged in its header; restore the pool from a copy")


def _checked_about(about: Mapping[str, Any]) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(json.dumps(dict(about), ensure_ascii=False))
    except (TypeError, ValueError) as wrong:
        raise InputError(f"about: JSON cannot hold it ({wrong})") from wrong
    return kept


def _check(said_of: Mapping[str, Any]) -> str:
    text = json.dumps(said_of, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _row_bytes(layout: tuple[str, tuple[int, ...]]) -> int:
    return np.dtype(layout[0]).itemsize * math.prod(layout[1])
