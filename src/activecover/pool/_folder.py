"""Pools kept on disk: stored once, mapped by every user, erased in place."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError, StoreError
from activecover.files import locked, private_folder, sync_folder, write_whole
from activecover.pool._erasing import erased_spans, statistic_spans
from activecover.pool._mapping import check_header, map_bytes, mapped, mapped_matrix, read_ids, read_statistic
from activecover.pool._matrix import Vectors, sparse_vectors
from activecover.pool._parts import (
    HEADER,
    Part,
    add_to,
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
from activecover.pool._records import record_of
from activecover.pool._state import (
    ABOUT,
    CONTENTS,
    DATA,
    EMBEDDING,
    ENDS,
    IDS,
    INDICES,
    MOST_NARROW,
    ROW_ENDS,
    STATISTICS,
    VECTORS,
    WITHDRAWN,
    FolderState,
    read_state,
)
from activecover.pool._stored import Mapped, Statistic, StoredContents, StoredPool, rows_encoded
from activecover.pool._writing import id_lines, pieces, put_statistic, vector_bytes, write_pool

_JOURNAL = "erasing.json"


class PoolFolder:
    """A pool in a folder of plain files.

    ``pool.json`` lists the files with their sizes and hashes. ``vectors.npy`` holds the stored vectors (sparse ones:
    ``data.npy``, ``indices.npy`` and ``indptr.npy``), ``contents.bin`` a record per row and ``offsets.npy`` where
    each ends, ``ids.jsonl`` the ids, ``withdrawn.npy`` which rows are erased, ``embedding/`` what made the vectors,
    and ``statistics/`` what was derived from all rows.

    Several processes may use a folder at once. Only one at a time changes it; the others see erased rows
    immediately, and added rows after ``refresh``.

    Parameters
    ----------
    folder : path
        A folder written by :meth:`create` or :meth:`copy_to`.

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
        hash_contents: bool = True,
    ) -> PoolFolder:
        """Store a pool in a new folder: all of it, or nothing.

        Parameters
        ----------
        folder : path
            A folder that does not exist yet.
        pool : Pool
            A pool of any kind; its vectors and contents are read piece by piece.
        embedding_files : mapping of file name to bytes, optional
            What made the vectors, to be stored with them.
        about : mapping, optional
            Anything else worth storing that JSON can represent.
        hash_contents : bool
            Whether to store a hash of all contents, which identifies the pool even after rows have been erased. It
            reveals something about erased rows to anyone who knows all the others.
        """
        target = Path(folder)
        with new_folder(target) as place:
            write_pool(place, pool, embedding_files or {}, about or {}, hash_contents=hash_contents)
        return cls(target)

    def load(self, *, writable: bool = False) -> StoredPool:
        """The pool, with mapped vectors and contents that are read on demand.

        Parameters
        ----------
        writable : bool
            Whether ``extend`` and ``withdraw`` change the folder, or only the pool in memory.
        """
        pool = StoredPool(self, self.mapped(), writable=writable)
        self._pools.add(pool)
        return pool

    def at(self, place: Path, pool: StoredPool) -> PoolFolder:
        """The folder at another path, for a pool that has moved there."""
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
        """Add rows at the end, on disk, and return their numbers.

        Parameters
        ----------
        vectors : array, sparse matrix or PackedBits
            As ``Pool.extend`` takes them; with ``encoded``, as ``Pool.encode`` gives them.
        ids, contents
            As ``Pool.extend`` takes them.
        encoded : bool
            Whether the vectors are already encoded, and stored as they are.
        """
        with self._changing("rows cannot be added") as state:
            matrix = mapped_matrix(self.folder, state)
            added = rows_encoded(matrix, vectors) if encoded else matrix.encode(vectors)
            grown = self._grown(state, added, ids, contents)
            numbers = np.arange(state.rows, grown.rows)
        for pool in self._pools:
            if pool.writable:
                pool.refresh()
        return numbers

    def erase(self, rows: npt.ArrayLike) -> None:
        """Overwrite the vectors and contents of rows in place, on disk. Row numbers and ids stay."""
        with self._changing("rows cannot be erased") as state:
            chosen = checked_rows(rows, state.rows)
            fresh = np.unique(chosen[~mapped(self.folder, state, WITHDRAWN)[chosen]])
            if fresh.size:
                write_whole(self.folder / _JOURNAL, json.dumps(fresh.tolist()).encode())
                self._erase(state, fresh)
        if chosen.size:
            for pool in self._pools:
                pool.erased(chosen)

    def keep_statistic(self, name: str, statistic: Statistic) -> None:
        """Store what was derived from the first rows, unless a statistic of at least as many rows is stored already.

        Parameters
        ----------
        name : str
            A file name. A stored statistic of fewer rows is replaced.
        statistic : Statistic
            Its arrays have one line per row. Integers are row numbers, with -1 for none; other numbers are infinite
            for none. When a row is erased, its line and every mention of its number are overwritten in place.
        """
        with self._changing("the statistics cannot be kept") as state:
            old = state.statistics.get(name, {"rows": -1, "files": {}})
            if old["rows"] >= statistic.rows:
                return
            private_folder(self.folder / STATISTICS)
            changed = replace(state, files=dict(state.files), statistics=dict(state.statistics))
            put_statistic(self.folder, changed, name, statistic)
            sync_folder(self.folder / STATISTICS)
            # Rows may have been erased since the statistic was computed.
            gone = np.flatnonzero(mapped(self.folder, state, WITHDRAWN)[: statistic.rows])
            for file, spans in statistic_spans(self.folder, changed, gone).items():
                changed.files[file] = overwrite(self.folder / file, HEADER, changed.files[file], spans)
            for file in old["files"]:
                del changed.files[file]
            self._commit(changed)
            for file in old["files"]:
                (self.folder / file).unlink(missing_ok=True)

    def copy_to(self, folder: str | os.PathLike[str], *, compact: bool = False) -> PoolFolder:
        """Copy the pool to another folder.

        Parameters
        ----------
        folder : path
            A folder that does not exist yet.
        compact : bool
            Whether erased rows take no space in the copy, so that it does not reveal how long their contents were or
            how many entries their sparse vectors had. Otherwise the copy is identical byte for byte.
        """
        with self._changing("the pool cannot be copied") as state, new_folder(Path(folder)) as place:
            if compact:
                pool = StoredPool(self, self._open(state), writable=False)
                write_pool(place, pool, self._embedding(state), state.about, compact=True)
                return PoolFolder(folder)
            for inside in (EMBEDDING, STATISTICS):
                private_folder(place / inside)
            for name, part in state.files.items():
                copy_part(self.folder / name, place / name, state.start(name) + part.size)
            for inside in (EMBEDDING, STATISTICS):
                sync_folder(place / inside)
            write_whole(place / ABOUT, state.encoded())
        return PoolFolder(folder)

    def verify(self) -> None:
        """Read every file and compare it with its hashes; the first that differs is named."""
        with self._changing("the pool cannot be checked") as state:
            for name, part in state.files.items():
                check_blocks(self.folder / name, state.start(name), part)
                check_header(self.folder / name, state)

    def files(self) -> list[Path]:
        """All files that make up the pool."""
        return [self.folder / ABOUT, *(self.folder / name for name in self._state().files)]

    def size(self) -> int:
        """Bytes of all files together."""
        with said(self.folder, "the pool cannot be read"):
            return sum(path.stat().st_size for path in self.files())

    @property
    def rows(self) -> int:
        """Number of rows, including erased ones."""
        return self._state().rows

    @property
    def about(self) -> dict[str, Any]:
        """What was stored with the pool when it was created."""
        return self._state().about

    @property
    def contents_hash(self) -> str | None:
        """The hash of the contents when the pool was stored, if it was kept."""
        return self._state().marked

    @property
    def embedding_folder(self) -> Path:
        """The folder of the files that made the vectors."""
        return self.folder / EMBEDDING

    def embedding_files(self) -> dict[str, bytes]:
        """The files that made the vectors, checked against their hashes."""
        with said(self.folder, "the embedding cannot be read"):
            return self._embedding(self._state())

    def mapped(self) -> Mapped:
        """What the folder holds now; an interrupted erasure is completed first."""
        with said(self.folder, "the pool cannot be read"):
            if (self.folder / _JOURNAL).exists():
                with self._changing("an interrupted erasure cannot be completed"):
                    pass
            return self._open(self._state())

    def _open(self, state: FolderState) -> Mapped:
        names = read_ids(self.folder / IDS, state) if state.named else None
        withdrawn = np.array(mapped(self.folder, state, WITHDRAWN))
        records = None
        if state.contents:
            data = map_bytes(self.folder / CONTENTS, "|u1", (state.files[CONTENTS].size,), 0)
            records = StoredContents(self.folder / CONTENTS, state.contents, data, mapped(self.folder, state, ENDS))
        matrix = mapped_matrix(self.folder, state)
        statistics = {name: read_statistic(self.folder, state, name) for name in state.statistics}
        return Mapped(matrix, state.metric, state.columns, names, withdrawn, records, statistics)

    def _state(self) -> FolderState:
        state = read_state(self.folder)
        with said(self.folder, "the pool cannot be read"):
            for name, part in state.files.items():
                check_size(self.folder / name, state.start(name), part)
        return state

    def _embedding(self, state: FolderState) -> dict[str, bytes]:
        found = {}
        for name, part in state.files.items():
            if name.startswith(f"{EMBEDDING}/"):
                check_blocks(self.folder / name, 0, part)
                found[Path(name).name] = (self.folder / name).read_bytes()
        return found

    @contextmanager
    def _changing(self, what: str) -> Iterator[FolderState]:
        """Lock the folder, and complete or undo an interrupted change."""
        if not (self.folder / ABOUT).is_file():
            read_state(self.folder)  # raises with the reason
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

    def _cut(self, state: FolderState) -> None:
        for name, part in state.files.items():
            cut(self.folder / name, state.start(name), part)
        if not state.named:
            (self.folder / IDS).unlink(missing_ok=True)

    def _commit(self, state: FolderState) -> None:
        write_whole(self.folder / ABOUT, state.encoded())

    def _erase(self, state: FolderState, rows: npt.NDArray[np.int64]) -> None:
        """Erase the rows named in the journal; safe to repeat."""
        self._cut(state)
        for name, spans in erased_spans(self.folder, state, rows).items():
            state.files[name] = overwrite(self.folder / name, state.start(name), state.files[name], spans)
        self._commit(state)
        # If a crash undoes the removal, the rows are simply erased again.
        (self.folder / _JOURNAL).unlink()

    def _grown(
        self,
        state: FolderState,
        added: Vectors,
        ids: Sequence[str] | None,
        contents: Mapping[str, Sequence[Any]] | None,
    ) -> FolderState:
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
                # Unless the change was already committed.
                self._cut(read_state(self.folder))
            raise
        for name in grown.files:
            # For other programs; activecover relies on pool.json.
            if grown.layout(name) and grown.files[name].size != state.files[name].size:
                write_header(self.folder / name, grown.header(name))
        return grown

    def _added_names(self, state: FolderState, ids: Sequence[str] | None, count: int) -> list[str] | None:
        """The ids to write: all of them if the rows had only numbers before."""
        if ids is None:
            if state.named:
                raise InputError("this pool has its own ids: give ids for the added rows")
            return None
        if len(ids) != count:
            raise InputError(f"{len(ids)} ids for {count} rows; give one per row")
        known = read_ids(self.folder / IDS, state) if state.named else [str(row) for row in range(state.rows)]
        index_of([*known, *ids])
        return list(ids) if state.named else [*known, *ids]

    def _added(
        self, state: FolderState, added: Vectors, names: list[str] | None, records: list[bytes]
    ) -> dict[str, Iterator[bytes]]:
        """What to append to each file."""
        chunks: dict[str, Iterator[bytes]] = {}
        if state.kind == "sparse":
            added, before = sparse_vectors(added), state.files[DATA].size // 4
            if before + added.nnz > MOST_NARROW and state.index == "<i4":
                raise InputError("more than 2³¹ entries: create a new pool of all rows")
            chunks[DATA] = pieces(added.data, "<f4")
            chunks[INDICES] = pieces(added.indices, state.index)
            chunks[ROW_ENDS] = pieces(added.indptr[1:].astype(np.int64) + before, "<i8")
        else:
            chunks[VECTORS] = vector_bytes(added)
        if names is not None:
            chunks[IDS] = id_lines(names)
        if state.contents:
            ends = state.files[CONTENTS].size + np.cumsum([len(record) for record in records], dtype=np.int64)
            chunks[CONTENTS], chunks[ENDS] = iter([b"".join(records)]), pieces(ends, "<i8")
        chunks[WITHDRAWN] = pieces(np.zeros(added.shape[0], bool), "|b1")
        return chunks
