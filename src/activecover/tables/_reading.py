"""Errors of reading a file, in one line that names it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from activecover.errors import ActiveCoverError, InputError


@contextmanager
def reading(where: str | Path) -> Iterator[None]:
    """Turn any error of storage or libraries into one line that names the file."""
    try:
        yield
    except (ActiveCoverError, MemoryError):
        raise
    except FileNotFoundError as wrong:
        raise InputError(f"{where}: no such file") from wrong
    except UnicodeDecodeError as wrong:
        byte = wrong.object[wrong.start]
        raise InputError(f"{where}: not UTF-8 text (byte {byte:#x}); save it as UTF-8") from wrong
    except Exception as wrong:
        # On damaged bytes the libraries raise almost anything (zlib.error, struct.error, TypeError, …).
        reason = getattr(wrong, "strerror", None) or str(wrong).partition("\n")[0] or type(wrong).__name__
        raise InputError(f"{where}: cannot be read, is it damaged? ({reason})") from wrong


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """The same for a local file, which must exist and be neither a folder nor a device."""
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if not path.is_file():
        raise InputError(f"{path}: not a file")
    with reading(path):
        yield


def check_columns(where: str | Path, names: Sequence[str], wanted: Iterable[str] = ()) -> None:
    """Refuse a table with a repeated column, or without a column that is wanted."""
    known = {*names}
    if len(known) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise InputError(f"{where}: column {twice!r} appears twice")
    for name in wanted:
        if name not in known:
            shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
            raise InputError(f"{where}: no column {name!r} (columns are: {shown or 'none'})")
