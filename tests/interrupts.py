"""Child processes that Ctrl-C reaches, however the tests themselves were started."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


def interruptible(command: list[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process that SIGINT interrupts, as one started from a terminal.

    A shell's background job (``nohup make test &``) ignores SIGINT, and its children inherit that.
    """
    with _sigint(signal.default_int_handler):
        return subprocess.Popen(command, **options)


def uninterruptible(command: list[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process that ignores SIGINT, as a shell's background job does."""
    with _sigint(signal.SIG_IGN):
        return subprocess.Popen(command, **options)


@contextmanager
def _sigint(handler: Any) -> Generator[None]:
    # Across exec a handler becomes the default action and ignoring stays. Switching it here, not in a preexec_fn,
    # is safe where the tests' process has threads.
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
