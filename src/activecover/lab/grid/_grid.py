"""Finished cells in one SQLite file: each is computed once and never lost."""

from __future__ import annotations

import gzip
import io
import json
import os
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO

from activecover.errors import InputError
from activecover.files import lock, replacing
from activecover.lab.grid._cells import COLUMNS, Cell, Result, read_cells
from activecover.lab.grid._provenance import parts_of
from activecover.spreadsheet import GuardedWriter

_SCHEMA = """
CREATE TABLE IF NOT EXISTS cells (
    dataset TEXT, label TEXT, method TEXT, run INTEGER,
    curve TEXT, reason TEXT, seconds REAL, made_with TEXT,
    PRIMARY KEY (dataset, label, method, run)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (
    dataset TEXT, label TEXT, method TEXT, run INTEGER, worker TEXT,
    PRIMARY KEY (dataset, label, method, run)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT);
"""
#: Seconds to wait for another process that holds the file.
_PATIENCE = 120.0


class Grid:
    """The cells of a folder, shared by any number of processes on one machine.

    A worker claims a cell before computing it. A claim is valid as long as the worker lives: each worker holds a lock
    on its own file, which the system releases when the worker ends for any reason.

    Parameters
    ----------
    folder : path
        The folder of the file ``cells.sqlite``.
    create : bool
        Whether to create the folder if it is missing.
    """

    def __init__(self, folder: str | Path, *, create: bool = False) -> None:
        self.folder = Path(folder)
        path = self.folder / "cells.sqlite"
        if not create and not path.exists():
            raise InputError(
                f"{self.folder}: no experiments here; compute some with: activecover bench run --out {self.folder}"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
            _keep_write_ahead_log(self._database)
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as wrong:
            raise InputError(f"{path}: cannot be opened ({wrong})") from wrong
        self._worker: str | None = None
        self._lock: IO[str] | None = None

    def close(self) -> None:
        """Close the file, and release all claims."""
        if self._worker is not None and self._lock is not None:
            self._database.execute("DELETE FROM claims WHERE worker = ?", (self._worker,))
            self._lock.close()
            self._lock_path(self._worker).unlink(missing_ok=True)
        self._database.close()

    def __enter__(self) -> Grid:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check_setting(self, name: str, value: str) -> None:
        """Fix the settings of the folder at the first run, and refuse other settings later."""
        self._database.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (name, value))
        (known,) = self._database.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        if known != value:
            raise InputError(f"{self.folder}: its cells were made with {name} {known}, not {value}; use another folder")

    def check_reading(self, reading: str) -> None:
        """Refuse another reading of the paper than that of the cells; a grid from before there were several has ours."""
        if first := next(self.results(), None):
            self.check_setting("reading", reading_of(first))
        self.check_setting("reading", reading)

    def done(self) -> set[Cell]:
        """The finished cells."""
        return {Cell(*row) for row in self._database.execute("SELECT dataset, label, method, run FROM cells")}

    def count(self, dataset: str, run: int, label: str | None = None) -> int:
        """Number of finished cells of a run of a data set (and of a label)."""
        where, values = "dataset = ? AND run = ?", [dataset, run]
        if label is not None:
            where, values = f"{where} AND label = ?", [*values, label]
        (count,) = self._database.execute(f"SELECT COUNT(*) FROM cells WHERE {where}", values).fetchone()
        return int(count)

    def __len__(self) -> int:
        (count,) = self._database.execute("SELECT COUNT(*) FROM cells").fetchone()
        return int(count)

    def results(self) -> Iterator[Result]:
        """All finished cells, in order."""
        query = f"SELECT {', '.join(COLUMNS)} FROM cells ORDER BY dataset, label, method, run"
        for *cell, curve, reason, seconds, made_with in self._database.execute(query):
            yield Result(Cell(*cell), tuple(json.loads(curve)) if curve else None, reason, seconds, made_with)

    def claim(self, cell: Cell) -> bool:
        """Claim a cell, unless it is finished or claimed by a living worker."""
        worker = self._become_worker()
        key = (cell.dataset, cell.label, cell.method, cell.run)
        where = "dataset = ? AND label = ? AND method = ? AND run = ?"
        with self._transaction():
            if self._database.execute(f"SELECT 1 FROM cells WHERE {where}", key).fetchone():
                return False
            held = self._database.execute(f"SELECT worker FROM claims WHERE {where}", key).fetchone()
            if held and held[0] != worker and self._alive(held[0]):
                return False
            self._database.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?)", (*key, worker))
        return True

    def finish(self, results: Iterable[Result]) -> None:
        """Store results, and release their claims."""
        with self._transaction():
            for result in results:
                self._keep(result)

    def export(self, path: Path) -> int:
        """Write all cells to one CSV file (gzipped if its name ends in .gz); return their number."""
        rows = list(self._database.execute(f"SELECT {', '.join(COLUMNS)} FROM cells ORDER BY 1, 2, 3, 4"))
        with replacing(path) as temporary, _open_text(temporary, packed=path.suffix == ".gz") as file:
            writer = GuardedWriter(file, lineterminator="\n")
            writer.write(COLUMNS)
            writer.write_all(rows)
        return len(rows)

    def include(self, path: Path) -> int:
        """Import the cells of an exported file, keeping existing ones; return the number of new cells."""
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        before = len(self)
        # All or nothing: the file is read row by row inside one transaction.
        seen: set[tuple[str, str]] = set()
        with self._transaction():
            for result in read_cells(path):
                if (made := (_seed_of(result), reading_of(result))) not in seen:
                    self.check_setting("seed", made[0])
                    self.check_reading(made[1])
                    seen.add(made)
                self._keep(result)
        return len(self) - before

    def _keep(self, result: Result) -> None:
        cell = result.cell
        key = (cell.dataset, cell.label, cell.method, cell.run)
        curve = None if result.curve is None else json.dumps([round(value, 6) for value in result.curve])
        values = (*key, curve, result.reason, round(result.seconds, 3), result.made_with)
        self._database.execute("INSERT OR IGNORE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        self._database.execute("DELETE FROM claims WHERE dataset = ? AND label = ? AND method = ? AND run = ?", key)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def _become_worker(self) -> str:
        if self._worker is None:
            self._worker = uuid.uuid4().hex
            path = self._lock_path(self._worker)
            path.parent.mkdir(exist_ok=True)
            self._lock = path.open("w")
            self._lock.write(f"{os.getpid()}\n")
            lock(self._lock.fileno())
        return self._worker

    def _alive(self, worker: str) -> bool:
        path = self._lock_path(worker)
        if not path.exists():
            return False
        with path.open("a") as file:
            if not lock(file.fileno(), wait=False):
                return True
        path.unlink(missing_ok=True)
        return False

    def _lock_path(self, worker: str) -> Path:
        return self.folder / "workers" / f"{worker}.lock"


def _keep_write_ahead_log(database: sqlite3.Connection) -> None:
    """Switch a new file to WAL mode, with retries: SQLite does not wait if several processes do that at once."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            database.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as wrong:
            if "locked" not in str(wrong) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _seed_of(result: Result) -> str:
    """The seed recorded in a result."""
    return parts_of(result.made_with).get("seed", "0")


def reading_of(result: Result) -> str:
    """The reading of the paper that a result was made with, as it says itself."""
    return parts_of(result.made_with).get("reading", "ours")


def _open_text(path: Path, *, packed: bool) -> TextIO:
    if packed:
        # Without a time stamp or name inside, so that the same cells give the same bytes.
        return io.TextIOWrapper(gzip.GzipFile("", "wb", 9, path.open("wb"), mtime=0), encoding="utf-8", newline="")
    return path.open("w", encoding="utf-8", newline="")
