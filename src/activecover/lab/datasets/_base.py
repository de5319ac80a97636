"""What a data set is, where it comes from, and how the paper's experiments use it."""

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

#: Called with what is being done, how much is done, and how much there is to do.
Watcher = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Dataset:
    """Inputs, all splits merged, and what each item is.

    Attributes
    ----------
    name : str
        How the data set is called.
    inputs : array of shape (n, ...)
        As in the files: unscaled.
    labels : array of str, optional
        The one class of each item.
    attributes : mapping of name to array of bool, optional
        Where an item can have several: which items have each.
    """

    name: str
    inputs: npt.NDArray[Any]
    labels: npt.NDArray[np.str_] | None = None
    attributes: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def classes(self) -> list[str]:
        """The labels there are: classes in order, or attributes as the files list them."""
        return [str(name) for name in np.unique(self.labels)] if self.labels is not None else list(self.attributes)

    def positive(self, label: str) -> npt.NDArray[np.bool_]:
        """Which items have a label."""
        if label not in self.classes:
            raise InputError(f"{self.name} has no label {label!r} (labels are: {', '.join(self.classes)})")
        if self.labels is not None:
            return np.asarray(self.labels == label)
        return self.attributes[label]

    def targets(self, label: str) -> npt.NDArray[Any]:
        """What the sample is stratified by and the embedding trained on: all classes, or the attribute."""
        return self.labels if self.labels is not None else self.positive(label)

    @property
    def shared(self) -> bool:
        """Whether all labels share a run's sample and embedding."""
        return self.labels is not None


@dataclass(frozen=True, slots=True)
class Experiment:
    """How the paper's experiments use a data set."""

    network: str = "dense"
    epochs: int = 20
    scale: float = 1.0
    percent: str = "5%"
    batches: int = 20


@dataclass(frozen=True, slots=True)
class Download:
    """One file to download: where from, its hash (``algorithm:hex``), and whether to unpack it."""

    file: str
    url: str
    digest: str
    unpack: bool = False


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """A data set by name: how to get it, how to read it, and what to expect.

    Attributes
    ----------
    name, summary, terms : str
        How it is called, what it is, under which terms it may be used.
    read : callable
        Reads the files in a folder into a :class:`Dataset`.
    counts : mapping of label to int
        Items per label as published, to check against.
    downloads : tuple of Download
        What ``fetch`` gets.
    by_hand : str
        Where downloading by program is not allowed: what to do.
    experiment : Experiment
        Of the paper's experiments.
    subset_allowed : bool
        Whether fewer items than published are fine (and said so).
    bundled : bool
        Whether it comes with the package, so that no folder is needed.
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
    """Where the data sets are: as given, else ``ACTIVECOVER_DATA``, else the user's cache folder."""
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
    """What to say of a file that is not what it should be; fetching keeps what is there, so it has to go first."""
    it = whole or "it"
    return InputError(f"{path}: {why}; delete {it} and get it again with: activecover data fetch {name}")


@contextmanager
def readable(path: Path, name: str, *, whole: Path | None = None) -> Iterator[None]:
    """One line that names the file, for whatever a broken one makes a parser stumble on."""
    try:
        yield
    except ActiveCoverError:
        raise
    except Exception as wrong:  # parsers do not say how they fail: struct.error, zlib.error, OverflowError ...
        raise damaged(path, f"cannot be read ({reason(wrong)})", name, whole=whole) from wrong


def reason(wrong: Exception) -> str:
    """The first line of what an error says, or its name where it says nothing."""
    return next(iter(str(wrong).splitlines()), "") or type(wrong).__name__


def need(path: Path, name: str, *, whole: Path | None = None) -> Path:
    """A file that must be there."""
    if not path.exists():
        first = f"delete {whole} and " if whole is not None and whole.exists() else ""
        raise InputError(f"{path}: not there; {first}get the data with: activecover data fetch {name}")
    return path
