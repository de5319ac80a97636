"""Damaged, swapped and malicious files of data sets are refused in one line."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_files import (
    EACH_FILE,
    LETTERS,
    SMALL,
    idx_of,
    mat_of,
    noise,
    put,
    refused,
)

from activecover.errors import InputError
from activecover.lab.datasets import load_dataset

FOREIGN = {
    "text": b"<html>404 not found</html>\n",
    "zeros": bytes(5000),
    "noise": noise(5000).tobytes(),
    "gzip": gzip.compress(b"something else", mtime=0),
    "zip": b"PK\x05\x06" + bytes(18),
    "mat": mat_of(z=np.eye(3)),
    "pickle": pickle.dumps([1, 2, 3], protocol=2),
}


@pytest.mark.parametrize(("kind", "file"), EACH_FILE)
def test_something_else_under_the_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, file: str
) -> None:
    for content in FOREIGN.values():
        name = put(tmp_path, kind, **{file: content})
        refused(name, tmp_path, file, capsys)


@pytest.mark.parametrize(("kind", "file"), EACH_FILE)
def test_a_folder_under_the_name(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, file: str) -> None:
    name = put(tmp_path, kind)
    (tmp_path / name / file).unlink()
    (tmp_path / name / file).mkdir()
    refused(name, tmp_path, file, capsys)


@pytest.mark.parametrize(
    ("kind", "file"), [(kind, file) for kind, file in EACH_FILE if kind != "letters" and "img_align" not in file]
)
def test_a_file_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, file: str) -> None:
    name = put(tmp_path, kind)
    (tmp_path / name / file).unlink()
    said = refused(name, tmp_path, file, capsys)
    assert "missing" in said
    # An archive is fetched as a whole: what is left of it has to go first.
    assert ("delete" in said) == (name == "cifar10")


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10", "svhn", "celeba"])
def test_nothing_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert "missing; get the data with" in refused(name, tmp_path, "", capsys)


def test_faces_without_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "celeba")
    images = tmp_path / "celeba/img_align_celeba"
    for path in images.iterdir():
        path.unlink()
    with pytest.raises(InputError, match="no image of the train split"):
        load_dataset("celeba", tmp_path)
    images.rmdir()
    refused("celeba", tmp_path, "img_align_celeba", capsys)
    images.touch()
    refused("celeba", tmp_path, "img_align_celeba", capsys)


@pytest.mark.parametrize(
    ("kind", "one", "other", "named"),
    [
        ("mnist", "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "train-images-idx3-ubyte.gz"),
        ("mnist", "train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
        ("mnist", "train-labels-idx1-ubyte.gz", "t10k-labels-idx1-ubyte.gz", "train-labels-idx1-ubyte.gz"),
        ("celeba", "list_attr_celeba.txt", "list_eval_partition.txt", "list_attr_celeba.txt"),
        ("celeba", "list_attr_celeba.txt", "img_align_celeba/000003.png", "list_attr_celeba.txt"),
        ("celeba", "list_eval_partition.txt", "img_align_celeba/000003.png", "list_eval_partition.txt"),
    ],
)
def test_swapped_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, one: str, other: str, named: str
) -> None:
    files = SMALL[kind]
    put(tmp_path, kind, **{one: files[other], other: files[one]})
    refused(kind, tmp_path, named, capsys)


@pytest.mark.parametrize(
    ("kind", "file", "content", "why"),
    [
        ("letters", "letter-recognition.data", LETTERS.replace("I,5", "I,16").encode(), "line 2"),
        ("letters", "letter-recognition.data", LETTERS.replace("I,5", "I,300").encode(), "line 2"),
        ("letters", "letter-recognition.data", LETTERS.replace("I,5", "i,5").encode(), "line 2"),
        ("letters", "letter-recognition.data", LETTERS.replace("I,5", "I,-5").encode(), "line 2"),
        ("letters", "letter-recognition.data", LETTERS.replace("I,5", "I").encode(), "line 2"),
        ("letters", "letter-recognition.data", LETTERS.replace("I,5", "É,5").encode(), "ascii"),
        ("letters", "letter-recognition.data", LETTERS[:-2].encode(), "line 3"),
        ("letters", "letter-recognition.data", LETTERS[:-1].encode(), "line 3"),
        ("letters", "letter-recognition.data", b"\n" + LETTERS.encode(), "line 1"),
        ("mnist", "train-labels-idx1-ubyte.gz", idx_of([5, 10, 9]), "beyond 9"),
        ("mnist", "train-labels-idx1-ubyte.gz", idx_of([5, 9]), "not one label for each image"),
        ("mnist", "train-labels-idx1-ubyte.gz", idx_of(5), "not one label"),
        ("mnist", "train-images-idx3-ubyte.gz", idx_of(noise(3, 14, 56)), "28 x 28"),
        ("mnist", "train-images-idx3-ubyte.gz", idx_of(noise(3, 28, 28, 1)), "28 x 28"),
        ("mnist", "train-images-idx3-ubyte.gz", gzip.compress(b"\0\0\x08\x03" + b"\xff" * 12, mtime=0), "do not match"),
        # 2 ** 64 bytes, which are 0 for who counts in 64 bits.
        ("mnist", "train-images-idx3-ubyte.gz", gzip.compress(b"\0\0\x08\x04" + b"\0\1\0\0" * 4, mtime=0), "do not match"),
        ("mnist", "train-images-idx3-ubyte.gz", gzip.compress(b"\0\0\x08\xff" + b"\0\0\0\1" * 9, mtime=0), "unpack_from"),
        ("mnist", "train-images-idx3-ubyte.gz", gzip.compress(b"\0\0\x0d\x01\0\0\0\0", mtime=0), "not an idx file of bytes"),
        ("cifar10", "cifar-10-batches-bin/data_batch_3.bin", b"\x0a" + bytes(3072), "beyond 9"),
        ("cifar10", "cifar-10-batches-bin/data_batch_3.bin", bytes(3072), "not a whole number"),
        ("svhn", "train_32x32.mat", mat_of(X=noise(32, 32, 3, 2)), "has no images X and labels y"),
        ("svhn", "train_32x32.mat", mat_of(X=noise(32, 32, 3, 2), y=[[1], [2], [3]]), r"\(32, 32, 3, 2\) for 3"),
        ("svhn", "train_32x32.mat", mat_of(X=noise(32, 32, 3, 2), y=[[1], [11]]), "not from 1 to 10"),
        ("svhn", "train_32x32.mat", mat_of(X=noise(32, 32, 3, 2), y=[[0], [1]]), "not from 1 to 10"),
        ("svhn", "train_32x32.mat", mat_of(X=noise(32, 32, 3, 2), y=[[1.5], [2]]), "not from 1 to 10"),
        ("svhn", "train_32x32.mat", mat_of(X=noise(32, 32, 3, 1), y="a"), "has no images X and labels y"),
        ("svhn", "train_32x32.mat", mat_of(X=noise(32, 32, 3, 1), y={"a": 1}), "has no images X and labels y"),
        ("svhn", "train_32x32.mat", mat_of(X=np.zeros((32, 32, 3, 2)), y=[[1], [2]]), "images of shape"),
        ("celeba", "list_attr_celeba.txt", b"5\nBald\n000001.jpg 1\n", "1 images are listed, but 5 declared"),
        ("celeba", "list_attr_celeba.txt", "²\nBald\n000001.jpg 1\n".encode(), "invalid literal"),
        ("celeba", "list_attr_celeba.txt", b"1\nBald\n\n000001.jpg 1\n", "line 3"),
        ("celeba", "list_attr_celeba.txt", b"1\nBald\n000001.jpg 2\n", "line 3"),
        ("celeba", "list_attr_celeba.txt", b"0\n\n", "0 images"),
        ("celeba", "list_attr_celeba.txt", b"1\nBald\n\xff.jpg 1\n", "utf-8"),
        ("celeba", "list_eval_partition.txt", b"000001.jpg 0\n000002.jpg 3\n", "line 2"),
        ("celeba", "list_eval_partition.txt", b"000001.jpg 0\n000002.jpg 1\n", "no split for 2 images"),
        # A head that announces more pixels than Pillow reads, and one at which Pillow would only warn.
        ("celeba", "img_align_celeba/000003.png", "30000 x 30000", "decompression bomb"),
        ("celeba", "img_align_celeba/000003.png", "10000 x 10000", "decompression bomb"),
    ],
)  # fmt: skip
def test_what_does_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, file: str, content: bytes | str, why: str
) -> None:
    if isinstance(content, str):
        width, height = map(int, content.split(" x "))
        content = png_head(width, height)
    name = put(tmp_path, kind, **{file: content})
    with pytest.raises(InputError, match=why):
        load_dataset(name, tmp_path)
    refused(name, tmp_path, file, capsys)


def png_head(width: int, height: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


class Calls:
    """Pickled, it is a call of a function."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> Any:
        return self._call


