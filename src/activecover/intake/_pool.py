"""From tables to pools, and how later rows are added."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.files import write_whole
from activecover.intake._base import Allocate, Embedding
from activecover.intake._catalogue import load_embedding, make_embedding
from activecover.intake._table import Table
from activecover.pool import Pool, VectorsLike, read_array

_ROLES = "intake.json"
#: Most columns shown by default: nobody would read more.
_MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows ready for a pool: the arguments of ``Pool`` and ``Pool.extend``, and labels if there are any."""

    vectors: VectorsLike
    ids: list[str] | None
    contents: dict[str, Sequence[str]]
    labels: npt.NDArray[np.str_] | None


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a table becomes rows of a pool: a fitted embedding, and the use of each column.

    Stored in a folder with :meth:`save`, it turns later tables into rows that match the first ones.
    """

    embedding: Embedding
    metric: str
    id_column: str | None
    label_column: str | None
    show: list[str]

    def read(self, table: Table, allocate: Allocate = np.empty) -> Rows:
        """Turn a table into rows; the label column may be missing from later tables."""
        labels = None
        if self.label_column is not None and self.label_column in table.columns:
            labels = np.array([text.strip() for text in table.texts(self.label_column)], np.str_)
        ids = None if self.id_column is None else [text.strip() for text in table.texts(self.id_column)]
        contents = {name: table.texts(name) for name in self.show}
        return Rows(self.embedding.transform(table, allocate), ids, contents, labels)

    def extend(self, pool: Pool, table: Table) -> Rows:
        """Append a table's rows to a pool and return them; all are checked before any is added."""
        rows = self.read(table)
        try:
            pool.extend(rows.vectors, ids=rows.ids, contents=rows.contents)
        except InputError as wrong:
            raise InputError(f"{table.source}: {wrong}") from wrong
        return rows

    def save(self, folder: str | Path) -> None:
        """Store the recipe in a folder, as JSON and plain arrays."""
        folder = Path(folder)
        self.embedding.save(folder)
        roles = {"metric": self.metric, "id": self.id_column, "label": self.label_column, "show": self.show}
        write_whole(folder / _ROLES, json.dumps(roles, ensure_ascii=False, indent=1).encode())

    @classmethod
    def load(cls, folder: str | Path) -> Recipe:
        """Load what :meth:`save` stored."""
        folder = Path(folder)
        embedding = load_embedding(folder)
        try:
            roles = json.loads((folder / _ROLES).read_bytes())
            return cls(embedding, roles["metric"], roles["id"], roles["label"], list(roles["show"]))
        except (OSError, ValueError, KeyError, TypeError) as wrong:
            raise InputError(f"{folder / _ROLES}: missing or damaged ({wrong})") from wrong


@dataclass(frozen=True, slots=True)
class Intake:
    """A pool made from a table.

    Attributes
    ----------
    pool : Pool
        The items.
    labels : array of str or None
        The values of the table's label column, which are never part of the pool.
    recipe : Recipe
        How the rows were made, for adding rows later.
    notes : list of str
        Which embedding was chosen and why, and other notes, one line each.
    """

    pool: Pool
    labels: npt.NDArray[np.str_] | None
    recipe: Recipe
    notes: list[str]

    @property
    def embedding(self) -> Embedding:
        """The fitted embedding."""
        return self.recipe.embedding


def make_pool(
    table: Table,
    *,
    embed: str | Embedding = "auto",
    columns: Sequence[str] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    show: Sequence[str] | None = None,
    metric: str | None = None,
    vectors_file: str | Path | None = None,
    **parameters: Any,
) -> Intake:
    """Make a pool from a table.

    Parameters
    ----------
    table : Table
        From :func:`read_table`, or :meth:`Table.of`.
    embed : str or Embedding
        How vectors are made: ``auto``, ``auto:dense``, a registered name (``columns``, ``text:title,abstract``,
        ``vectors:x*``, …), or an :class:`Embedding`, which is fitted to the table here.
    columns : sequence of str, optional
        Columns or patterns to make vectors from.
    id_column, label_column : str, optional
        Columns with the ids and with known labels. By default the ids are those of references, file names of
        images, or else row numbers.
    show : sequence of str, optional
        Columns to show to a person. By default all except the label and vectors.
    metric : {"euclidean", "cosine", "jaccard"}, optional
        By default that of the embedding.
    vectors_file : path, optional
        Write dense vectors to this ``.npy`` file and map them from there. With float32 vectors and the
        euclidean metric, the pool then needs almost no memory.
    **parameters
        Parameters of the embedding (``seed``, ``dimensions``, …).

    Returns
    -------
    Intake

    Examples
    --------
    >>> table = Table.of({"id": ["a", "b"], "size": [1, 2], "good": ["yes", "no"]})
    >>> made = make_pool(table, id_column="id", label_column="good")
    >>> made.pool.ids, made.pool.vectors.tolist(), made.labels.tolist()
    (['a', 'b'], [[-1.0], [1.0]], ['yes', 'no'])
    >>> made.notes
    ['columns: numbers and categories, as there are no vectors, molecules or long texts']
    """
    for name in (id_column, label_column, *(show or ())):
        if name is not None:
            table.check(name)
    id_column = id_column if id_column is not None else _own_ids(table)
    skip = [name for name in (id_column, label_column) if name is not None]
    embedding, reason = make_embedding(embed, table, columns=columns, skip=skip, **parameters)
    embedding.fit(table, skip)
    shown = list(show) if show is not None else _shown(table, embedding, label_column)
    recipe = Recipe(embedding, metric or embedding.metric, id_column, label_column, shown)
    rows = recipe.read(table, np.empty if vectors_file is None else _in_file(Path(vectors_file)))
    if vectors_file is not None and isinstance(rows.vectors, np.memmap) and Path(vectors_file).exists():
        # Written through one map and read through another: drop the first, so as not to hold the vectors twice.
        rows.vectors.flush()
        rows = replace(rows, vectors=np.empty(0))
        rows = replace(rows, vectors=read_array(vectors_file))
    try:
        pool = Pool(
            rows.vectors,
            ids=rows.ids,
            metric=recipe.metric,
            contents=rows.contents,
            columns=embedding.dimension_names,
        )
    except InputError as wrong:
        raise InputError(f"{table.source}: {wrong}") from wrong
    return Intake(pool, rows.labels, recipe, [reason, *embedding.notes_])


def _own_ids(table: Table) -> str | None:
    """The column that provides ids by itself, if it has a unique value for every row."""
    if table.images is not None:
        return "file"
    if table.references is not None and "number" in table.columns:
        numbers = table.texts("number")
        if all(numbers) and len({*numbers}) == len(numbers):
            return "number"
    return None


def _shown(table: Table, embedding: Embedding, label_column: str | None) -> list[str]:
    is_vector = {*embedding.used_} if embedding.name == "vectors" else set()
    names = [name for name in table.names if name != label_column and name not in is_vector and not table.width(name)]
    return names[:_MOST_SHOWN]


def _in_file(path: Path) -> Allocate:
    def allocate(shape: tuple[int, int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        try:
            return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
        except OSError as wrong:
            raise InputError(f"{path}: cannot be written ({wrong.strerror})") from wrong

    return allocate
