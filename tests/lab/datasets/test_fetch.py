"""Downloads against a real server on the loopback: cut, resumed, refused, and never half in place."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest
from file_server import BODY, Server, names, refused

from activecover.lab.datasets import Download, fetch_files
from interrupts import interruptible

# -- files -------------------------------------------------------------------------------------------


def test_files_arrive_and_are_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    downloads = [server.download("one.bin", BODY), server.download("deep/two.txt", b"two", to="zwei.txt")]
    seen: list[tuple[str, int, int]] = []
    fetch_files(downloads, tmp_path / "new/folder", lambda *told: seen.append(told))
    assert (tmp_path / "new/folder/one.bin").read_bytes() == BODY
    assert (tmp_path / "new/folder/zwei.txt").read_bytes() == b"two"
    assert names(tmp_path / "new/folder") == ["one.bin", "zwei.txt"]
    assert [told for told in seen if told[1] == told[2]] == [("one.bin", 700_000, 700_000), ("two.txt", 3, 3)]
    assert [done for _, done, _ in seen[:-1]] == sorted(done for _, done, _ in seen[:-1])
    assert server.asked == [("/one.bin", None), ("/deep/two.txt", None)]
    (tmp_path / "new/folder/one.bin").write_bytes(b"the user's own")
    fetch_files(downloads, tmp_path / "new/folder")
    assert (tmp_path / "new/folder/one.bin").read_bytes() == b"the user's own"
    assert len(server.asked) == 2


@pytest.mark.parametrize("hashed", ["md5", "sha1", "sha256"])
def test_an_empty_file_and_other_hashes(server: Server, tmp_path: Path, hashed: str) -> None:
    digest = f"{hashed}:{hashlib.new(hashed, b'').hexdigest()}"
    fetch_files([server.download("empty", b"", digest)], tmp_path)
    assert (tmp_path / "empty").read_bytes() == b""


def test_a_cut_download_goes_on_where_it_was(server: Server, tmp_path: Path) -> None:
    download = server.download("one.bin", BODY)
    server.cut_after = 300_000
    refused(download, tmp_path, "cut short after 300,000 of 700,000 bytes; run the same command to resume")
    assert names(tmp_path) == ["one.bin.part"]
    refused(download, tmp_path, "cut short after 600,000 of 700,000 bytes")
    assert (tmp_path / "one.bin.part").read_bytes() == BODY[:600_000]
    server.cut_after, server.sent = None, 0
    seen: list[tuple[str, int, int]] = []
    fetch_files([download], tmp_path, lambda *told: seen.append(told))
    assert server.sent == 100_000
    assert seen == [("one.bin", 700_000, 700_000)]
    assert [wanted for _, wanted in server.asked] == [None, "bytes=300000-", "bytes=600000-"]
    assert names(tmp_path) == ["one.bin"]
    assert (tmp_path / "one.bin").read_bytes() == BODY


def test_a_cut_among_chunks_goes_on_too(server: Server, tmp_path: Path) -> None:
    download = server.download("one.bin", BODY)
    server.chunked, server.cut_after = True, 600_000
    refused(download, tmp_path, "cannot be reached .*run the same command to resume")
    kept = (tmp_path / "one.bin.part").stat().st_size
    assert 0 < kept <= 600_000
    server.cut_after, server.sent = None, 0
    fetch_files([download], tmp_path)
    assert server.sent == 700_000 - kept
    assert (tmp_path / "one.bin").read_bytes() == BODY


def test_a_server_that_sends_all_again(server: Server, tmp_path: Path) -> None:
    download = server.download("one.bin", BODY)
    (tmp_path / "one.bin.part").write_bytes(BODY[:300_000])
    server.ranges = False
    fetch_files([download], tmp_path)
    assert server.sent == 700_000
    assert names(tmp_path) == ["one.bin"]
    assert (tmp_path / "one.bin").read_bytes() == BODY


def test_a_part_that_is_complete(server: Server, tmp_path: Path) -> None:
    download = server.download("one.bin", BODY)
    (tmp_path / "one.bin.part").write_bytes(BODY)
    fetch_files([download], tmp_path)
    assert (server.sent, names(tmp_path)) == (0, ["one.bin"])


@pytest.mark.parametrize("part", [b"x" * 300_000, b"x" * 700_000, b"x" * 800_000])
def test_a_part_of_something_else(server: Server, tmp_path: Path, part: bytes) -> None:
    download = server.download("one.bin", BODY)
    (tmp_path / "one.bin.part").write_bytes(part)
    refused(download, tmp_path, "its hash .* differs from the published one; nothing was kept")
    assert names(tmp_path) == []
    fetch_files([download], tmp_path)
    assert (tmp_path / "one.bin").read_bytes() == BODY


def test_a_wrong_hash_leaves_nothing(server: Server, tmp_path: Path) -> None:
    good = server.download("good", b"good")
    said = refused([good, server.download("bad", b"bad", "md5:" + "0" * 32)], tmp_path, "nothing was kept")
    assert said.startswith(f"{server.url}/bad: ")
    assert names(tmp_path) == ["good"]


def test_not_found(server: Server, tmp_path: Path) -> None:
    said = refused(server.download("nowhere"), tmp_path, "the server answered 404 Not Found")
    assert said.startswith(f"{server.url}/nowhere: ")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/x", "nonsense", "http://127.0.0.1:port/x", "ftps://x/y", "http://"]
)
def test_no_server(tmp_path: Path, url: str) -> None:
    assert refused(Download("x", url, "md5:0"), tmp_path, "cannot be reached").startswith(url)
    assert names(tmp_path) == []


@pytest.mark.parametrize("length", ["", "some"])
def test_without_a_length(server: Server, tmp_path: Path, length: str) -> None:
    server.lengths, server.length, server.pause = bool(length), length, 0.01
    seen: list[tuple[str, int, int]] = []
    fetch_files([server.download("one.bin", BODY)], tmp_path, lambda *told: seen.append(told))
    assert (tmp_path / "one.bin").read_bytes() == BODY
    assert {total for _, _, total in seen} == {0}


def test_without_a_length_a_cut_is_seen_by_the_hash(server: Server, tmp_path: Path) -> None:
    server.lengths, server.cut_after = False, 300_000
    refused(server.download("one.bin", BODY), tmp_path, "its hash")
    assert names(tmp_path) == []


def test_a_server_that_falls_silent(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("activecover.lab.datasets._fetch._SECONDS", 0.2)
    server.pause = 0.6
    download = server.download("one.bin", BODY[:90_000])
    refused(download, tmp_path, r"cannot be reached \(timed out\)")
    assert "one.bin" not in names(tmp_path)
    server.pause = 0
    fetch_files([download], tmp_path)
    assert (tmp_path / "one.bin").read_bytes() == BODY[:90_000]


# -- archives ----------------------------------------------------------------------------------------


def tar_of(*members: tuple[str, bytes | str], packed: str = "gz") -> bytes:
    """An archive of files; one whose content is text is a link there."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=f"w:{packed}") as tar:  # type: ignore[call-overload]
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


