"""Reading untrusted files in separate processes with limited memory and time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from activecover.errors import ActiveCoverError, InputError, MissingExtraError
from activecover.intake._claims import TooLarge
from activecover.intake._pool import Intake, Recipe
from activecover.intake._worker import ANSWER, POOL, RECIPE
from activecover.pool import PoolFolder

_PREVIEW_SECONDS, _INTAKE_SECONDS = 60, 3600
_LARGEST_ANSWER_BYTES = 1 << 26
#: Files read at the same time, and how many more may wait.
_AT_ONCE, _WAITING = 2, 8
#: Secrets of the server, which the processes must not see.
_SECRETS = ("ACTIVECOVER_TOKEN", "ACTIVECOVER_STORE", "ACTIVECOVER_SERVE", "PGPASSWORD")


class Busy(ActiveCoverError):
    """Too many files are being read."""


class DiskFull(ActiveCoverError):
    """A file needs more memory than allowed."""


def default_memory() -> int:
    """Default memory limit in MB for reading a file: 4096, or half of the machine's memory."""
    try:
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 4096
    return max(256, min(4096, pages >> 21))


class ConfinedIntake:
    """Reads files in separate processes, two at a time.

    A malicious file cannot affect this process: the reading process has limited memory and time, and returns only
    JSON and a folder of plain arrays.

    Parameters
    ----------
    memory : int, optional
        Memory limit in MB for reading a file; :func:`default_memory` by default.
    """

    def __init__(self, memory: int | None = None) -> None:
        self.memory = default_memory() if memory is None else memory
        self._lock = threading.Lock()
        self._spare: subprocess.Popen[bytes] | None = None
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        self._queue = threading.BoundedSemaphore(_AT_ONCE + _WAITING)

    def preview(self, path: Path, work: Path, *, header: bool = True) -> dict[str, Any]:
        """Preview a file, see :func:`activecover.intake.preview`; ``work`` is a folder for temporary files."""
        found = self._do("preview", path, work, {"header": header}, _PREVIEW_SECONDS)
        self.warm_up()  # the file will probably be imported next
        return found

    def take_in(self, path: Path, work: Path, **how: Any) -> Intake:
        """Make a pool from a file, as :func:`activecover.intake.make_pool` does; it is left in the folder ``work``."""
        made = self._do("take in", path, work, how, _INTAKE_SECONDS)
        return Intake(PoolFolder(work / POOL).load(), None, Recipe.load(work / RECIPE), [str(x) for x in made["notes"]])

    def warm_up(self) -> None:
        """Start a process in advance for a file that will arrive soon."""
        with self._lock:
            if self._spare is None or self._spare.poll() is not None:
                self._spare = _start()

    def close(self) -> None:
        """End the waiting process."""
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None:
            _end(spare)

    def _take_process(self) -> subprocess.Popen[bytes]:
        with self._lock:
            spare, self._spare = self._spare, None
        return spare if spare is not None and spare.poll() is None else _start()

    def _do(self, job: str, path: Path, work: Path, how: dict[str, Any], seconds: int) -> dict[str, Any]:
        if not self._queue.acquire(blocking=False):
            raise Busy("too many files are being read: try again in a moment")
        try:
            with self._room:
                told = {"job": job, "path": str(path), "work": str(work), "how": how, "memory": self.memory}
                told |= {"seconds": seconds, "size": path.stat().st_size}
                code = self._run(json.dumps(told).encode() + b"\n", seconds)
        finally:
            self._queue.release()
        return _checked(work / ANSWER, code, f"{path}: reading it", seconds, self.memory)

    def _run(self, line: bytes, seconds: int) -> int:
        """Give a process its job, and return its exit code."""
        process = self._take_process()
        assert process.stdin is not None
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(line)
                process.stdin.flush()
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return -signal.SIGXCPU
        finally:
            _end(process)


def _start() -> subprocess.Popen[bytes]:
    known = {name: value for name, value in os.environ.items() if name not in _SECRETS}
    # Every thread of a library reserves its own memory.
    few = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    few["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    return subprocess.Popen(
        [sys.executable, "-c", "from activecover.intake._worker import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**known, **few},
        start_new_session=True,  # Ctrl-C goes to the server, which then ends this process
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(BrokenPipeError):
        pipe: IO[bytes] | None = process.stdin
        if pipe is not None:
            pipe.close()
    process.kill()
    process.wait()


def _checked(answer: Path, code: int, what: str, seconds: int, memory: int) -> dict[str, Any]:
    """The result of a process, or the error that it reported."""
    try:
        if answer.stat().st_size > _LARGEST_ANSWER_BYTES:
            raise TooLarge(f"{what} produced too much to show")
        found = json.loads(answer.read_bytes())
    except FileNotFoundError:
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            raise TooLarge(f"{what} took longer than {seconds} seconds: too large") from None
        raise TooLarge(
            f"{what} failed: the file is damaged, or needs more than {memory:,} MB of memory (serve --memory)"
        ) from None
    if "problem" not in found:
        made: dict[str, Any] = found["made"]
        return made
    kinds = {"large": TooLarge, "extra": MissingExtraError, "full": DiskFull}
    raise kinds.get(found["problem"], InputError)(str(found["text"]))
