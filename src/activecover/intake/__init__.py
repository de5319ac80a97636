"""From files to pools: a file becomes a table, the table becomes a pool, and later rows are added in its space."""

from activecover.intake._base import Embedding
from activecover.intake._catalogue import (
    EMBEDDINGS,
    Choice,
    choose_embedding,
    comes_from_elsewhere,
    load_embedding,
    make_embedding,
)
from activecover.intake._claims import TooLarge
from activecover.intake._columns import ScaledColumns
from activecover.intake._confined import Busy, ConfinedIntake, DiskFull, default_memory
from activecover.intake._images import ImageFiles, is_picture, open_picture, picture_bytes
from activecover.intake._pixels import ImageEmbedding
from activecover.intake._pool import Intake, Recipe, Rows, make_pool
from activecover.intake._read import read_table
from activecover.intake._references import FORMATS, Reference, read_references, references_by_id, write_references
from activecover.intake._sentence import SentenceEmbedding
from activecover.intake._smiles import SmilesEmbedding
from activecover.intake._table import Table
from activecover.intake._text import TextEmbedding, TfidfEmbedding
from activecover.intake._vectors import FileVectors

__all__ = [
    "EMBEDDINGS",
    "FORMATS",
    "Busy",
    "Choice",
    "ConfinedIntake",
    "DiskFull",
    "Embedding",
    "FileVectors",
    "ImageEmbedding",
    "ImageFiles",
    "Intake",
    "Recipe",
    "Reference",
    "Rows",
    "ScaledColumns",
    "SentenceEmbedding",
    "SmilesEmbedding",
    "Table",
    "TextEmbedding",
    "TfidfEmbedding",
    "TooLarge",
    "choose_embedding",
    "comes_from_elsewhere",
    "default_memory",
    "is_picture",
    "load_embedding",
    "make_embedding",
    "make_pool",
    "open_picture",
    "picture_bytes",
    "read_references",
    "read_table",
    "references_by_id",
    "write_references",
]
