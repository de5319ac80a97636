"""The cache of embeddings: each made once, whole or not at all, whoever asks."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from activecover.errors import InputError
from activecover.lab.networks import EmbeddingCache

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)


def never() -> Any:
    raise AssertionError("made a second time")


def kept(folder: Path) -> list[str]:
    """What is there apart from the locks, which are empty."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_made_once_and_mapped(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path / "new/folder")
    first = cache.get("key", lambda: MATRIX)
    again = EmbeddingCache(tmp_path / "new/folder").get("key", never)
    for matrix in (first, again):
        assert isinstance(matrix, np.memmap)
        assert not matrix.flags.writeable
        assert matrix.dtype == np.float32
        assert (matrix == MATRIX).all()
    assert kept(cache.folder) == ["key.npy"]
    assert (cache.get("other", lambda: MATRIX + 1) == MATRIX + 1).all()
    assert (cache.get("none", lambda: MATRIX[:0])).shape == (0, 3)


def test_keys() -> None:
    key = EmbeddingCache.key(data="mnist", sample=np.array([1, 2]), seed=0)
    assert key == EmbeddingCache.key(seed=0, sample=[1, 2], data="mnist")
    others = [
        EmbeddingCache.key(data="mnist", sample=np.array([2, 1]), seed=0),
        EmbeddingCache.key(data="mnist", sample=np.array([1, 2]), seed=1),
        EmbeddingCache.key(data="svhn", sample=np.array([1, 2]), seed=0),
    ]
    assert len({key, *others}) == 4


def test_dropped(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path)
    matrix = cache.get("key", lambda: MATRIX)
    cache.get("key2", lambda: MATRIX)
    cache.drop("key")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key2.lock", "key2.npy"]
    # Who has it mapped keeps it.
    assert (matrix == MATRIX).all()
    cache.drop("key")
    cache.drop("never there")
    assert (cache.get("key", lambda: MATRIX + 1) == MATRIX + 1).all()


@pytest.mark.parametrize("wrong", [ValueError("no"), KeyboardInterrupt()])
def test_a_failure_leaves_nothing(tmp_path: Path, wrong: BaseException) -> None:
    def fail() -> Any:
        raise wrong

    cache = EmbeddingCache(tmp_path)
    with pytest.raises(type(wrong)):
        cache.get("key", fail)
    assert kept(tmp_path) == []
    assert (cache.get("key", lambda: MATRIX) == MATRIX).all()


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, _: Any) -> None:
        path.write_bytes(b"some")
        raise OSError(28, "No space left on device")

    cache = EmbeddingCache(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(np, "save", full)
        with pytest.raises(InputError, match="No space left"):
            cache.get("key", lambda: MATRIX)
    assert kept(tmp_path) == []
    assert (cache.get("key", lambda: MATRIX) == MATRIX).all()


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="the folder cannot be made"):
        EmbeddingCache(tmp_path / "file/cache")


def test_dropped_while_another_waits(tmp_path: Path) -> None:
    """Who waited for a lock that is gone must not go on beside the holder of a new one."""
    cache, running, most = EmbeddingCache(tmp_path), 0, 0

    def slow() -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        threading.Event().wait(0.02)
        running -= 1
        return MATRIX

    def ask() -> None:
        for _ in range(5):
            assert (cache.get("key", slow) == MATRIX).all()
            cache.drop("key")

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert list(tmp_path.iterdir()) == []


# -- with real processes -----------------------------------------------------------------------------

ASK = """
import sys, time
from pathlib import Path
import numpy as np
from activecover.lab.networks import EmbeddingCache
cache = EmbeddingCache(Path(sys.argv[1]))
def make():
    print("making", flush=True)
    time.sleep(float(sys.argv[2]))
    return np.full((5, 2), 7, np.float32)
print("ready", flush=True)
input()
print(cache.get("key", make).sum(), flush=True)
"""


def child(folder: Path, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-B", "-c", ASK, str(folder), str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_make_it_once(tmp_path: Path) -> None:
    children = [child(tmp_path, 0.4) for _ in range(2)]
    for one in children:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in children:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    said = sorted(one.communicate(timeout=60)[0] for one in children)
    assert said == ["70.0\n", "making\n70.0\n"]
    assert kept(tmp_path) == ["key.npy"]


def test_killed_while_making(tmp_path: Path) -> None:
    maker = child(tmp_path, 60)
    assert maker.stdin is not None
    assert maker.stdout is not None
    maker.stdin.write("\n")
    maker.stdin.flush()
    assert [maker.stdout.readline() for _ in range(2)] == ["ready\n", "making\n"]
    maker.send_signal(signal.SIGKILL)
    maker.communicate(timeout=60)
    assert kept(tmp_path) == []
    # The lock went with the process.
    assert (EmbeddingCache(tmp_path).get("key", lambda: MATRIX) == MATRIX).all()
    # What is left of one killed while writing goes with the matrix.
    (tmp_path / "key.123.tmp").write_bytes(b"half")
    EmbeddingCache(tmp_path).drop("key")
    assert list(tmp_path.iterdir()) == []
