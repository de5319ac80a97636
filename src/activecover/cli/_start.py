"""Start and exit of the command: Ctrl-C ends it with one line at any moment."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

_EXIT_CODE = 130
#: Seconds until an interruption is tried again that came when Python could not act on it.
_SOON = 0.02


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code (2 for bad input, 130 if interrupted).

    Without ``arguments``, the process belongs to the command, and Ctrl-C is handled from the start, since the
    imports that follow take a second or two.
    """
    if arguments is None and _is_interruptible():
        return _run_own_process()
    from activecover.cli._app import run

    return run(sys.argv[1:] if arguments is None else arguments)


def _is_interruptible() -> bool:
    """Whether SIGINT has Python's default handler; under ``nohup … &`` it is ignored, and should stay so."""
    main_thread = threading.current_thread() is threading.main_thread()
    return main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler


class _CtrlC:
    """Handler of SIGINT: exit at once, or raise KeyboardInterrupt while there is something to clean up."""

    def __init__(self) -> None:
        self.came = self.cleans_up = False

    def __call__(self, *_: object) -> None:
        self.came = True
        if self.cleans_up:
            raise KeyboardInterrupt
        _leave()

    def report_unraisable(self, what: sys.UnraisableHookArgs) -> None:
        """Interrupt again, since Python drops exceptions raised in destructors and in callbacks from C code."""
        if not isinstance(what.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(what)
            return
        again = threading.Timer(_SOON, _thread.interrupt_main)
        again.daemon = True
        again.start()


def _run_own_process() -> int:
    ctrl_c = _CtrlC()
    signal.signal(signal.SIGINT, ctrl_c)
    sys.unraisablehook = ctrl_c.report_unraisable
    # KeyboardInterrupt is no use during imports: extension modules turn it into other errors.
    from activecover.cli._app import run

    try:
        try:
            ctrl_c.cleans_up = True
            code = run(sys.argv[1:])
        finally:
            ctrl_c.cleans_up = False
            # From here on, Ctrl-C only interrupts the interpreter's shutdown.
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
    except BaseException as error:
        # Imports inside a command can turn KeyboardInterrupt into another error, too.
        if isinstance(error, SystemExit) or not ctrl_c.came:
            raise
        _say()
        return _EXIT_CODE
    return code


def _leave() -> NoReturn:
    _say()
    os._exit(_EXIT_CODE)


def _say() -> None:
    with suppress(OSError):
        os.write(2, b"activecover: interrupted\n")
