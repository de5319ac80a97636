"""Downloads that can be resumed, are checked, and never leave a partial file in place."""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Protocol

from activecover.errors import InputError
from activecover.lab.datasets._base import DATASETS, Download, Watcher, data_folder, reason

_CHUNK = 1 << 18
_SECONDS = 60.0


def fetch(name: str, folder: str | Path | None = None, watch: Watcher | None = None) -> Path:
    """Download a data set into the data folder; existing files are kept.

    Returns
    -------
    Path
        The folder of the data set.
    """
    source = DATASETS.build(name)
    target = data_folder(folder) / source.name
    if source.by_hand:
        raise InputError(f"{source.name} cannot be downloaded automatically. {source.by_hand.format(folder=target)}")
    fetch_files(source.downloads, target, watch)
    return target


def fetch_files(downloads: Sequence[Download], target: Path, watch: Watcher | None = None) -> None:
    """Download files into a folder, checking each against its hash."""
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as wrong:
        raise InputError(f"{target}: the folder cannot be made ({wrong.strerror})") from wrong
    for download in downloads:
        try:
            if not (target / download.file).exists():
                _fetch_one(download, target, watch)
        except OSError as wrong:
            place = wrong.filename or target
            raise InputError(
                f"{place}: cannot be written ({wrong.strerror}); run the same command to resume"
            ) from wrong


def _fetch_one(download: Download, target: Path, watch: Watcher | None) -> None:
    name = download.url.rsplit("/", 1)[-1]
    part = target / f"{name}.part"
    _receive(download, part, name, watch)
    found = _digest(part, download.digest.partition(":")[0])
    if found != download.digest.partition(":")[2]:
        part.unlink()
        raise InputError(f"{download.url}: its hash ({found}) differs from the published one; nothing was kept")
    if download.unpack:
        _unpack(part, target / download.file)
    else:
        part.replace(target / download.file)


def _receive(download: Download, part: Path, name: str, watch: Watcher | None) -> None:
    """Download the rest of a file; partial downloads are kept, also if this one fails."""
    have = part.stat().st_size if part.exists() else 0
    with ExitStack() as stack:
        with _reached(download.url):
            request = urllib.request.Request(download.url, headers={"Range": f"bytes={have}-"} if have else {})
            try:
                answer = stack.enter_context(urllib.request.urlopen(request, timeout=_SECONDS))
            except urllib.error.HTTPError as wrong:
                if have and wrong.code == 416:  # nothing is missing: the hash will show
                    return
                raise
        if have and answer.status != 206:
            have = 0  # the server sends the whole file again
        length = answer.headers.get("Content-Length") or ""
        total = have + int(length) if length.isdecimal() else 0
        file = stack.enter_context(part.open("ab" if have else "wb"))
        while chunk := _next_chunk(answer, download.url):
            file.write(chunk)
            have += len(chunk)
            if watch is not None:
                watch(name, have, total)
    if have < total:
        raise InputError(f"{download.url}: cut short after {have:,} of {total:,} bytes; run the same command to resume")


class Readable(Protocol):
    """An answer of a server."""

    def read(self, size: int, /) -> bytes: ...


def _next_chunk(answer: Readable, url: str) -> bytes:
    with _reached(url):
        return answer.read(_CHUNK)


@contextmanager
def _reached(url: str) -> Iterator[None]:
    """Turn network errors, as opposed to disk errors, into one line."""
    try:
        yield
    except urllib.error.HTTPError as wrong:
        raise InputError(f"{url}: the server answered {wrong.code} {wrong.reason}; try again later") from wrong
    except (OSError, HTTPException, ValueError) as wrong:
        why = getattr(wrong, "reason", None) or reason(wrong)
        raise InputError(f"{url}: cannot be reached ({why}); run the same command to resume") from wrong


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack next to the target and move the folder into place at the end; then the archive is deleted."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as temporary:
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(temporary, filter="data")
        except Exception as wrong:  # decompressors raise their own errors: zlib.error, lzma.LZMAError
            raise InputError(f"{archive}: cannot be unpacked ({reason(wrong)})") from wrong
        inside = Path(temporary) / folder.name
        if not inside.is_dir():
            raise InputError(f"{archive}: contains no folder {folder.name}")
        inside.replace(folder)
    archive.unlink()
