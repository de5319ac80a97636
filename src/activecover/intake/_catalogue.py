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
from activecover.intake._vectors import FileVectors
from activecover.registry import Registry

#: Each takes ``columns``, ``seed`` and its own parameters.
EMBEDDINGS: Registry[Embedding] = Registry("embedding", group="activecover.embeddings")
EMBEDDINGS.register("vectors", "vectors in the file, unchanged")(FileVectors)
EMBEDDINGS.register("columns", "numbers standardised, categories one-hot")(ScaledColumns)
EMBEDDINGS.register("text", "TF-IDF of words and pairs, reduced to 128 dimensions")(TextEmbedding)
EMBEDDINGS.register("tfidf", "TF-IDF of words and pairs, sparse")(TfidfEmbedding)
EMBEDDINGS.register("sentence", "a sentence-transformers model: sentence:MODEL")(SentenceEmbedding)
EMBEDDINGS.register("smiles", "Morgan fingerprints of molecules")(SmilesEmbedding)
EMBEDDINGS.register("images", "pixels reduced, or a network: images:FILE.pt")(ImageEmbedding)

#: Most texts to keep as words: the number of rows that the portfolio learns on, which works best with words.
MOST_AS_WORDS = 50_000
#: What follows the colon, if it is not columns.
_ARGUMENTS = {"sentence": "model", "images": "network"}


@dataclass(frozen=True, slots=True)
class Choice:
    """An embedding for a table, and the reason for it."""

    name: str
    columns: list[str] | None
    reason: str


def choose_embedding(table: Table, skip: Sequence[str] = (), *, dense: bool = False) -> Choice:
    """Choose an embedding for a table: images, vectors, a column named smiles, long texts, or else its columns.

    Texts are kept as words (``tfidf``), which suits learners that use all labels. If there are very many texts, or
    ``dense`` vectors are wanted, they are reduced to a few directions (``text``).

    Examples
    --------
    >>> choose_embedding(Table.of({"SMILES": ["CCO"], "active": ["1"]}), skip=["active"]).reason
    "smiles: there is a column 'SMILES'"
    """
    free = [name for name in table.names if name not in skip]
    if table.images is not None:
        return Choice("images", None, f"images: {len(table.images):,} files in {table.source}")
    if table.vectors is not None:
        return Choice("vectors", None, f"vectors: the file has a matrix of {table.vectors.shape[1]} columns")
    lists = [name for name in free if table.width(name)]
    if lists:
        return Choice("vectors", lists, f"vectors: {_named(lists)} of lists of numbers")
    molecules = smiles_column(free)
    if molecules is not None:
        return Choice("smiles", [molecules], f"smiles: there is a column {molecules!r}")
    texts = text_columns(table, free)
    if texts:
        length = sum(average_length(table.texts(name)) for name in texts)
        name = "text" if dense or len(table) > MOST_AS_WORDS else "tfidf"
        return Choice(name, texts, f"{name}: {_named(texts)} of long texts ({length:.0f} characters on average)")
    return Choice("columns", None, "columns: numbers and categories, as there are no vectors, molecules or long texts")


def make_embedding(
    embed: str | Embedding,
    table: Table,
    *,
    columns: Sequence[str] | None = None,
    skip: Sequence[str] = (),
    **parameters: Any,
) -> tuple[Embedding, str]:
    """Build an embedding by name for a table, without fitting it, and explain the choice in one line.

    Parameters
    ----------
    embed : str or Embedding
        ``auto`` (``auto:dense`` for no sparse vectors), or a registered name, optionally with an argument after a
        colon: comma-separated columns or patterns (``text:title,abstract``, ``vectors:x*``), a model
        (``sentence:MODEL``) or a network (``images:FILE.pt``).
    table : Table
        The table that ``auto`` examines.
    columns : sequence of str, optional
        Columns or patterns, if none follow the colon.
    skip : sequence of str
        Columns that are never chosen, such as ids and labels.
    **parameters
        Parameters of the embedding (``seed``, ``dimensions``, …).
    """
    if isinstance(embed, Embedding):
        return embed, f"{embed.name}: as given"
    name, _, argument = embed.partition(":")
    if name == "auto":
        if argument not in ("", "dense"):
            raise InputError(f"{embed!r}: only auto and auto:dense are possible")
        # A given number of dimensions implies dense vectors.
        choice = choose_embedding(table, skip, dense=argument == "dense" or "dimensions" in parameters)
        chosen = columns if columns is not None else choice.columns
        return EMBEDDINGS.build(choice.name, columns=chosen, **parameters), choice.reason
    if argument:
        key = _ARGUMENTS.get(EMBEDDINGS[name].name, "columns")
        parameters[key] = argument if key != "columns" else _split(argument)
    if columns is not None:
        parameters["columns"] = list(columns)
    return EMBEDDINGS.build(name, **{"columns": None, **parameters}), f"{EMBEDDINGS[name].name}: as requested"


def comes_from_elsewhere(embed: str) -> bool:
    """Whether the name of an embedding includes a model or network, which is fetched or read from a file.

    Examples
    --------
    >>> [comes_from_elsewhere(embed) for embed in ("auto:dense", "columns:x,y", "images", "images@1:net.pt")]
    [False, False, False, True]
    """
    name, _, argument = embed.partition(":")
    return bool(argument) and name.partition("@")[0] in _ARGUMENTS


def load_embedding(folder: str | Path) -> Embedding:
    """Load a stored embedding of any kind."""
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
