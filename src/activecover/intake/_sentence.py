"""Text as vectors, by a given sentence-transformers model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.extras import require
from activecover.intake._base import Allocate, Embedding
from activecover.intake._table import Table
from activecover.intake._text import columns_to_read, joined
from activecover.pool import VectorsLike

_BATCH = 64


class SentenceModel(Protocol):
    """The part of ``sentence_transformers.SentenceTransformer`` used here."""

    def encode(
        self, texts: list[str], *, normalize_embeddings: bool, show_progress_bar: bool
    ) -> npt.NDArray[np.float32]: ...

    def get_sentence_embedding_dimension(self) -> int: ...


class SentenceEmbedding(Embedding):
    """The output of a sentence-transformers model for each row's text, for the cosine metric.

    Only the name of the model is stored, so the model is needed again for added rows. If the name is not a folder,
    sentence-transformers downloads the model.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns, or patterns; by default as for ``text``.
    model : str
        Name or folder of the model.
    seed : int
        Not used.
    """

    name = "sentence"
    metric = "cosine"

    def __init__(self, columns: Sequence[str] | None = None, *, model: str = "", seed: int = 0) -> None:
        super().__init__(columns, seed=seed)
        self.model = model

    @property
    def elsewhere(self) -> str | None:
        """The model."""
        return self.model

    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {**super().parameters(), "model": self.model}

    def transform(self, table: Table, allocate: Allocate = np.empty) -> VectorsLike:
        """The vectors of a table's rows, float32, of length one."""
        encoder = self._encoder()
        texts = joined(table, self.used_)
        vectors = allocate((len(texts), self.dimensions_), np.float32)
        for start in range(0, len(texts), _BATCH):
            part = encoder.encode(texts[start : start + _BATCH], normalize_embeddings=True, show_progress_bar=False)
            if part.shape[1] != self.dimensions_:
                raise InputError(
                    f"model {self.model!r} gives {part.shape[1]} dimensions, but gave {self.dimensions_} at first"
                )
            vectors[start : start + _BATCH] = part
        return vectors

    def _default_columns(self, table: Table, free: Sequence[str]) -> list[str]:
        return columns_to_read(table, free)

    def _fit(self, table: Table) -> None:
        self.dimensions_ = self._encoder().get_sentence_embedding_dimension()

    def _encoder(self) -> SentenceModel:
        if not self.model:
            raise InputError("embedding 'sentence' needs a model: sentence:MODEL")
        if "_model" not in self.__dict__:
            package = require("sentence_transformers", extra="sentences", purpose="sentence models")
            try:
                self._model = package.SentenceTransformer(self.model)
            except Exception as wrong:
                # Hubs, files and devices raise their own exceptions.
                reason = str(wrong).partition("\n")[0]
                raise InputError(f"model {self.model!r} cannot be loaded ({reason})") from wrong
        model: SentenceModel = self._model
        return model

    def _learnt(self) -> tuple[dict[str, Any], Mapping[str, npt.NDArray[Any]]]:
        return {"dimensions": self.dimensions_}, {}

    def _restore(self, learnt: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.dimensions_ = int(learnt["dimensions"])
