"""The readers: the real files as published, and one line for every way in which a file can be broken."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import re
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat

from activecover.cli import main
from activecover.errors import InputError, MissingExtraError
from activecover.lab.datasets import DATASETS, Dataset, load_dataset

# -- small valid files of each format ----------------------------------------------------------------

RANDOM = np.random.default_rng(7)
BATCHES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


def idx_of(array: Any) -> bytes:
    array = np.asarray(array, np.uint8)
    return gzip.compress(struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes(), mtime=0)


def mat_of(compressed: bool = False, **arrays: Any) -> bytes:
    file = io.BytesIO()
    savemat(file, arrays, do_compression=compressed)
    return file.getvalue()


def image_of(pixels: Any, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(file, kind)
    return file.getvalue()


def noise(*shape: int) -> Any:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def idx_files() -> dict[str, bytes]:
    return {
        "train-images-idx3-ubyte.gz": idx_of(noise(3, 28, 28)),
        "train-labels-idx1-ubyte.gz": idx_of([5, 0, 9]),
        "t10k-images-idx3-ubyte.gz": idx_of(noise(2, 28, 28)),
        "t10k-labels-idx1-ubyte.gz": idx_of([1, 5]),
    }


def cifar_files() -> dict[str, bytes]:
    records = [np.column_stack([np.array([[n], [0], [9]], np.uint8), noise(3, 3072)]).tobytes() for n in range(6)]
    return {f"cifar-10-batches-bin/{name}.bin": part for name, part in zip(BATCHES, records, strict=True)}


def cifar_pickles() -> dict[str, bytes]:
    def batch(number: int) -> bytes:
        content = {
            b"batch_label": b"a batch",
            b"labels": [number, 0, 9],
            b"data": noise(3, 3072),
            b"filenames": [b"a.png", b"b\xff.png", b"c.png"],
        }
        return pickle.dumps(content, protocol=2)

    return {f"cifar-10-batches-py/{name}": batch(number) for number, name in enumerate(BATCHES)}


def svhn_files() -> dict[str, bytes]:
    return {
        "train_32x32.mat": mat_of(X=noise(32, 32, 3, 3), y=np.array([[10], [1], [9]], np.uint8)),
        "test_32x32.mat": mat_of(True, X=noise(32, 32, 3, 2), y=np.array([[10], [2]], np.uint8)),
    }


def celeba_files() -> dict[str, bytes]:
    rows = ["1 -1  1", "-1 -1 1", "1  1 -1", "1 1 1"]
    listed = [f"{number:06}.jpg {row}" for number, row in enumerate(rows, start=1)]
    return {
        "list_attr_celeba.txt": "\n".join(["4", "Bald Male Young", *listed, ""]).encode(),
        "list_eval_partition.txt": b"000001.jpg 0\n000002.jpg 1\n000003.jpg 0\n000004.jpg 0\n",
        "img_align_celeba/000001.jpg": image_of(noise(218, 178, 3), "JPEG"),
        "img_align_celeba/000002.jpg": image_of(noise(28, 28, 3), "JPEG"),
        "img_align_celeba/000003.png": image_of(noise(28, 28, 3)),
    }


LETTERS = (
    "T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\nI,5,12,3,7,2,10,5,5,4,13,3,9,2,8,4,10\nT,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,15\n"
)

SMALL: dict[str, dict[str, bytes]] = {
    "letters": {"letter-recognition.data": LETTERS.encode()},
    "mnist": idx_files(),
    "fashion_mnist": idx_files(),
    "cifar10": cifar_files(),
    "cifar10 in Python": cifar_pickles(),
    "svhn": svhn_files(),
    "celeba": celeba_files(),
}
#: Images outside of the train split are not looked at, and batches in the middle are as those at the ends.
LEFT_OUT = re.compile(r".*/000002\.jpg|.*/data_batch_[2-5].*")
EACH_FILE = [(kind, file) for kind, files in SMALL.items() for file in files if not LEFT_OUT.fullmatch(file)]


def put(folder: Path, kind: str, **changes: bytes) -> str:
    """Write the small files of a kind, some of them changed; the result is the data set's name."""
    name = kind.partition(" ")[0]
    for file, content in {**SMALL[kind], **changes}.items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return name


