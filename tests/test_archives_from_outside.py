"""Archives that once did harm, files that reached other programs, and what killed commands left: by commands alone.

Like ``test_from_outside.py``, nothing here knows how the package is built, so the same tests fail on versions
from before the fixes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interrupts import interruptible
from test_from_outside import PNG, begin, home, run, serve, table

#: An archive as an early version wrote it: a format that every version can restore.
ARCHIVE = Path(__file__).parent / "workspace" / "archives" / "format-1.zip"
__all__ = ["home", "serve"]


def forged(path: Path, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> Path:
    """Write the archive with a change to its manifest and its other files, and with hashes that fit again."""
    with zipfile.ZipFile(ARCHIVE) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    manifest = json.loads(parts.pop("manifest.json"))
    change(manifest, parts)
    manifest["hashes"] = {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()}
    with zipfile.ZipFile(path, "w") as file:
        for name, data in {**parts, "manifest.json": json.dumps(manifest).encode()}.items():
            file.writestr(name, data)
    return path


def everything(folder: Path, but: Path) -> dict[str, bytes]:
    """The files below a folder, except those below another."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
        if not path.is_relative_to(but)
    }


@pytest.fixture
def around(tmp_path: Path) -> Path:
    """A folder with a file that is nobody's business, beside the home."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "letter.txt").write_text("a letter")
    return tmp_path


@pytest.mark.parametrize("place", ["../victim/pool", "absolute", "pools/../../victim/pool"])
def test_an_archive_does_not_choose_where_its_pool_goes(around: Path, home: Path, place: str) -> None:
    target = str(around / "victim" / "pool") if place == "absolute" else place
    file = forged(around / "a.zip", lambda manifest, _: manifest["about"].update(pool=target))
    before = everything(around, home)
    run("restore", str(file), home=home)
    assert everything(around, home) == before
    assert run("campaigns", home=home).returncode == 0


def test_the_name_in_an_archive_removes_no_folder(around: Path, home: Path) -> None:
    home.mkdir()
    # Names an existing folder from within a work folder of the home, whatever that is called.
    file = forged(around / "a.zip", lambda manifest, _: manifest.update(name="x/../../victim"))
    (home / ".restore-x").mkdir()
    before = everything(around, home)
    assert run("restore", str(file), home=home).returncode == 2
    assert everything(around, home) == before


def test_an_archive_cannot_have_other_files_handed_out(around: Path, home: Path) -> None:
    def confess(_: dict[str, Any], parts: dict[str, bytes]) -> None:
        about = json.loads(parts["pool/pool.json"])
        del about["check"]
        about["files"]["../../../victim/letter.txt"] = {"size": 8, "blocks": []}
        text = json.dumps(about, sort_keys=True)
        check = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        parts["pool/pool.json"] = json.dumps({**about, "check": check}).encode()

    file = forged(around / "a.zip", confess)
    run("restore", str(file), home=home)
    out = around / "out.zip"
    run("archive", "cars", str(out), home=home)
    if out.exists():
        with zipfile.ZipFile(out) as written:
            assert not [name for name in written.namelist() if b"a letter" in written.read(name)]


def test_the_head_that_an_archive_names_is_that_of_its_log(around: Path, home: Path) -> None:
    file = forged(around / "a.zip", lambda manifest, _: manifest.update(head="0" * 64))
    done = run("restore", str(file), home=home)
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
    assert "cars" not in run("campaigns", home=home).stdout


def test_a_picture_that_is_postscript_starts_no_other_program(
    home: Path, tmp_path: Path, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("gs", "gswin64c", "gswin32c"):
        (programs / name).write_text(f"#!/bin/sh\ntouch {started}\nexit 0\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    text = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 20\n%%EndComments\n0 0 moveto 9 9 lineto stroke\n%%EOF\n"
    picture = f"data:image/png;base64,{base64.b64encode(text).decode()}"
    file = tmp_path / "a.csv"
    file.write_text(table(file).read_text().replace(PNG, picture, 1))
    begin(home, file)
    server = serve(home)
    answer = server.send(server.owner, "GET", "campaigns/mail/image?id=m0&column=picture")
    assert not started.exists()
    assert answer.status_code == 422


def test_a_killed_command_leaves_no_files_for_ever(home: Path, tmp_path: Path) -> None:
    begin(home, table(tmp_path / "a.csv"))
    before = {path.name for path in home.iterdir()}
    rows = "\n".join(f"m{row},{row % 7},{row % 11},some words that make the file larger {row}" for row in range(60_000))
    (tmp_path / "b.csv").write_text(f"id,x,y,text\n{rows}\n")
    command = [sys.executable, "-m", "activecover", "new", "other", "--pool", str(tmp_path / "b.csv")]
    options = ["--id-col", "id", "--embed", "columns:x,y", "--home", str(home)]
    killed = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while killed.poll() is None and not {path.name for path in home.iterdir() if "intake" in path.name}:
            time.sleep(0.002)
        assert killed.poll() is None, "the command ended before it could be killed"
    finally:
        killed.kill()
        killed.wait()
    assert run("status", "mail", home=home).returncode == 0
    left = {path.name for path in home.iterdir()} - before
    assert not [name for name in left if "intake" in name]


def test_ctrl_c_before_a_command_has_begun_is_one_line(home: Path, tmp_path: Path) -> None:
    begin(home, table(tmp_path / "a.csv"))
    draw = random.Random(0)
    for _ in range(6):
        command = [sys.executable, "-m", "activecover", "status", "mail", "--home", str(home)]
        process = interruptible(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # From when the package is being imported: until then the interpreter itself answers.
        while process.poll() is None and "numpy" not in Path(f"/proc/{process.pid}/maps").read_text():
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 0.3))
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        assert "Traceback" not in said
        assert len(said.strip().splitlines()) <= 1


def test_a_turn_cannot_be_taken_by_others(home: Path, tmp_path: Path) -> None:
    """Whoever could open a file of the store could hold its lock, and every write would wait."""
    before = os.umask(0)
    try:
        begin(home, table(tmp_path / "a.csv"))
        assert run("label", "mail", "m1=no", home=home).returncode == 0
    finally:
        os.umask(before)
    open_to_others = [
        str(path.relative_to(home)) for path in [home, *home.rglob("*")] if stat.S_IMODE(path.stat().st_mode) & 0o077
    ]
    assert not open_to_others
