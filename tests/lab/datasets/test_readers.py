"""The readers: the real files as published, and one line for every way in which a file can be broken."""

from __future__ import annotations

import json
import pickle
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_files import (
    BATCHES,
    EACH_FILE,
    SMALL,
    image_of,
    mat_of,
    noise,
    put,
    refused,
)

from activecover.cli import main
from activecover.errors import InputError, MissingExtraError
from activecover.lab.datasets import DATASETS, Dataset, load_dataset

# -- small valid files of each format ----------------------------------------------------------------


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
