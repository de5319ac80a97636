"""How many threads to use, and how to spread row blocks over them without fighting BLAS."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

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
def _controller(process: int) -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _executor(process: int, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="activecover")


def one_blas_thread() -> AbstractContextManager[Any]:
    """While open, BLAS and OpenMP stay on one thread: the blocks are spread by us, or jobs by the caller."""
    # Keyed by process id: a forked child must not reuse its parent's handles or threads.
    limit: AbstractContextManager[Any] = _controller(os.getpid()).limit(limits=1)
    return limit


def for_each(work: Callable[[T], None], parts: Sequence[T]) -> None:
    """Run ``work`` on every part, on several threads where there are several parts."""
    threads = min(thread_count(), len(parts))
    if threads < 2:
        for part in parts:
            work(part)
        return
    with one_blas_thread():
        list(_executor(os.getpid(), threads).map(work, parts))
