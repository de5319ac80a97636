"""Output of commands: aligned tables, JSON on request, and progress as bars in a terminal or plain lines elsewhere."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

_PLAIN_SECONDS = 5.0
_PLAIN_WIDTH = 160


def out() -> Console:
    """The console for results; lines are longer if it is a file or a pipe."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _PLAIN_WIDTH)


def err() -> Console:
    """The console for progress and remarks."""
    return Console(stderr=True, highlight=False)


def print_json(data: object) -> None:
    """Print results for programs."""
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print an aligned table: text to the left, numbers to the right."""
    if title:
        out().print(Text(title, style="bold"))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, name in enumerate(columns):
        numeric = any(isinstance(row[place], int | float) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", no_wrap=place == 0)
    for row in rows:
        # Text objects, not markup: an id such as "[x]" is shown as it is.
        table.add_row(*(Text(cell(value)) for value in row))
    out().print(table)


def cell(value: object) -> str:
    """One value, formatted for people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.3f}"
    return str(value)


class Meter(Protocol):
    """Shows progress."""

    def update(self, task: str, done: int, total: int, note: str = "") -> None:
        """Report the progress of a task."""


class _Bars:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, Any] = {}

    def update(self, task: str, done: int, total: int, note: str = "") -> None:
        if task not in self._tasks:
            self._tasks[task] = self._progress.add_task(task, total=total, note=note)
        self._progress.update(self._tasks[task], completed=done, total=total, note=note)


class _Lines:
    """One line per task every few seconds, and one when it is done."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def update(self, task: str, done: int, total: int, note: str = "") -> None:
        now = time.monotonic()
        if done < total and now - self._last.setdefault(task, now) < _PLAIN_SECONDS:
            return
        if done >= total and self._last.get(task) == float("inf"):
            return
        self._last[task] = float("inf") if done >= total else now
        print(f"{task}: {done:,} of {total:,} {note}".rstrip(), file=sys.stderr, flush=True)


class _Nothing:
    def update(self, task: str, done: int, total: int, note: str = "") -> None:
        pass


@contextmanager
def meter(unit: str, *, quiet: bool = False) -> Iterator[Meter]:
    """Bars with elapsed and remaining time in a terminal, plain lines elsewhere, nothing if quiet."""
    if quiet:
        yield _Nothing()
    elif err().is_terminal:
        columns = (
            TextColumn("{task.description:<24}"), BarColumn(bar_width=28), MofNCompleteColumn(),
            TextColumn(unit), TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[note]}"),
        )  # fmt: skip
        with Progress(*columns, console=err()) as progress:
            yield _Bars(progress)
    else:
        yield _Lines()