@pytest.mark.parametrize("packed", ["gz", "xz", "bz2", ""])
def test_an_archive_is_unpacked(server: Server, tmp_path: Path, packed: str) -> None:
    archive = tar_of(("things/a.bin", BODY), ("things/in/b.txt", b"b"), ("readme", b"read me"), packed=packed)
    download = server.download("things.tar", archive, to="things", unpack=True)
    server.cut_after = len(archive) // 2
    refused(download, tmp_path, "cut short")
    server.cut_after = None
    fetch_files([download], tmp_path)
    assert names(tmp_path) == ["things", "things/a.bin", "things/in", "things/in/b.txt"]
    assert (tmp_path / "things/a.bin").read_bytes() == BODY
    asked = len(server.asked)
    fetch_files([download], tmp_path)
    assert len(server.asked) == asked


#: Compressible: of noise, gzip keeps the bytes as they are, and tarfile does not look at its checksum.
GOOD = ("things/a.bin", b" ".join(b"%d" % number for number in range(20_000)))


def flipped(content: bytes, at: float) -> bytes:
    middle = int(len(content) * at)
    return content[:middle] + bytes(byte ^ 0xFF for byte in content[middle : middle + 20]) + content[middle + 20 :]


@pytest.mark.parametrize(
    ("archive", "why"),
    [
        (tar_of(GOOD, ("../evil", b"x")), "cannot be unpacked"),
        (tar_of(GOOD, ("things/../../evil", b"x")), "cannot be unpacked"),
        (tar_of(GOOD, ("things/link", "../../evil")), "cannot be unpacked"),
        (tar_of(GOOD, ("things/link", "/"), ("things/link/evil", b"x")), "cannot be unpacked"),
        (tar_of(("other/a.bin", b"x")), "contains no folder things"),
        (tar_of(("things", b"a file")), "contains no folder things"),
        (tar_of(GOOD)[:20_000], "cannot be unpacked"),
        (flipped(tar_of(GOOD), 0.1), "cannot be unpacked"),
        (flipped(tar_of(GOOD), 0.7), "cannot be unpacked"),
        (flipped(tar_of(GOOD, packed="xz"), 0.5), "cannot be unpacked"),
        (flipped(tar_of(GOOD, packed="bz2"), 0.5), "cannot be unpacked"),
        (b"<html>", "cannot be unpacked"),
        (b"", "cannot be unpacked"),
    ],
)
def test_an_archive_that_is_not_right(server: Server, tmp_path: Path, archive: bytes, why: str) -> None:
    target = tmp_path / "data/set"
    download = server.download("things.tar.gz", archive, to="things", unpack=True)
    refused(download, target, why)
    # Nothing under the final name, nothing outside of the folder, nothing unpacked left beside it.
    assert names(target) == ["things.tar.gz.part"]
    assert names(tmp_path) == ["data", "data/set", "data/set/things.tar.gz.part"]
    # What is published later is taken.
    again = server.download("things.tar.gz", tar_of(GOOD), to="things", unpack=True)
    server.ranges = False
    fetch_files([again], target)
    assert names(target) == ["things", "things/a.bin"]


