"""The base of embeddings, which turn rows of a table into vectors: fitted once, stored without pickle, reused later."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError, StoreError
from activecover.files import private_folder, write_whole
from activecover.intake._table import Table
from activecover.pool import VectorsLike

#: The format of a stored embedding; files of a newer one are refused.
FORMAT = 1
_SETTINGS, _ARRAYS = "embedding.json", "embedding.npz"

#: Allocates the array for vectors, given its shape and type, in memory or in a file.
Allocate = Callable[[tuple[int, int], npt.DTypeLike], npt.NDArray[Any]]


class Embedding(ABC):
    """Turns rows of a table into vectors.

    The constructor only stores parameters. ``fit`` learns from a first table. ``transform`` turns that table and any
    later one into vectors of the same space: the vector of a row does not depend on other rows. What was learnt is
    stored in a folder as JSON and plain arrays, and loads unchanged.

    A subclass implements ``_fit``, ``transform`` and, if it learns anything, ``_learnt`` and ``_restore``.

    Attributes
    ----------
    used_ : list of str
        The columns that the vectors are made of.
    notes_ : list of str
        Notes for the user about the fit or the latest table, such as columns left out, one line each.
    """

    #: Name in the registry.
    name: ClassVar[str]
    #: The metric that fits the vectors.
    metric: ClassVar[str] = "euclidean"

    def __init__(self, columns: Sequence[str] | None = None, *, seed: int = 0) -> None:
        self.columns = None if columns is None else list(columns)
        self.seed = seed

    def fit(self, table: Table, skip: Sequence[str] = ()) -> Self:
        """Learn from a table; the columns in ``skip`` (ids, labels) are never used unless named."""
        if self.columns is None:
            self.used_ = self._default_columns(table, [name for name in table.names if name not in skip])
        else:
            self.used_ = table.matching(self.columns)
        self.notes_: list[str] = []
        self._fit(table)
        return self

    @abstractmethod
    def transform(self, table: Table, allocate: Allocate = np.empty) -> VectorsLike:
        """The vectors of a table's rows."""

    @property
    def dimension_names(self) -> list[str] | None:
        """Names of the vector columns, or None if they have none."""
        return None

    @property
    def elsewhere(self) -> str | None:
        """A model or network that is needed in addition to what is stored, from this machine or a hub, if any."""
        return None

    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor, to recreate this embedding."""
        return {"columns": self.columns, "seed": self.seed}

    def save(self, folder: str | Path) -> None:
        """Store what was learnt in a folder, as JSON and plain arrays."""
        folder = Path(folder)
        settings, arrays = self._learnt()
        packed = io.BytesIO()
        np.savez_compressed(packed, **{str(name): array for name, array in arrays.items()})  # type: ignore[arg-type]
        data = packed.getvalue()
        written = {
            "format": FORMAT,
            "embedding": self.name,
            "parameters": self.parameters(),
            "used": self.used_,
            "notes": self.notes_,
            "learnt": settings,
            "arrays": hashlib.blake2b(data, digest_size=16).hexdigest(),
        }
        try:
            private_folder(folder)
            # The settings are written last and complete the embedding.
            write_whole(folder / _ARRAYS, data)
            write_whole(folder / _SETTINGS, json.dumps(written, ensure_ascii=False, indent=1).encode())
        except OSError as wrong:
            raise StoreError(f"{folder}: the embedding cannot be written ({wrong.strerror})") from wrong

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load what :meth:`save` stored."""
        written, arrays = read_stored(Path(folder))
        if written["embedding"] != cls.name:
            raise InputError(f"{folder}: holds an embedding {written['embedding']!r}, not {cls.name!r}")
        return cls(**written["parameters"]).restored(written, arrays)

    def restored(self, written: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Restore what was learnt earlier; return self."""
        self.used_ = list(written["used"])
        self.notes_ = list(written["notes"])
        self._restore(written["learnt"], arrays)
        return self

    @abstractmethod
    def _default_columns(self, table: Table, free: Sequence[str]) -> list[str]:
        """The default columns, chosen from those that are neither ids nor labels."""

    @abstractmethod
    def _fit(self, table: Table) -> None:
        """Learn from the columns ``used_``."""

    def _learnt(self) -> tuple[dict[str, Any], Mapping[str, npt.NDArray[Any]]]:
        """What was learnt: plain values, and arrays."""
        return {}, {}

    def _restore(self, learnt: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore what ``_learnt`` returned; nothing by default."""
        return


def read_stored(folder: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The settings and arrays of a stored embedding, checked."""
    try:
        written = json.loads((folder / _SETTINGS).read_bytes())
        data = (folder / _ARRAYS).read_bytes()
        if written["format"] > FORMAT:
            raise InputError(f"{folder}: the embedding was stored by a newer version (format {written['format']})")
        if hashlib.blake2b(data, digest_size=16).hexdigest() != written["arrays"]:
            raise InputError(f"{folder}: the embedding's arrays are damaged: they do not fit its settings")
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return written, {name: archive[name] for name in archive.files}
    except FileNotFoundError as wrong:
        raise InputError(f"{folder}: no embedding is stored here ({Path(wrong.filename).name} is missing)") from wrong
    except OSError as wrong:
        raise StoreError(f"{folder}: the embedding cannot be read ({wrong.strerror})") from wrong
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile) as wrong:
        raise InputError(f"{folder}: the stored embedding is damaged ({wrong})") from wrong
