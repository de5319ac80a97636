"""The one reader of archives: everything in one is checked, in a fresh folder, before anybody uses any of it.

An archive comes from a stranger. Its structure is checked before its manifest is read, its manifest and signature
before anything is unpacked, and every file while it is unpacked below a folder that holds nothing else. Then the
pool is checked byte by byte, the chain of events is computed again, and the campaign is opened once, by the same
code that opens it later. Nothing outside the folder is read or written.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from activecover.campaign import Campaign
from activecover.errors import ActiveCoverError, ArchiveError, InputError, StoreError
from activecover.files import open_private, private_folder
from activecover.learners import LEARNERS
from activecover.pool import PoolFolder, PoolLimits, check_pool_folder
from activecover.strict import JsonLimits, ZipLimits, check_npz, checked_zip, copy_member, read_json
from activecover.workspace._archived_log import ArchivedLog
from activecover.workspace._keys import PublicKey
from activecover.workspace._manifest import EVENTS, MANIFEST, OUTSIDE, PREFIX, SIGNED, Manifest, read_manifest
from activecover.workspace._outside import ARRAYS, load_outside
from activecover.workspace._signing import Signer, check_signature

_SIGNATURE = JsonLimits(size=4096, values=16, depth=2)
#: What a large archive may not have either: names and manifests are held in memory before anyone is trusted.
_STRUCTURE = ZipLimits(members=20_000, size=1 << 62)
#: Left free on the disk.
_SPARE = 1 << 26


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that an archive by an unknown hand may hold."""

    size: int = 1 << 30
    #: Times the size of the archive itself, where that is more.
    ratio: int = 100
    #: Events and vectors from outside are held in memory.
    events: int = 250_000
    events_size: int = 1 << 27
    outside: int = 1 << 26
    #: What the arrays of an embedding, which are packed once more, unpack to.
    embedding: int = 1 << 28
    pool: PoolLimits = field(default_factory=PoolLimits)


USUAL = Limits()
#: For archives whose maker is trusted: as much as the disk takes.
LARGE = Limits(1 << 60, 1, 1 << 40, 1 << 60, 1 << 40, 1 << 40, replace(USUAL.pool, rows=1 << 40))


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A campaign that was checked, in a folder that holds nothing else."""

    folder: Path
    manifest: Manifest
    signer: Signer
    log: ArchivedLog

    @property
    def pool(self) -> Path:
        """The folder of its pool."""
        return self.folder / "pool"

    @property
    def outside(self) -> Path | None:
        """The known positives from outside, if it has any."""
        return self.folder / OUTSIDE if self.manifest.outside else None

    def open(self) -> Campaign:
        """The campaign, to look at."""
        outside = None if self.outside is None else load_outside(self.outside)
        # Logs of earlier versions do not hold the limits.
        limits: dict[str, Any] = {name: self.manifest.settings.get(name) for name in ("lease", "budget", "target")}
        return Campaign(PoolFolder(self.pool).load(), log=self.log, external_positives=outside, **limits)


def unpack(
    path: Path,
    folder: Path,
    *,
    key: PublicKey | None = None,
    own: PublicKey | None = None,
    large: bool = False,
) -> Unpacked:
    """Check an archive and unpack it.

    Parameters
    ----------
    path : Path
        The archive.
    folder : Path
        A folder that exists, is empty, and belongs to nobody else. What is in it after a refusal is for the
        caller to remove.
    key : PublicKey, optional
        The key that it must be signed with.
    own : PublicKey, optional
        The key of the home that it is unpacked for: what that has signed may be as large as the disk takes.
    large : bool
        Whether the limits on size do not hold.

    Raises
    ------
    ArchiveError
        With what is wrong, in one line.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    with said_of(path, folder), checked_zip(path, _STRUCTURE) as packed:
        manifest, signer = _read_manifest(packed, key)
        signer = replace(signer, own=signer.key is not None and signer.key == own)
        limits = LARGE if large or signer.trusted or signer.own else USUAL
        _check_sizes(path, packed, folder, limits)
        for inside, digest in manifest.hashes.items():
            _unpack_member(packed, inside, folder, digest)
        check_pool_folder(folder / "pool", limits.pool)
        arrays = PoolFolder(folder / "pool").embedding_folder / "embedding.npz"
        if arrays.is_file():
            check_npz(arrays, ZipLimits(size=limits.embedding, ratio=1, flat=True))
        log = ArchivedLog(folder / EVENTS, limits.events)
        _check_chain(manifest, log)
        if manifest.outside:
            check_npz(folder / OUTSIDE, ZipLimits(size=limits.outside, ratio=1, flat=True), ARRAYS)
        unpacked = Unpacked(folder, manifest, signer, log)
        _check_opens(unpacked)
    return unpacked


