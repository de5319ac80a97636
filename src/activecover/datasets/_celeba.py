"""CelebA: a folder of images, a list of attributes and a list of splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.datasets._base import Dataset, Watcher, need
from activecover.errors import InputError
from activecover.extras import require

SIDE = 28
TRAIN = "0"


def read_celeba(folder: Path, watch: Watcher | None = None) -> Dataset:
    """Read the train split: images matched by stem, of any size, brought to 28 x 28 with antialiasing."""
    names, attributes = _read_attributes(need(folder / "list_attr_celeba.txt", "celeba"))
    splits = _read_splits(need(folder / "list_eval_partition.txt", "celeba"))
    images = need(folder / "img_align_celeba", "celeba")
    paths = {path.stem: path for path in sorted(images.iterdir()) if path.suffix.lower() in {".jpg", ".jpeg", ".png"}}
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
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) < 3 or not lines[0].strip().isdigit():
        raise InputError(f"{path}: not the list of attributes (a count, the names, then a line per image)")
    names = lines[1].split()
    rows: dict[str, list[bool]] = {}
    for number, line in enumerate(lines[2:], start=3):
        stem, *values = line.split()
        if len(values) != len(names) or not set(values) <= {"1", "-1"}:
            raise InputError(f"{path} line {number}: not one 1 or -1 for each of {len(names)} attributes")
        rows[Path(stem).stem] = [value == "1" for value in values]
    if len(rows) != int(lines[0]):
        raise InputError(f"{path}: {len(rows)} images listed, {lines[0].strip()} announced; download it again")
    return names, rows


def _read_splits(path: Path) -> dict[str, str]:
    splits: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        parts = line.split()
        if len(parts) != 2 or parts[1] not in {"0", "1", "2"}:
            raise InputError(f"{path} line {number}: not an image and its split (0, 1 or 2)")
        splits[Path(parts[0]).stem] = parts[1]
    return splits


def _read_image(path: Path) -> npt.NDArray[np.uint8]:
    pillow: Any = require("PIL.Image", extra="images", purpose="images")
    try:
        with pillow.open(path) as image:
            small = image.convert("RGB")
            if small.size != (SIDE, SIDE):
                small = small.resize((SIDE, SIDE), pillow.Resampling.LANCZOS)
            return np.asarray(small, np.uint8)
    except (OSError, ValueError, SyntaxError) as wrong:
        raise InputError(f"{path}: not a readable image ({str(wrong).splitlines()[0]})") from wrong
