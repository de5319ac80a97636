"""Locks between the processes of one machine, and where they cannot be trusted."""

from __future__ import annotations

import os
from pathlib import Path

from activecover.errors import InputError, StoreError
from activecover.files import lock, open_private, unlock

#: File systems of other machines: their locks and syncs do not hold what SQLite needs.
_REMOTE = {
    "nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "gpfs", "beegfs",
    "9p", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "davfs", "fuse.davfs2",
}  # fmt: skip
_MOUNTS = Path("/proc/self/mounts")


def check_local(path: Path, mounts: Path | None = None) -> None:
    """Refuse a file on another machine's disk."""
    kind = file_system(path, mounts)
    if kind in _REMOTE:
        raise InputError(
            f"{path}: lies on a network file system ({kind}), where SQLite may lose labels; "
            "use a local folder, or PostgreSQL (--store postgresql://…)"
        )


def file_system(path: Path, mounts: Path | None = None) -> str | None:
    """The kind of file system that a path lies on, if the system tells."""
    try:
        lines = (mounts or _MOUNTS).read_text().splitlines()
    except OSError:
        return None
    place = path.resolve()
    best, kind = -1, None
    for line in lines:
        parts = line.split()
        if len(parts) < 3:
            continue
        point = parts[1].encode().decode("unicode_escape")
        if (place.is_relative_to(point)) and len(point) >= best:
            best, kind = len(point), parts[2]
    return kind


class FileLock:
    """A lock between processes that ends with the process that has it, no matter how that ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._handle = open_private(path, os.O_RDWR | os.O_CREAT)
        except OSError as wrong:
            raise StoreError(f"{path}: the lock of the store cannot be made ({wrong.strerror})") from wrong

    def acquire(self, wait: bool = True) -> bool:
        """Take the lock, and return whether it is ours; False is only possible without waiting."""
        return lock(self._handle, wait=wait)

    def unlock(self) -> None:
        """Let others have it."""
        unlock(self._handle)

    def release(self) -> None:
        """Let go of it for good."""
        os.close(self._handle)


def lock_file(path: Path, *, wait: bool) -> FileLock | None:
    """A lock that we have; None if another process has it and we do not wait."""
    found = FileLock(path)
    if found.acquire(wait):
        return found
    found.release()
    return None
