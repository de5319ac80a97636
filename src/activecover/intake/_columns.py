"""Columns of numbers and categories, scaled to be comparable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.intake._base import Allocate, Embedding
from activecover.intake._table import Table
from activecover.pool import VectorsLike
from activecover.tables import as_numbers, as_text, number

#: A column with more distinct words than this holds free text or names, not categories.
MOST_CATEGORIES = 100
_LARGEST_NUMBER = 1e15


@dataclass(frozen=True, slots=True)
class _Numbers:
    """A numeric column, standardised; missing values become the mean, with an indicator column."""

    name: str
    mean: float
    deviation: float
    marked: bool

    @property
    def outputs(self) -> list[str]:
        return [self.name, f"{self.name} is missing"] if self.marked else [self.name]

    def write(self, table: Table, target: npt.NDArray[np.float32]) -> None:
        values = _checked(table, self.name)
        missing = np.isnan(values)
        target[:, 0] = np.where(missing, 0.0, (values - self.mean) / self.deviation)
        if self.marked:
            target[:, 1] = missing


@dataclass(frozen=True, slots=True)
class _Categories:
    """A categorical column, one-hot encoded; words not seen in fitting become all zeros."""

    name: str
    words: list[str] = field(default_factory=list)

    @property
    def outputs(self) -> list[str]:
        return [f"{self.name} = {word}" for word in self.words]

    def write(self, table: Table, target: npt.NDArray[np.float32]) -> None:
        place = {word: at for at, word in enumerate(self.words)}
        target[:] = 0
        found = np.array([place.get(word, -1) for word in _words(table, self.name)])
        rows = np.flatnonzero(found >= 0)
        target[rows, found[rows]] = 1


class ScaledColumns(Embedding):
    """Standardised numbers and one-hot categories, so that each column has about the same weight in a distance.

    The squared difference of two rows is 2 on average in a standardised number, and exactly 2 if their categories
    differ, so neither kind of column dominates. A missing number counts as the mean; if any number was missing in
    fitting, an extra column marks missing values. A missing category is a category of its own. Columns with only one
    value, row numbers (unless named), and columns with more than 100 distinct words are left out and listed in
    ``notes_``.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns, or patterns such as ``x*``; all but ids and labels by default.
    seed : int
        Not used.

    Examples
    --------
    >>> table = Table.of({"age": ["20", "40", "?"], "job": ["cook", "nurse", "cook"]})
    >>> embedding = ScaledColumns().fit(table)
    >>> embedding.dimension_names
    ['age', 'age is missing', 'job = cook', 'job = nurse']
    >>> embedding.transform(Table.of({"age": [30], "job": ["pilot"]}))
    array([[0., 0., 0., 0.]], dtype=float32)
    """

    name = "columns"

    @property
    def dimension_names(self) -> list[str]:
        """The meaning of each vector column."""
        return [output for part in self.parts_ for output in part.outputs]

    def transform(self, table: Table, allocate: Allocate = np.empty) -> VectorsLike:
        """The vectors of a table's rows, float32."""
        vectors = allocate((len(table), len(self.dimension_names)), np.float32)
        at = 0
        for part in self.parts_:
            width = len(part.outputs)
            part.write(table, vectors[:, at : at + width])
            at += width
        return vectors

    def _default_columns(self, table: Table, free: Sequence[str]) -> list[str]:
        return [name for name in free if not table.width(name)]

    def _fit(self, table: Table) -> None:
        self.parts_: list[_Numbers | _Categories] = []
        for name in self.used_:
            # A named column is used even if it only counts the rows.
            part = _learn(table, name, named=name in (self.columns or ()))
            if isinstance(part, str):
                self.notes_.append(f"column {name!r} is left out: {part}")
            else:
                self.parts_.append(part)
        self.used_ = [part.name for part in self.parts_]
        if not self.parts_:
            raise InputError(
                f"{table.source}: no column has numbers or categories that differ; choose another embedding"
            )

    def _learnt(self) -> tuple[dict[str, Any], Mapping[str, npt.NDArray[Any]]]:
        return {"parts": [asdict(part) for part in self.parts_]}, {}

    def _restore(self, learnt: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.parts_ = [_Categories(**part) if "words" in part else _Numbers(**part) for part in learnt["parts"]]


def _learn(table: Table, name: str, named: bool) -> _Numbers | _Categories | str:
    """How to encode a column, or why it is left out."""
    column = table.column(name)
    if isinstance(column, np.ndarray) and column.ndim == 2:
        return "it holds vectors"
    if isinstance(column, np.ndarray) or all(number(value) is not None for value in column):
        return _learn_numbers(name, _checked(table, name), named)
    words = sorted({*_words(table, name)})
    if len(words) > MOST_CATEGORIES:
        return f"{len(words):,} distinct words are too many for categories"
    return _Categories(name, words) if len(words) > 1 else "it has only one value"


def _learn_numbers(name: str, values: npt.NDArray[np.float64], named: bool) -> _Numbers | str:
    missing = np.isnan(values)
    known = values[~missing]
    if not known.size or (known == known[0]).all():
        return "it has only one value"
    if not named and len(values) > 2 and not missing.any() and (np.diff(values) == 1).all():
        return "it counts the rows"
    return _Numbers(name, float(known.mean()), float(known.std()), bool(missing.any()))


def _checked(table: Table, name: str) -> npt.NDArray[np.float64]:
    values = as_numbers(table.column(name), f"{table.source}: ", name)
    bad = np.abs(values) > _LARGEST_NUMBER
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{table.source}: row {row}, column {name!r}: {values[row]:g} is beyond ±{_LARGEST_NUMBER:g}; "
            "rescale the column"
        )
    return values


def _words(table: Table, name: str) -> list[str]:
    return [as_text(value).strip() for value in table.texts(name)]