def refused(name: str, folder: Path, file: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Reading and checking both say one line that names the file."""
    with pytest.raises(InputError) as caught:
        load_dataset(name, folder)
    said = str(caught.value)
    assert len(said.splitlines()) == 1
    assert said.startswith(str(folder / name / file)), said
    assert f"activecover data fetch {name}" in said
    assert main(["data", "check", name, "--data-dir", str(folder)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"activecover: {' '.join(said.split())}\n"
    return said


# -- the real files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("letters", (20_000, 16)),
        ("mnist", (70_000, 28, 28)),
        ("fashion_mnist", (70_000, 28, 28)),
        ("cifar10", (60_000, 32, 32, 3)),
        ("svhn", (99_289, 32, 32, 3)),
    ],
)
def test_real_files_are_as_published(data_dir: Path, name: str, shape: tuple[int, ...]) -> None:
    dataset = load_dataset(name, data_dir)
    assert (dataset.inputs.shape, dataset.inputs.dtype) == (shape, np.uint8)
    assert dataset.labels is not None
    counted = dict(zip(*np.unique(dataset.labels, return_counts=True), strict=True))
    assert counted == DATASETS.build(name).counts
    assert dataset.classes == sorted(DATASETS.build(name).counts)
    # Something is to be seen in every image, and most are different.
    flat = dataset.inputs[:1000].reshape(1000, -1)
    assert (flat.max(axis=1) > flat.min(axis=1)).all()
    assert len(np.unique(flat, axis=0)) > 900


def test_real_faces(data_dir: Path) -> None:
    told: list[tuple[str, int, int]] = []
    dataset = load_dataset("celeba", data_dir, lambda *what: told.append(what))
    assert len(dataset) >= 20_000
    assert (dataset.inputs.shape[1:], dataset.inputs.dtype) == ((28, 28, 3), np.uint8)
    assert dataset.labels is None
    assert len(dataset.classes) == 40
    assert dataset.classes[0] == "5_o_Clock_Shadow"
    # As published for the 162,770 images of the train split; a part of them is near.
    for name, share in {"Male": 0.419, "Smiling": 0.480, "Young": 0.779, "Bald": 0.023}.items():
        assert dataset.positive(name).mean() == pytest.approx(share, abs=0.03)
    assert told[-1] == ("reading images", len(dataset), len(dataset))
    assert dataset.inputs.reshape(len(dataset), -1).std(axis=1).min() > 0


def test_real_letters_are_the_bundled_ones(data_dir: Path, tmp_path: Path) -> None:
    real, bundled = load_dataset("letters", data_dir), load_dataset("letters", tmp_path)
    assert (real.inputs == bundled.inputs).all()
    assert (real.labels == bundled.labels).all()


# -- what is in small files --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        ("letters", "TIT"),
        ("mnist", "50915"),
        ("fashion_mnist", "50915"),
        ("cifar10", "009109209309409509"),
        ("cifar10 in Python", "009109209309409509"),
        ("svhn", "01902"),
    ],
)
def test_small_files(tmp_path: Path, kind: str, labels: str) -> None:
    dataset = load_dataset(put(tmp_path, kind), tmp_path)
    assert isinstance(dataset, Dataset)
    assert dataset.labels is not None
    assert "".join(dataset.labels) == labels
    assert len(dataset) == len(labels)
    assert dataset.inputs.dtype == np.uint8


def test_both_kinds_of_cifar_batches_give_the_same_images(tmp_path: Path) -> None:
    pixels = [noise(3, 3072) for _ in BATCHES]
    binary, python = tmp_path / "a", tmp_path / "b"
    for name, part in zip(BATCHES, pixels, strict=True):
        records = np.column_stack([np.array([[1], [2], [3]], np.uint8), part])
        batch = pickle.dumps({b"labels": [1, 2, 3], b"data": part}, protocol=2)
        for path, content in (
            (binary / f"cifar10/cifar-10-batches-bin/{name}.bin", records.tobytes()),
            (python / f"cifar10/cifar-10-batches-py/{name}", batch),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    one, other = load_dataset("cifar10", binary), load_dataset("cifar10", python)
    assert (one.inputs == other.inputs).all()
    assert (one.labels == other.labels).all()
    # The files have one plane per colour, and the images are upright.
    assert (one.inputs[0, :, :, 1] == pixels[0][0, 1024:2048].reshape(32, 32)).all()


def test_batches_as_python_2_wrote_them(tmp_path: Path) -> None:
    def old(value: bytes) -> bytes:
        return b"T" + struct.pack("<I", len(value)) + value

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + old(b"b") + b"tR(K\x01(K\x01M\x00\x0ct"
        b"cnumpy\ndtype\n(" + old(b"u1") + b"K\x00K\x01tR(K\x03" + old(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"I00\n" + old(bytes(range(256)) * 12) + b"tb"
    )  # fmt: skip
    batch = b"\x80\x02}(" + old(b"data") + array + old(b"labels") + b"](K\x07eu."
    name = put(tmp_path, "cifar10 in Python", **{"cifar-10-batches-py/test_batch": batch})
    dataset = load_dataset(name, tmp_path)
    assert dataset.labels is not None
    assert dataset.labels[-1] == "7"
    assert (dataset.inputs[-1, :, :, 2].ravel() == np.tile(np.arange(256), 4)).all()


def test_svhn_images_stand_upright(tmp_path: Path) -> None:
    pixels = noise(32, 32, 3, 2)
    content = mat_of(X=pixels, y=np.array([[10], [1]], np.uint8))
    name = put(tmp_path, "svhn", **{"train_32x32.mat": content})
    assert (load_dataset(name, tmp_path).inputs[1] == pixels[..., 1]).all()


def test_faces_are_matched_split_and_made_small(tmp_path: Path) -> None:
    board = np.indices((218, 178)).sum(axis=0) % 2 * np.uint8(255)
    halves = np.zeros((218, 178, 3), np.uint8)
    halves[:, 89:] = (255, 0, 0)
    name = put(
        tmp_path,
        "celeba",
        **{
            "img_align_celeba/000001.jpg": image_of(halves, "JPEG"),
            "img_align_celeba/000004.png": image_of(np.repeat(board[..., None], 3, axis=2)),
            "img_align_celeba/readme.txt": b"not an image",
        },
    )
    (tmp_path / "celeba/img_align_celeba/000003.png").rename(tmp_path / "celeba/img_align_celeba/000003.JPEG")
    exact = np.array(Image.open(tmp_path / "celeba/img_align_celeba/000003.JPEG"))
    dataset = load_dataset(name, tmp_path)
    # The second is not of the train split; the order is that of the list.
    assert {name: list(has) for name, has in dataset.attributes.items()} == {
        "Bald": [True, True, True],
        "Male": [False, True, True],
        "Young": [True, False, True],
    }
    halved, same, grey = dataset.inputs.astype(int)
    assert abs(halved[:, :12] - 0).max() < 20
    assert abs(halved[:, 16:] - (255, 0, 0)).max() < 20
    assert (same == exact).all()
    # Without antialiasing, a board of single pixels stays black and white.
    assert abs(grey - 127.5).max() < 30
    # Bald, Male and Young can be asked for one by one.
    assert not dataset.shared
    assert list(dataset.targets("Male")) == [False, True, True]


def test_grey_and_transparent_images_are_read(tmp_path: Path) -> None:
    name = put(
        tmp_path,
        "celeba",
        **{
            "img_align_celeba/000003.png": image_of(np.full((50, 40), 99)),
            "img_align_celeba/000004.png": image_of(np.full((28, 28, 4), 77)),
        },
    )
    _, grey, clear = load_dataset(name, tmp_path).inputs
    assert (grey == 99).all()
    assert (clear == 77).all()


def test_images_need_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "celeba")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingExtraError, match=r"^images need PIL: pip install 'activecover\[images\]'$"):
        load_dataset("celeba", tmp_path)


# -- broken files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "file"), EACH_FILE)
def test_a_file_cut_short(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, file: str) -> None:
    whole = SMALL[kind][file]
    for share in (0, 0.01, 0.2, 0.5, 0.9):
        cut = int(len(whole) * share)
        if kind == "celeba" and whole[:cut].endswith(b"\n"):
            cut -= 1
        name = put(tmp_path, kind, **{file: whole[:cut]})
        refused(name, tmp_path, file, capsys)


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
    assert "not there; get the data with" in refused(name, tmp_path, "", capsys)


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
        ("celeba", "list_attr_celeba.txt", b"5\nBald\n000001.jpg 1\n", "1 images are listed, 5 announced"),
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


# -- what the check says -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in SMALL if kind != "celeba"])
def test_fewer_items_than_published(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    name = put(tmp_path, kind)
    assert main(["data", "check", name, "--data-dir", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"activecover: {tmp_path / name}: ")
    assert "instead of the published" in said
    assert said.count("\n") == 1


def test_a_part_of_the_faces_is_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "celeba")
    assert main(["data", "check", "celeba", "--data-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("celeba: 2 items, 3 labels; this may be a part of a larger set")
    assert main(["data", "check", "celeba", "--data-dir", str(tmp_path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"name": "celeba", "items": 2, "labels": {"Bald": 2, "Male": 1, "Young": 1}}
    assert err == ""


def test_bundled_letters_pass_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check", "letters", "--data-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "letters: 20,000 items, 26 labels, as published\n"


# -- a data set of one's own -------------------------------------------------------------------------

OWN = """
import numpy as np
from activecover.lab.datasets import Dataset, Experiment, DatasetSpec
from activecover.registry import Entry

def read(folder, watch=None):
    rows = [line.split() for line in (folder / "points.txt").read_text().splitlines()]
    return Dataset("own", np.array([[float(x)] for x, _ in rows]), np.array([label for _, label in rows]))

source = DatasetSpec("own", "points of mine", read, Experiment())
entry = Entry(source.name, lambda: source, source.summary)
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with one file, as pip would install it."""
    packages = tmp_path / "packages"
    (packages / "own_points-1.dist-info").mkdir(parents=True)
    (packages / "own_points.py").write_text(OWN)
    (packages / "own_points-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: own_points\nVersion: 1\n")
    points = "[activecover.lab.datasets]\nown = own_points:entry\n"
    (packages / "own_points-1.dist-info/entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(packages)
    monkeypatch.setattr(DATASETS, "_entries", dict(DATASETS._entries))
    monkeypatch.setattr(DATASETS, "_asked_others", False)
    (tmp_path / "own").mkdir()
    yield tmp_path
    sys.modules.pop("own_points", None)


def test_one_file_adds_a_data_set(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "own/points.txt").write_text("0.5 a\n1.5 b\n2.5 a\n")
    dataset = load_dataset("own", own)
    assert (dataset.inputs.ravel() == [0.5, 1.5, 2.5]).all()
    assert list(dataset.positive("a")) == [True, False, True]
    assert main(["data", "check", "own", "--data-dir", str(own)]) == 0
    # Nothing was published to compare with.
    assert capsys.readouterr().out == "own: 3 items, 2 labels\n"
    assert main(["data", "list", "--data-dir", str(own), "--json"]) == 0
    assert {row["name"]: row["here"] for row in json.loads(capsys.readouterr().out)}["own"]


def test_an_own_reader_that_stumbles(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused("own", own, "", capsys)
    (own / "own/points.txt").write_text("0.5 a\nx\n")
    refused("own", own, "", capsys)


def test_the_own_data_set_is_gone_again() -> None:
    with pytest.raises(InputError, match="unknown data set 'own'"):
        load_dataset("own")