# -- folders and interruptions -----------------------------------------------------------------------


def test_a_folder_that_cannot_be(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = refused(server.download("one", b"one"), tmp_path / "file/set", "the folder cannot be made")
    assert said.startswith(str(tmp_path / "file/set"))
    (tmp_path / "one.part").mkdir()
    refused(server.download("one", b"one"), tmp_path, r"one\.part: cannot be written \(Is a directory\)")
    assert server.sent <= 3


CHILD = """
import os, resource, signal, sys
from activecover.lab.datasets import Download, fetch_files
from activecover.errors import InputError
from pathlib import Path
import encodings.idna, tempfile, socket
folder, url, digest, how = sys.argv[1:]
if how == "full":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
if how == "locked" and os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
def watch(name, done, total):
    print(done, flush=True)
try:
    fetch_files([Download("one.bin", url, digest)], Path(folder), watch)
except InputError as wrong:
    print(wrong, file=sys.stderr)
    sys.exit(2)
except KeyboardInterrupt:
    sys.exit(130)
"""


def child(folder: Path, download: Download, how: str = "") -> subprocess.Popen[str]:
    return interruptible(
        [sys.executable, "-B", "-c", CHILD, str(folder), download.url, download.digest, how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_folder_without_the_right_to_write(server: Server) -> None:
    # Not in pytest's folder: nobody else may look into that one, and root is not stopped by any.
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "set"
        folder.mkdir()
        os.chmod(place, 0o755)
        folder.chmod(0o555)
        running = child(folder, server.download("one.bin", BODY), "locked")
        _, said = running.communicate(timeout=60)
        assert running.returncode == 2
        assert said == (
            f"{folder / 'one.bin.part'}: cannot be written (Permission denied); run the same command to resume\n"
        )
        assert names(folder) == []


def test_a_full_disk_keeps_what_there_was_room_for(server: Server, tmp_path: Path) -> None:
    download = server.download("one.bin", BODY)
    running = child(tmp_path, download, "full")
    _, said = running.communicate(timeout=60)
    assert running.returncode == 2
    assert said.count("\n") == 1
    assert "cannot be written (File too large); run the same command to resume" in said
    assert names(tmp_path) == ["one.bin.part"]
    kept = (tmp_path / "one.bin.part").read_bytes()
    assert kept == BODY[: len(kept)]
    fetch_files([download], tmp_path)
    assert (tmp_path / "one.bin").read_bytes() == BODY


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_in_the_middle(server: Server, tmp_path: Path, sent: signal.Signals) -> None:
    download = server.download("one.bin", BODY)
    server.pause = 0.1
    running = child(tmp_path, download)
    assert running.stdout is not None
    done = int(running.stdout.readline())
    running.send_signal(sent)
    running.communicate(timeout=60)
    assert running.returncode == (130 if sent == signal.SIGINT else -signal.SIGKILL)
    assert names(tmp_path) == ["one.bin.part"]
    kept = (tmp_path / "one.bin.part").read_bytes()
    assert kept == BODY[: len(kept)]
    if sent == signal.SIGINT:
        assert len(kept) >= done
    server.pause = 0
    fetch_files([download], tmp_path)
    assert server.asked[1:] == [("/one.bin", f"bytes={len(kept)}-" if kept else None)]
    assert (tmp_path / "one.bin").read_bytes() == BODY


# -- the command -------------------------------------------------------------------------------------
