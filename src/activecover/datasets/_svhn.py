"""SVHN, cropped digits: the MATLAB files of the train and test parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from activecover.datasets._base import Dataset, Watcher, need
from activecover.errors import InputError


def read_svhn(folder: Path, watch: Watcher | None = None) -> Dataset:
    """Read ``train_32x32.mat`` and ``test_32x32.mat`` of a folder; label 10 is the digit 0."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    images, labels = [], []
    for part in ("train", "test"):
        path = need(folder / f"{part}_32x32.mat", "svhn")
        try:
            data = loadmat(path)
            pixels, digits = data["X"], data["y"]
        except (MatReadError, ValueError, KeyError, TypeError, OSError, NotImplementedError) as wrong:
            reason = str(wrong).splitlines()[0] if str(wrong) else type(wrong).__name__
            raise InputError(f"{path}: not a whole SVHN file ({reason}); fetch it again") from wrong
        if pixels.shape[:3] != (32, 32, 3) or pixels.shape[3:] != (len(digits),):
            raise InputError(f"{path}: images of shape {pixels.shape} for {len(digits)} labels; fetch it again")
        images.append(pixels.transpose(3, 0, 1, 2))
        labels.append(digits.reshape(-1) % 10)
    return Dataset("svhn", np.concatenate(images), np.concatenate(labels).astype(np.str_))