@contextmanager
def said_of(path: Path, folder: Path | None = None) -> Iterator[None]:
    """Prefix errors with the archive's name, and leave out that of the temporary folder."""
    try:
        yield
    except ArchiveError:
        raise
    except ActiveCoverError as wrong:
        text = str(wrong) if folder is None else str(wrong).replace(f"{folder}{os.sep}", "")
        raise ArchiveError(f"{path}: {' '.join(text.split())}") from wrong
    except OSError as wrong:
        raise StoreError(f"{path}: cannot be unpacked ({wrong.strerror or wrong})") from wrong


def _read_manifest(packed: zipfile.ZipFile, key: PublicKey | None) -> tuple[Manifest, Signer]:
    """The manifest of an archive and its signer; the members must be exactly those that it names."""
    members = {member.filename: member for member in packed.infolist()}
    if MANIFEST not in members:
        raise InputError("not an archive of a campaign (it has no manifest)")
    if members[MANIFEST].file_size > 1 << 22:
        raise InputError("its manifest is too large")
    text = b"".join(copy_member(packed, members[MANIFEST]))
    manifest = read_manifest(text)
    signature = None
    if SIGNED in members:
        if members[SIGNED].file_size > _SIGNATURE.size:
            raise InputError("its signature is too large")
        signature = read_json(b"".join(copy_member(packed, members[SIGNED])), _SIGNATURE)
    elif manifest.format > 1:
        raise InputError("its signature is missing: it was changed after it was made")
    signer = check_signature("archive", PREFIX + text, signature, key)
    listed = {MANIFEST, *manifest.hashes} | ({SIGNED} if SIGNED in members else set())
    for inside in sorted(listed ^ set(members)):
        what = "is not in its manifest" if inside in members else "is missing"
        raise InputError(f"not a whole archive of a campaign ({inside[:80]} {what})")
    return manifest, signer


def _check_sizes(path: Path, packed: zipfile.ZipFile, folder: Path, limits: Limits) -> None:
    sizes = {member.filename: member.file_size for member in packed.infolist()}
    total, room = sum(sizes.values()), max(limits.size, limits.ratio * path.stat().st_size)
    hint = "if you trust who made it, restore it on the command line with --large, or give their key with --key"
    if total > room:
        raise InputError(f"it unpacks to {total:,} bytes, {room:,} at most; {hint}")
    if sizes[EVENTS] > limits.events_size or sizes.get(OUTSIDE, 0) > limits.outside:
        raise InputError(f"its events or vectors are larger than usual; {hint}")
    free = shutil.disk_usage(folder).free - _SPARE
    if total > free:
        raise InputError(f"it unpacks to {total:,} bytes, and {max(0, free):,} are free on the disk")


def _unpack_member(packed: zipfile.ZipFile, inside: str, folder: Path, expected: str) -> None:
    """Write one member to a new file; its name was checked when the archive was opened."""
    target = folder / inside
    private_folder(target.parent)
    digest = hashlib.sha256()
    with os.fdopen(open_private(target), "wb") as file:
        for block in copy_member(packed, packed.getinfo(inside)):
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    if digest.hexdigest() != expected:
        raise InputError(f"{inside} is damaged: it does not fit its hash; make the archive again")


def _check_chain(manifest: Manifest, log: ArchivedLog) -> None:
    if manifest.events is not None and manifest.events != len(log):
        raise InputError(f"it has {len(log):,} events, its manifest says {manifest.events:,}")
    if manifest.head is not None and manifest.head != log.head():
        raise InputError("its events do not lead to the head that its manifest states: some were changed or dropped")


def _check_opens(unpacked: Unpacked) -> None:
    """Open the campaign as it will be opened later; what no log of this program can hold is found here."""
    try:
        with unpacked.open() as campaign:
            campaign.status()
            # A learner of another version can be changed after restoring; one that nobody knows is refused.
            LEARNERS[campaign.learner_name.partition("@")[0]]
        if next(unpacked.log.read()).get("forgets") and not unpacked.manifest.settings["own"]:
            raise InputError("a campaign that forgets needs a pool of its own")
    except ActiveCoverError:
        raise
    except MemoryError:
        raise InputError("there is not enough memory to open it") from None
    except _RAW as wrong:
        raise InputError(f"its events make no campaign ({type(wrong).__name__}: {str(wrong)[:80]})") from None


#: What code raises on values that have the right types and no sense.
_RAW: tuple[type[Exception], ...] = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
