"""Takes in archives one after the other, in a process with little memory, and says what it touched meanwhile.

Reads a line for each: JSON with the archive's path and what to do with it. Writes a line for each: JSON with the
outcome, the refusal, and every path outside the home that was written to, or read without reason.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import traceback
import zipfile
from pathlib import Path
from typing import Any

from forging import FORMAT_1, FORMAT_1_OWN, snapshot

from activecover import ActiveCoverError
from activecover.workspace import Workspace, archive, restore, signing_key, verify

MORE = 512 << 20
SECRET = b"dear diary"
_WRITING = {
    "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.chown", "os.truncate",
    "os.utime", "shutil.rmtree", "shutil.move", "shutil.copyfile", "sqlite3.connect", "subprocess.Popen", "os.system",
    "os.exec", "os.posix_spawn", "socket.connect",
}  # fmt: skip
_FOR_READING = (sys.prefix, sys.base_prefix, "/usr", "/lib", "/proc", "/sys", "/dev", "/etc/localtime")


class Watch:
    """Every path that Python code opens, makes, moves or removes."""

    def __init__(self, inside: list[Path], readable: list[str]) -> None:
        self.inside = [str(path.resolve()) for path in inside]
        self.readable = (*readable, *_FOR_READING)
        self.on = False
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on or event not in _WRITING | {"open", "os.listdir", "os.scandir"}:
            return
        for path in arguments[: 2 if event in ("os.rename", "os.link", "os.symlink") else 1]:
            if isinstance(path, str | bytes | os.PathLike):
                self._look(event, arguments, os.fsdecode(path))

    def _look(self, event: str, arguments: tuple[Any, ...], path: str) -> None:
        # Of what shutil removes below an open folder only the last part of the name is told.
        if not os.path.isabs(path) and event in ("os.rmdir", "os.remove") and len(arguments) > 1 and arguments[1] != -1:
            return
        if not os.path.isabs(path) and event in ("open", "os.scandir"):
            return
        whole = os.path.realpath(path)
        if any(whole == one or whole.startswith(one + os.sep) for one in self.inside):
            return
        writes = event in _WRITING or (
            event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        )
        if writes or not whole.startswith(self.readable):
            self.seen.append(f"{event} {whole}")


def state_of(home: Workspace) -> dict[str, Any]:
    """What a home holds besides its store, which is compared by its campaigns; times of folders change."""
    store = home.folder / "store.sqlite"
    found = snapshot(home.folder)
    return {
        path: (kind, mode, data)
        for path, (kind, mode, _, data) in found.items()
        if not Path(path).name.startswith(store.name)
    }


def take(home: Workspace, path: Path, how: str) -> tuple[str, str | None]:
    try:
        if how == "verify":
            verify(json.loads(DOCUMENT), archive=path)
            return "verified", None
        name = restore(home, path)
        with home.open(name) as campaign:
            campaign.status()
        if how == "archive":
            with tempfile.TemporaryDirectory() as folder:
                archive(home, name, Path(folder) / "again.zip")
                with zipfile.ZipFile(Path(folder) / "again.zip") as packed:
                    if any(SECRET in packed.read(each) for each in packed.namelist()):
                        return "leaked", name
        home.remove(name)
    except ActiveCoverError as wrong:
        return "refused", str(wrong)
    except MemoryError:
        return "MemoryError", None
    except Exception as wrong:
        return "raised", f"{type(wrong).__name__}: {wrong} {traceback.format_exc()[-1500:]}"
    return "taken", None


DOCUMENT = FORMAT_1.with_name("certificate-1.json").read_text()


def main(folder: Path) -> None:
    home = Workspace(folder / "home")
    tempfile.tempdir = str(folder / "temporary")
    watch = Watch(
        [home.folder, folder / "temporary", Path(os.devnull)],
        [
            str(folder / "sent"),
            str(Path("src").resolve()),
            os.environ.get("NUMBA_CACHE_DIR", "/nowhere"),
            *filter(None, sys.path),
        ],
    )
    for path in (FORMAT_1, FORMAT_1_OWN):
        for how in ("verify", "restore"):
            take(home, path, how)
    signing_key(home.folder)
    before = state_of(home)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MORE, size + MORE))
    sys.addaudithook(watch)
    print("ready", flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        watch.on, watch.seen = True, []
        outcome, text = take(home, Path(task["path"]), task["how"])
        watch.on = False
        left = []
        if home.names():
            left += home.names()
            for name in home.names():
                home.remove(name)
        now = state_of(home)
        left += sorted(set(now) ^ set(before)) + [path for path in now if path in before and now[path] != before[path]]
        left += [str(path) for path in (folder / "temporary").iterdir()]
        said = {"outcome": outcome, "text": text, "touched": watch.seen, "left": left}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
