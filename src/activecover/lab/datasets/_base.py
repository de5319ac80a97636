"""Data sets: contents, sources, and their use in the paper's experiments."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import ActiveCoverError, InputError
from activecover.registry import Registry

#: Called with the current task, the amount done, and the total.
Watcher = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Dataset:
    """Inputs of all splits together, and the labels of each item.

    Attributes
    ----------
    name : str
        Name of the data set.
    inputs : array of shape (n, ...)
        As in the files: unscaled.
    labels : array of str, optional
        The class of each item, if each has exactly one.
    attributes : mapping of name to array of bool, optional
        The items with each attribute, if an item can have several.
    """

    name: str
    inputs: npt.NDArray[Any]
    labels: npt.NDArray[np.str_] | None = None
    attributes: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def classes(self) -> list[str]:
        """All labels: classes in order, or attributes in the order of the files."""
        return [str(name) for name in np.unique(self.labels)] if self.labels is not None else list(self.attributes)

    def positive(self, label: str) -> npt.NDArray[np.bool_]:
        """The items with a label."""
        if label not in self.classes:
            raise InputError(f"{self.name} has no label {label!r} (labels are: {', '.join(self.classes)})")
        if self.labels is not None:
            return np.asarray(self.labels == label)
        return self.attributes[label]

    def targets(self, label: str) -> npt.NDArray[Any]:
        """The labels for stratifying the sample and training the embedding: all classes, or the attribute."""
        return self.labels if self.labels is not None else self.positive(label)

    @property
    def shared(self) -> bool:
        """Whether all labels share a run's sample and embedding."""
        return self.labels is not None


@dataclass(frozen=True, slots=True)
class Experiment:
    """Settings of the paper's experiments for a data set."""

    network: str = "dense"
    epochs: int = 20
    scale: float = 1.0
    percent: str = "5%"
    batches: int = 20


@dataclass(frozen=True, slots=True)
class Download:
    """One file to download: its address, its hash (``algorithm:hex``), and whether to unpack it."""

    file: str
    url: str
    digest: str
    unpack: bool = False


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """A data set by name: how to get and read it, and what it should contain.

    Attributes
    ----------
    name, summary, terms : str
        Its name, a description, and the terms of use.
    read : callable
        Reads the files in a folder into a :class:`Dataset`.
    counts : mapping of label to int
        Items per label as published, to check against.
    downloads : tuple of Download
        The files that ``fetch`` downloads.
    by_hand : str
        Instructions, if automatic download is not allowed.
    experiment : Experiment
        Settings of the paper's experiments.
    subset_allowed : bool
        Whether fewer items than published are accepted (and reported).
    bundled : bool
        Whether it is part of the package, so that no folder is needed.
    """

    name: str
    summary: str
    read: Callable[[Path, Watcher | None], Dataset]
    experiment: Experiment
    terms: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    downloads: tuple[Download, ...] = ()
    by_hand: str = ""
    subset_allowed: bool = False
    bundled: bool = False


DATASETS: Registry[DatasetSpec] = Registry("data set", group="activecover.lab.datasets")


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder of the data sets: as given, else ``ACTIVECOVER_DATA``, else the user's cache folder."""
    if folder is not None:
        return Path(folder)
    if given := os.environ.get("ACTIVECOVER_DATA"):
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "activecover" / "data"


def load_dataset(name: str, folder: str | Path | None = None, watch: Watcher | None = None) -> Dataset:
    """Read a data set by name from the data folder.

    Examples
    --------
    >>> len(load_dataset("letters"))
    20000
    """
    source = DATASETS.build(name)
    place = data_folder(folder) / source.name
    with readable(place, source.name):
        return source.read(place, watch)


def damaged(path: Path, why: str, name: str, *, whole: Path | None = None) -> InputError:
    """The error for a damaged file; fetching keeps existing files, so it has to be deleted first."""
    it = whole or "it"
    return InputError(f"{path}: {why}; delete {it} and get it again with: activecover data fetch {name}")


@contextmanager
def readable(path: Path, name: str, *, whole: Path | None = None) -> Iterator[None]:
    """Turn any parser error on a damaged file into one line that names the file."""
    try:
        yield
    except ActiveCoverError:
        raise
    except Exception as wrong:  # parsers raise undocumented errors: struct.error, zlib.error, OverflowError ...
        raise damaged(path, f"cannot be read ({reason(wrong)})", name, whole=whole) from wrong


def reason(wrong: Exception) -> str:
    """The first line of an error's message, or its name if it has none."""
    return next(iter(str(wrong).splitlines()), "") or type(wrong).__name__


def need(path: Path, name: str, *, whole: Path | None = None) -> Path:
    """A file that must exist."""
    if not path.exists():
        first = f"delete {whole} and " if whole is not None and whole.exists() else ""
        raise InputError(f"{path}: missing; {first}get the data with: activecover data fetch {name}")
    return path
