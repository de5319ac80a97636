"""A campaign as one portable file: its events, its pool, and a hash of everything."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from activecover.errors import InputError, StoreError
from activecover.files import WorkFolder
from activecover.home._home import Home
from activecover.pool import PoolFolder
from activecover.store import events_of, lines_of
from activecover.trace import replacing

_FORMAT = 1
_MANIFEST = "manifest.json"


def archive(home: Home, name: str, path: Path) -> str:
    """Write a campaign to a file and return its hash."""
    about = home.store.about(name)
    folder = home.folder / about["pool"]
    log = home.store.open(name)
    # New hashes for a log that was changed would hide that it was.
    head = log.verify()
    events = lines_of(log.read())
    log.close()
    hashes = {"events.jsonl": hashlib.sha256(events).hexdigest()}
    with (
        _to_hand_over(home, folder, own=bool(about.get("own"))) as folder,
        replacing(path, private=True) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
    ):
        file.writestr("events.jsonl", events)
        for part in PoolFolder(folder).files():
            inside = f"pool/{part.relative_to(folder)}"
            hashes[inside] = _copy_in(file, part, inside)
        if about.get("outside"):
            hashes["outside.npz"] = _copy_in(file, home.folder / about["outside"], "outside.npz")
        manifest = {"format": _FORMAT, "name": name, "about": about, "head": head, "hashes": hashes}
        text = json.dumps(manifest, sort_keys=True, ensure_ascii=False)
        file.writestr(_MANIFEST, text)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _to_hand_over(home: Home, folder: Path, *, own: bool) -> Iterator[Path]:
    """A pool as it may be handed over: of what was forgotten it does not even say how long it was."""
    if not own:
        yield folder
        return
    with WorkFolder(home.folder, "archive") as work:
        PoolFolder(folder).copy_to(work / "pool", compact=True)
        yield work / "pool"


def restore(home: Home, path: Path, name: str | None = None) -> str:
    """Take a campaign from a file into a home; its name there. Nothing is kept of a file that is damaged."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        with zipfile.ZipFile(path) as file:
            return _restore(home, path, file, name)
    except (zipfile.BadZipFile, EOFError, KeyError, ValueError, zipfile.LargeZipFile) as wrong:
        if isinstance(wrong, InputError):
            raise
        raise StoreError(f"{path}: not a whole archive of a campaign ({wrong}); make it again") from wrong


def _restore(home: Home, path: Path, file: zipfile.ZipFile, name: str | None) -> str:
    manifest: dict[str, Any] = json.loads(file.read(_MANIFEST))
    if manifest["format"] != _FORMAT:
        raise StoreError(
            f"{path}: archive format {manifest['format']}, this version reads {_FORMAT}; upgrade activecover"
        )
    chosen = name or manifest["name"]
    if chosen in home.names():
        raise InputError(f"{home.store}: there is a campaign {chosen!r} already; give another name")
    about = manifest["about"]
    relative = f"own/{chosen}" if about.get("own") else about["pool"]
    folder = home.folder / relative
    work = home.folder / f".restore-{chosen}"
    shutil.rmtree(work, ignore_errors=True)
    try:
        _unpack(path, file, manifest["hashes"], work)
        events = events_of(work / "events.jsonl", str(path))
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            (work / "pool").rename(folder)
        outside = f"outside/{chosen}.npz" if about.get("outside") else None
        if outside is not None:
            (home.folder / outside).parent.mkdir(exist_ok=True)
            (work / "outside.npz").replace(home.folder / outside)
        log = home.store.create(chosen, {**about, "pool": relative, "outside": outside})
        log.append([{key: value for key, value in event.items() if key != "seq"} for event in events])
        log.close()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return str(chosen)


def _copy_in(file: zipfile.ZipFile, part: Path, inside: str) -> str:
    digest = hashlib.sha256()
    with part.open("rb") as source, file.open(inside, "w", force_zip64=True) as target:
        while block := source.read(1 << 20):
            digest.update(block)
            target.write(block)
    return digest.hexdigest()


def _unpack(path: Path, file: zipfile.ZipFile, hashes: dict[str, str], work: Path) -> None:
    for inside, expected in hashes.items():
        target = work / inside
        if not target.resolve().is_relative_to(work.resolve()):
            raise StoreError(f"{path}: {inside} would lie outside its folder; this is no archive of ours")
        target.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with file.open(inside) as source, target.open("wb") as copy:
            while block := source.read(1 << 20):
                digest.update(block)
                copy.write(block)
        if digest.hexdigest() != expected:
            raise StoreError(f"{path}: {inside} is damaged; make the archive again")
