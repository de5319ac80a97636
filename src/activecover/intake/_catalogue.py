"""Embeddings by name, and the choice of one by looking at a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activecover.errors import InputError
from activecover.intake._base import Embedding, read_stored
from activecover.intake._columns import ScaledColumns
from activecover.intake._pixels import ImageEmbedding
from activecover.intake._sentence import SentenceEmbedding
from activecover.intake._smiles import SmilesEmbedding, smiles_column
from activecover.intake._table import Table
from activecover.intake._text import TextEmbedding, TfidfEmbedding, average_length, text_columns
from activecover.intake._vectors import BroughtVectors
from activecover.registry import Registry

#: Each is built with ``columns``, ``seed`` and parameters of its own.
EMBEDDINGS: Registry[Embedding] = Registry("embedding", group="activecover.embeddings")
EMBEDDINGS.register("vectors", "vectors that the file brings along, as they are")(BroughtVectors)
EMBEDDINGS.register("columns", "numbers standardised, categories one-hot")(ScaledColumns)
EMBEDDINGS.register("text", "TF-IDF of words and pairs, reduced to 128 dimensions")(TextEmbedding)
EMBEDDINGS.register("tfidf", "TF-IDF of words and pairs, sparse")(TfidfEmbedding)
EMBEDDINGS.register("sentence", "a sentence-transformers model: sentence:MODEL")(SentenceEmbedding)
EMBEDDINGS.register("smiles", "Morgan fingerprints of molecules")(SmilesEmbedding)
EMBEDDINGS.register("images", "pixels reduced, or a network: images:FILE.pt")(ImageEmbedding)

#: The most texts that are kept as their words: as many rows as the portfolio learns on, which does best with these.
MOST_AS_WORDS = 50_000
#: What stands after the colon, where it is not columns.
_ARGUMENTS = {"sentence": "model", "images": "network"}


@dataclass(frozen=True, slots=True)
class Choice:
    """An embedding for a table, and why."""

    name: str
    columns: list[str] | None
    reason: str


def choose_embedding(table: Table, skip: Sequence[str] = (), *, dense: bool = False) -> Choice:
    """Look at a table and choose: images, vectors, a column named smiles, long texts, else its columns.

    Texts are kept as their words (``tfidf``), which learners that use all labels make most of; where there are very
    many of them, or ``dense`` vectors are wanted, they are reduced to a few directions (``text``).

    Examples
    --------
    >>> choose_embedding(Table.of({"SMILES": ["CCO"], "active": ["1"]}), skip=["active"]).reason
    "smiles: column 'SMILES' is named so"
    """
    free = [name for name in table.names if name not in skip]
    if table.images is not None:
        return Choice("images", None, f"images: {len(table.images):,} files in {table.source}")
    if table.vectors is not None:
        return Choice("vectors", None, f"vectors: the file brings a matrix of {table.vectors.shape[1]} columns along")
    lists = [name for name in free if table.width(name)]
    if lists:
        return Choice("vectors", lists, f"vectors: {_named(lists)} of lists of numbers")
    molecules = smiles_column(free)
    if molecules is not None:
        return Choice("smiles", [molecules], f"smiles: column {molecules!r} is named so")
    texts = text_columns(table, free)
    if texts:
        length = sum(average_length(table.texts(name)) for name in texts)
        name = "text" if dense or len(table) > MOST_AS_WORDS else "tfidf"
        return Choice(name, texts, f"{name}: {_named(texts)} of long texts ({length:.0f} characters on average)")
    return Choice("columns", None, "columns: no vectors, molecules or long texts, so numbers and categories")


def make_embedding(
    embed: str | Embedding,
    table: Table,
    *,
    columns: Sequence[str] | None = None,
    skip: Sequence[str] = (),
    **parameters: Any,
) -> tuple[Embedding, str]:
    """Build an embedding by name for a table, not fitted yet, and say in a line which and why.

    Parameters
    ----------
    embed : str or Embedding
        ``auto`` (``auto:dense``: no sparse vectors), or a registered name, perhaps with what it needs
        after a colon: columns or patterns, comma-separated (``text:title,abstract``, ``vectors:x*``), a
        model (``sentence:MODEL``) or a network (``images:FILE.pt``).
    table : Table
        What ``auto`` looks at.
    columns : sequence of str, optional
        Columns or patterns, where the colon does not name them.
    skip : sequence of str
        Columns never to choose: ids and labels.
    **parameters
        Of the embedding (``seed``, ``dimensions``, …).
    """
    if isinstance(embed, Embedding):
        return embed, f"{embed.name}: as given"
    name, _, argument = embed.partition(":")
    if name == "auto":
        if argument not in ("", "dense"):
            raise InputError(f"{embed!r}: after auto there is nothing to name but auto:dense")
        # Who says how many dimensions there are to be wants them dense.
        choice = choose_embedding(table, skip, dense=argument == "dense" or "dimensions" in parameters)
        chosen = columns if columns is not None else choice.columns
        return EMBEDDINGS.build(choice.name, columns=chosen, **parameters), choice.reason
    if argument:
        key = _ARGUMENTS.get(EMBEDDINGS[name].name, "columns")
        parameters[key] = argument if key != "columns" else _split(argument)
    if columns is not None:
        parameters["columns"] = list(columns)
    return EMBEDDINGS.build(name, **{"columns": None, **parameters}), f"{EMBEDDINGS[name].name}: as asked for"


def comes_from_elsewhere(embed: str) -> bool:
    """Whether a name of an embedding also names a model or a network, which is fetched or read from a file.

    Examples
    --------
    >>> [comes_from_elsewhere(embed) for embed in ("auto:dense", "columns:x,y", "images", "images@1:net.pt")]
    [False, False, False, True]
    """
    name, _, argument = embed.partition(":")
    return bool(argument) and name.partition("@")[0] in _ARGUMENTS


def load_embedding(folder: str | Path) -> Embedding:
    """Take up a stored embedding, whichever it is."""
    written, arrays = read_stored(Path(folder))
    try:
        return EMBEDDINGS.build(written["embedding"], **written["parameters"]).restored(written, arrays)
    except (KeyError, TypeError) as wrong:
        raise InputError(f"{folder}: the stored embedding is damaged ({wrong!r})") from wrong


def _named(columns: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in columns[:4]) + (", …" if len(columns) > 4 else "")
    return f"column {shown}" if len(columns) == 1 else f"columns {shown}"


def _split(argument: str) -> list[str]:
    parts = [part.strip() for part in argument.split(",")]
    if not all(parts):
        raise InputError(f"{argument!r}: an empty name between the commas")
    return parts
