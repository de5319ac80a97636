"""The command from its first import to its exit: Ctrl-C ends it with one line at any moment."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

_EXIT_CODE = 130
#: Seconds until Ctrl-C that came at a moment when Python could not act on it is tried again.
_SOON = 0.02


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the result is its exit code (2 for bad input, 130 when interrupted).

    Without ``arguments`` the process is the command's own, and Ctrl-C is handled from here on: the imports that
    follow take a second or two.
    """
    if arguments is None and _is_interruptible():
        return _run_own_process()
    from activecover.cli._app import run

    return run(sys.argv[1:] if arguments is None else arguments)


def _is_interruptible() -> bool:
    """Whether SIGINT does what Python does by default; under ``nohup … &`` it is ignored, and stays so."""
    main_thread = threading.current_thread() is threading.main_thread()
    return main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler


class _CtrlC:
    """The handler of SIGINT: leave at once, or raise KeyboardInterrupt while there is something to clean up."""

    def __init__(self) -> None:
        self.came = self.cleans_up = False

    def __call__(self, *_: Any) -> None:
        self.came = True
        if self.cleans_up:
            raise KeyboardInterrupt
        _leave()

    def report_unraisable(self, what: sys.UnraisableHookArgs) -> None:
        """Interrupt again: Python drops what is raised in a destructor or in a callback from C code."""
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
    # KeyboardInterrupt would not do here: extension modules that are being imported turn it into other errors.
    from activecover.cli._app import run

    try:
        try:
            ctrl_c.cleans_up = True
            code = run(sys.argv[1:])
        finally:
            ctrl_c.cleans_up = False
            # What is left is the interpreter's shutdown.
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
    except BaseException as wrong:
        # Imports within a command, too, may turn KeyboardInterrupt into something else.
        if isinstance(wrong, SystemExit) or not ctrl_c.came:
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
