"""A campaign as one portable, signed file: its events, its pool, and a hash of everything."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from activecover.files import WorkFolder, replacing
from activecover.pool import PoolFolder
from activecover.store import lines_of
from activecover.workspace._keys import signing_key
from activecover.workspace._manifest import EVENTS, MANIFEST, OUTSIDE, POOL, PREFIX, SIGNED, Manifest, portable
from activecover.workspace._workspace import Workspace


def archive(home: Workspace, name: str, path: Path) -> str:
    """Write a campaign to a file, signed with the key of the home, and return the hash of its manifest."""
    about = home.store.about(name)
    folder = home.folder / about["pool"]
    log = home.store.open(name)
    # New hashes for a log that was changed would hide that it was.
    head = log.verify()
    events = list(log.read())
    log.close()
    with (
        _to_hand_over(home, folder, own=bool(about.get("own"))) as folder,
        replacing(path, private=True) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
    ):
        lines = lines_of(events)
        hashes = {EVENTS: hashlib.sha256(lines).hexdigest()}
        file.writestr(EVENTS, lines)
        for part in PoolFolder(folder).files():
            inside = f"{POOL}{part.relative_to(folder).as_posix()}"
            hashes[inside] = _copy_in(file, part, inside)
        if about.get("outside"):
            hashes[OUTSIDE] = _copy_in(file, home.folder / about["outside"], OUTSIDE)
        manifest = Manifest(name, portable(about), hashes, head, len(events), OUTSIDE in hashes)
        text = manifest.as_text()
        file.writestr(MANIFEST, text)
        signature = signing_key(home.folder).signature_of(PREFIX + text.encode())
        file.writestr(SIGNED, json.dumps(signature))
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _to_hand_over(home: Workspace, folder: Path, *, own: bool) -> Iterator[Path]:
    """A pool as it may be handed over: it does not even reveal the length of forgotten contents."""
    if not own:
        yield folder
        return
    with WorkFolder(home.folder, "archive") as work:
        PoolFolder(folder).copy_to(work / "pool", compact=True)
        yield work / "pool"


def _copy_in(file: zipfile.ZipFile, part: Path, inside: str) -> str:
    digest = hashlib.sha256()
    with part.open("rb") as source, file.open(inside, "w", force_zip64=True) as target:
        while block := source.read(1 << 20):
            digest.update(block)
            target.write(block)
    return digest.hexdigest()
