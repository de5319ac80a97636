"""The campaigns that a server has open, one object each, and files on their way in."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path, PurePath
from typing import Any

from activecover.campaign import UNDO_WINDOW, Campaign
from activecover.errors import InputError, StoreError
from activecover.files import WorkFolder, open_private
from activecover.intake import Busy, ConfinedIntake, DiskFull, TooLarge, comes_from_elsewhere
from activecover.web._map import PoolMap, Way
from activecover.web._problems import DISK_FULL, Problem, missing
from activecover.web._show import LARGEST_TEMPLATE, Showcase
from activecover.web._uploads import Uploads
from activecover.workspace import Workspace, embedding_for, secret_of

#: An item that a person has not answered after half an hour goes to someone else.
DEFAULT_LEASE = 1800.0
_SUFFIXES = {
    ".csv", ".tsv", ".txt", ".data", ".parquet", ".pq", ".jsonl", ".ndjson", ".npy", ".npz", ".ris", ".nbib", ".zip",
}  # fmt: skip
_UPLOAD = re.compile(r"[0-9a-f]{32}\.[a-z]{2,8}")
#: What a file is taken in by; the rest of what a new campaign is told is about the campaign.
_INTAKE = ("columns", "id_column", "label_column", "show", "metric", "header")


class Open:
    """A campaign that is open, and what is shown of it."""

    def __init__(self, name: str, campaign: Campaign, showcase: Showcase) -> None:
        self.name = name
        self.campaign = campaign
        self.sight = campaign.sight
        self.showcase = showcase
        self._lock = threading.Lock()
        self._maps: dict[Way, PoolMap] = {}

    @property
    def mark(self) -> str:
        """Distinguishes this campaign from another of its name, in every process."""
        created = self.campaign.journal.ledger.created
        return format(int(1e6 * (0 if created is None else created.at or 0)), "x")

    def map(self, by: Way) -> PoolMap:
        """The pool in two dimensions; found when first looked at."""
        with self._lock:
            if by not in self._maps:
                self._maps[by] = PoolMap(self.campaign.pool, by)
            return self._maps[by]


class Desk:
    """Campaigns of a home, each opened when first needed and kept open.

    Parameters
    ----------
    home : Workspace
        Where they live.
    lease : float
        Seconds after which an unanswered item goes back, for campaigns that do not say.
    memory : int, optional
        MB that reading an uploaded file may take.
    """

    def __init__(self, home: Workspace, lease: float = DEFAULT_LEASE, memory: int | None = None) -> None:
        self.home = home
        self._lease = lease
        self._lock = threading.Lock()
        self._open: dict[str, Open] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._uploads = Uploads(home.folder / ".uploads")
        self._secret = secret_of(home.folder)
        self._closed = False
        self._intake = ConfinedIntake(memory)

    # -- campaigns -------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """All campaigns."""
        return self.home.names()

    def opened(self) -> list[Open]:
        """Those that are open."""
        with self._lock:
            return list(self._open.values())

    def get(self, name: str) -> Open:
        """A campaign, opened if it is not yet."""
        with self._lock:
            if self._closed:
                raise StoreError("the server is shutting down: try again in a moment")
            found = self._open.get(name)
            if found is not None:
                return found
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            with self._lock:
                found = self._open.get(name)
            if found is None:
                self.check_exists(name)
                about = self.home.store.about(name)
                campaign = self.home.open(name, think_ahead=True, default_lease=self._lease)
                found = self.adopt(name, campaign, about.get("template"))
            return found

    def check_exists(self, name: str) -> None:
        """Refuse a name that no campaign has."""
        names = self.names()
        if name not in names:
            raise missing(f"there is no campaign {name!r} (there are: {', '.join(names) or 'none'})")

    def create(self, name: str, upload: str, *, template: str | None, request: str | None = None, **how: Any) -> Open:
        """Begin a campaign on an uploaded file; a request that is made again has done it already."""
        if name in self.names():
            if request is not None and self.home.store.about(name).get("request") == request:
                return self.get(name)
            raise Problem(f"there is a campaign {name!r} already; choose another name", 409, "taken")
        _check_template(template)
        if comes_from_elsewhere(how["embed"]):
            raise InputError(
                "embed names a model or a network, which would be read from the server's disk or fetched, and run there: "
                "begin such a campaign on the server itself, with activecover new"
            )
        path = self._upload_path(upload)
        with calling(path), self._work() as work:
            embed = embedding_for(how["embed"], how["learner"], how["forget_negatives"])
            made = self._intake.take_in(path, work, **{part: how.pop(part) for part in _INTAKE}, embed=embed)
            campaign = self.home.new(name, made, **how)
        campaign.close()
        self._uploads.drop(path, copies=bool(how.get("forget_negatives")))
        added = {"template": template, "request": request}
        self.home.store.set_about(name, {**self.home.store.about(name), **added})
        return self.get(name)

    def set_template(self, name: str, template: str | None) -> None:
        """Show items by another template, or by none."""
        _check_template(template)
        found = self.get(name)
        about = self.home.store.about(name)
        self.home.store.set_about(name, {**about, "template": template})
        found.showcase.template = template

    def remove(self, name: str) -> None:
        """Remove a campaign for good."""
        if name not in self.names():
            raise missing(f"there is no campaign {name!r}")
        self.let_go(name)
        self.home.remove(name)

    def forget(self, name: str, *, now: bool) -> list[str]:
        """Forget the final negatives of a campaign; with ``now``, all decisions are final."""
        return self.get(name).campaign.forget(0 if now else UNDO_WINDOW)

    def let_go(self, name: str) -> None:
        """Close a campaign if it is open."""
        with self._lock:
            found = self._open.pop(name, None)
        if found is not None:
            found.campaign.close()

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            self._closed = True
        self._intake.close()
        with self._lock:
            opened, self._open = list(self._open.values()), {}
        for found in opened:
            found.campaign.close()
        self._uploads.close()
        self.home.close()

    def adopt(self, name: str, campaign: Campaign, template: str | None = None) -> Open:
        """Serve a campaign that is open already."""
        found = Open(name, campaign, Showcase(name, campaign, template, self._secret))
        with self._lock:
            self._open[name] = found
        return found

    # -- files on their way in -------------------------------------------------------------------

    async def take_upload(self, name: str, body: AsyncIterator[bytes], expected: int = 0) -> tuple[str, int]:
        """Write a body to a new file; only the suffix of the user's file name is used.

        Where it is ``expected`` to have more bytes than the disk has room for, nothing is written.
        """
        suffix = PurePath(name.replace("\\", "/")).suffix.lower()
        if suffix not in _SUFFIXES:
            raise InputError(f"{name!r}: unknown kind of file; give one of {', '.join(sorted(_SUFFIXES))}")
        if expected > shutil.disk_usage(self._uploads.folder).free:
            raise Problem(DISK_FULL, 507, "full")
        self._intake.warm_up()
        path = self._uploads.fresh(suffix)
        size = 0
        try:
            with os.fdopen(open_private(path), "wb") as file:
                async for part in body:
                    file.write(part)
                    size += len(part)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        if not size:
            path.unlink(missing_ok=True)
            raise InputError(f"{name!r}: the file is empty")
        return path.name, size

    def preview(self, upload: str, header: bool = True) -> dict[str, Any]:
        """What an uploaded file holds, and what would be made of it."""
        path = self._upload_path(upload)
        with calling(path), self._work() as work:
            return self._intake.preview(path, work, header=header)

    def taken_in(self, upload: str) -> Path:
        """The file of an upload."""
        return self._upload_path(upload)

    def _upload_path(self, upload: str) -> Path:
        # The names are ours: nothing else can be one, and no path can be made of it.
        path = self._uploads.folder / upload
        if not _UPLOAD.fullmatch(upload) or not path.is_file():
            raise missing("there is no such upload: send the file again")
        self._uploads.used(path)
        return path

    def drop_upload(self, upload: str) -> None:
        """Erase a file that is not going to be used."""
        if _UPLOAD.fullmatch(upload):
            self._uploads.drop(self._uploads.folder / upload)

    def workspace(self) -> Path:
        """A folder for files that are made to be sent; the caller removes it."""
        return self._uploads.workspace()

    def _work(self) -> WorkFolder:
        """A folder for what is made of a file, swept if this process dies meanwhile."""
        return WorkFolder(self.home.folder, "intake")

    def discard(self, folder: Path) -> None:
        """Remove such a folder."""
        self._uploads.discard(folder)


class calling:
    """Messages about an upload call it what the user knows it as."""

    def __init__(self, path: Path, what: str = "the file") -> None:
        self._path, self._what = path, what

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, wrong: BaseException | None, _: object) -> None:
        if isinstance(wrong, TooLarge):
            raise Problem(str(wrong).replace(str(self._path), self._what), 413) from wrong
        if isinstance(wrong, DiskFull):
            raise Problem(DISK_FULL, 507, "full") from wrong
        if isinstance(wrong, Busy):
            raise Problem(str(wrong), 503, "busy") from wrong
        if isinstance(wrong, InputError) and not isinstance(wrong, Problem) and str(self._path) in str(wrong):
            raise InputError(str(wrong).replace(str(self._path), self._what)) from wrong


def _check_template(template: str | None) -> None:
    if template is not None and len(template) > LARGEST_TEMPLATE:
        raise InputError(f"the template has {len(template):,} characters: {LARGEST_TEMPLATE:,} at most")
