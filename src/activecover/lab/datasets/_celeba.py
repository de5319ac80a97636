"""CelebA: a folder of images, a list of attributes and a list of splits."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.extras import require
from activecover.lab.datasets._base import Dataset, Watcher, damaged, need, readable

SIDE = 28
TRAIN = "0"


def read_celeba(folder: Path, watch: Watcher | None = None) -> Dataset:
    """Read the train split: images of any size, matched by file stem and scaled to 28 x 28 with antialiasing."""
    names, attributes = _read_attributes(need(folder / "list_attr_celeba.txt", "celeba"))
    splits = _read_splits(need(folder / "list_eval_partition.txt", "celeba"))
    if missing := attributes.keys() - splits.keys():
        raise damaged(folder / "list_eval_partition.txt", f"no split for {len(missing):,} images", "celeba")
    images = need(folder / "img_align_celeba", "celeba")
    with readable(images, "celeba"):
        found = sorted(images.iterdir())
    paths = {path.stem: path for path in found if path.suffix.lower() in {".jpg", ".jpeg", ".png"}}
    stems = [stem for stem in attributes if splits.get(stem) == TRAIN and stem in paths]
    if not stems:
        raise InputError(f"{images}: no image of the train split; put the images there as NNNNNN.jpg or .png")
    pixels = np.empty((len(stems), SIDE, SIDE, 3), np.uint8)
    for place, stem in enumerate(stems):
        pixels[place] = _read_image(paths[stem])
        if watch is not None and (place % 500 == 499 or place == len(stems) - 1):
            watch("reading images", place + 1, len(stems))
    table = np.array([attributes[stem] for stem in stems], bool)
    return Dataset("celeba", pixels, None, {name: table[:, place] for place, name in enumerate(names)})


def _read_attributes(path: Path) -> tuple[list[str], dict[str, list[bool]]]:
    with readable(path, "celeba"):
        count, heading, *lines = path.read_text(encoding="utf-8").split("\n")
        names, rows = heading.split(), dict[str, list[bool]]()
        for number, line in enumerate(lines, start=3):
            stem, *values = line.split() or [""]
            if not stem and number == len(lines) + 2:
                break  # the end of the last line
            if len(values) != len(names) or not set(values) <= {"1", "-1"}:
                raise damaged(path, f"line {number} is not an image and 1 or -1 for {len(names)} attributes", "celeba")
            rows[Path(stem).stem] = [value == "1" for value in values]
        if not rows or len(rows) != int(count):
            raise damaged(path, f"{len(rows):,} images are listed, but {count.strip()} declared", "celeba")
        return names, rows


def _read_splits(path: Path) -> dict[str, str]:
    splits: dict[str, str] = {}
    with readable(path, "celeba"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            parts = line.split()
            if len(parts) != 2 or parts[1] not in {"0", "1", "2"}:
                raise damaged(path, f"line {number} is not an image and its split (0, 1 or 2)", "celeba")
            splits[Path(parts[0]).stem] = parts[1]
    return splits


def _read_image(path: Path) -> npt.NDArray[np.uint8]:
    pillow: Any = require("PIL.Image", extra="images", purpose="images")
    with readable(path, "celeba"), warnings.catch_warnings():
        # Only a damaged header declares an image so large that Pillow warns.
        warnings.simplefilter("error", pillow.DecompressionBombWarning)
        with pillow.open(path) as image:
            small = image.convert("RGB")
            if small.size != (SIDE, SIDE):
                small = small.resize((SIDE, SIDE), pillow.Resampling.LANCZOS)
            return np.asarray(small, np.uint8)
