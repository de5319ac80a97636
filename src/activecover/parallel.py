"""How many threads to use, and how to spread row blocks over them without fighting BLAS."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeVar

import threadpoolctl
from threadpoolctl import threadpool_limits

from activecover.errors import InputError

T = TypeVar("T")


def thread_count() -> int:
    """Threads to use: ``ACTIVECOVER_THREADS``, else ``OMP_NUM_THREADS``, else the cores this process has."""
    for name in ("ACTIVECOVER_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name)
        if value:
            if not value.isdigit() or int(value) < 1:
                raise InputError(f"{name}={value!r} is not a number of threads: give a whole number from 1")
            return int(value)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _executor(process: int, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="activecover")


class _Limit:
    """BLAS and OpenMP on one thread for as long as anyone wants it: the first sets it, the last lifts it.

    Limits that overlap in several threads would otherwise be lifted in the wrong order, and one of them
    stay for ever.
    """

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Nobody wants it: so it is at the start, and in a forked child, where nobody is left."""
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                _take_control()
                self._limit = threadpool_limits(limits=1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                _take_control()
                self._limit.restore_original_limits()


def _take_control() -> None:
    """Newer versions of threadpoolctl listen to one thread only; here another may lift what one has set."""
    let_go = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if let_go is not None:
        let_go(force=True)


_LIMIT = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.begin_anew)


def one_blas_thread() -> AbstractContextManager[None]:
    """While open, BLAS and OpenMP stay on one thread: the blocks are spread by us, or jobs by the caller."""
    return _LIMIT


def for_each(work: Callable[[T], object], parts: Sequence[T], *, blas: bool = True) -> None:
    """Run ``work`` on every part, on several threads where there are several parts.

    The caller's thread works too, and everyone takes the next part when done with one: where the other processors
    are busy with something else, nobody waits for them longer than for one part. While it runs BLAS is kept to
    one thread per part; work that needs no BLAS says so and saves that.
    """
    threads = min(thread_count(), len(parts))
    if threads < 2:
        for part in parts:
            work(part)
        return
    waiting = deque(parts)

    def work_off() -> None:
        while waiting:
            try:
                part = waiting.popleft()
            except IndexError:
                return
            work(part)

    with one_blas_thread() if blas else nullcontext():
        helpers = [_executor(os.getpid(), threads).submit(work_off) for _ in range(threads - 1)]
        try:
            work_off()
        finally:
            # Where one went wrong, no other part is begun.
            waiting.clear()
            begun = [helper for helper in helpers if not helper.cancel()]
            wait(begun)
        for helper in begun:
            helper.result()
