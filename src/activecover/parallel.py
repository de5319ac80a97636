"""The number of threads, and spreading row blocks over them without competing with BLAS."""

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
    """Limits BLAS and OpenMP to one thread while anyone needs it: the first user sets the limit, the last lifts it.

    Overlapping limits of several threads would otherwise be lifted in the wrong order, and one would stay for ever.
    """

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Reset to no users: at the start, and in a forked child, where no other thread is left."""
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
    """Set limits in a way that another thread can lift, which newer versions of threadpoolctl do not allow."""
    let_go = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if let_go is not None:
        let_go(force=True)


_LIMIT = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.begin_anew)


def one_blas_thread() -> AbstractContextManager[None]:
    """Limit BLAS and OpenMP to one thread, while blocks are spread over threads here or jobs by the caller."""
    return _LIMIT


def for_each(work: Callable[[T], object], parts: Sequence[T], *, blas: bool = True) -> None:
    """Run ``work`` on every part, on several threads if there are several parts.

    The calling thread works too, and every thread takes the next part when it has finished one, so that the wait for a
    busy processor is at most one part. BLAS is limited to one thread per part meanwhile, unless ``blas`` is False for
    work that does not use it.
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
            # After an error, no further part is started.
            waiting.clear()
            begun = [helper for helper in helpers if not helper.cancel()]
            wait(begun)
        for helper in begun:
            helper.result()