def by_name(module: str, name: str, argument: str) -> bytes:
    """A pickle that calls any function by name, dotted names too."""
    parts = b"".join(b"X" + struct.pack("<I", len(part)) + part.encode() for part in (module, name))
    text = b"X" + struct.pack("<I", len(argument)) + argument.encode()
    return b"\x80\x04" + parts + b"\x93" + text + b"\x85R."


@pytest.mark.parametrize(
    "make",
    [
        lambda mark: pickle.dumps(Calls(os.system, f"touch {mark}"), protocol=2),
        lambda mark: pickle.dumps({b"data": Calls(eval, f"open({mark!r}, 'w')"), b"labels": []}, protocol=2),
        lambda mark: pickle.dumps({b"data": Calls(open, mark, "w"), b"labels": []}, protocol=2),
        lambda mark: pickle.dumps(Calls(np.save, mark, 1), protocol=2),
        lambda mark: pickle.dumps(Calls(np.memmap, mark, "u1", "w+", 0, 1), protocol=2),
        lambda mark: by_name("numpy", "ndarray.tofile", mark),
        lambda mark: by_name("numpy", "fromfile", mark),
        lambda mark: by_name("numpy.core.multiarray", "fromfile", mark),
        lambda mark: by_name("numpy", "dtype.__class__", mark),
        lambda mark: by_name("_codecs", "decode", mark),
        lambda mark: by_name("numpy._core.multiarray", "_reconstruct.__globals__", mark),
        lambda mark: by_name("builtins", "getattr", mark),
        lambda mark: by_name("activecover.lab.datasets._cifar10", "np", mark),
    ],
)
def test_a_batch_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[str], bytes]) -> None:
    mark = tmp_path / "mark"
    file = "cifar-10-batches-py/data_batch_2"
    put(tmp_path, "cifar10 in Python", **{file: make(str(mark))})
    assert "does not belong in a batch of images" in refused("cifar10", tmp_path, file, capsys)
    assert not mark.exists()


@pytest.mark.parametrize(
    "batch",
    [
        {b"labels": [1, 2, 3]},
        {b"data": noise(3, 3072)},
        {b"data": noise(2, 3072), b"labels": [1, 2, 3]},
        {b"data": noise(3, 3072).astype(np.int8), b"labels": [1, 2, 3]},
        {b"data": np.asfortranarray(noise(3, 3072)), b"labels": [1, 2, 3]},
        {b"data": np.array([[None] * 3072] * 3), b"labels": [1, 2, 3]},
        {b"data": b"x" * 9216, b"labels": [1, 2, 3]},
        {b"data": noise(3, 3072), b"labels": [1, 2, 10]},
        {b"data": noise(3, 3072), b"labels": [1, 2, "3"]},
        {b"data": noise(3, 3072), b"labels": {1, 2, 3}},
        {b"data": noise(3, 3072), b"labels": None},
        [1],
        None,
    ],
)
def test_a_batch_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], batch: Any) -> None:
    file = "cifar-10-batches-py/test_batch"
    put(tmp_path, "cifar10 in Python", **{file: pickle.dumps(batch, protocol=2)})
    refused("cifar10", tmp_path, file, capsys)


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("valid")
    for place, kind in enumerate(SMALL):
        put(folder / str(place), kind)
    return folder


@pytest.mark.parametrize("kind", SMALL)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_of_bytes_is_refused_or_read(valid: Path, kind: str, data: st.DataObject) -> None:
    folder, name = valid / str(list(SMALL).index(kind)), kind.partition(" ")[0]
    file = data.draw(st.sampled_from(sorted(SMALL[kind])))
    whole = SMALL[kind][file]
    changed = bytearray(whole[: data.draw(st.integers(1, len(whole)) | st.just(len(whole)))])
    # Heads are what parsers trust: half of the changes are there.
    places = st.integers(0, min(300, len(changed) - 1)) | st.integers(0, len(changed) - 1)
    for at, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        changed[at] = value
    path = folder / name / file
    path.write_bytes(changed)
    said = None
    try:
        dataset = load_dataset(name, folder)
    except InputError as wrong:
        said = str(wrong)
    finally:
        path.write_bytes(whole)
    if said is None:
        assert len(dataset) > 0
        assert dataset.inputs.dtype == np.uint8
    else:
        # Where two files contradict each other, it may be the other one that is named.
        assert said.startswith(str(folder / name))
        assert len(said.splitlines()) == 1
