"""Text as vectors of its words and word pairs, weighted by rarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import svds
from threadpoolctl import threadpool_limits

from activecover.errors import InputError
from activecover.intake._base import Allocate, Embedding
from activecover.intake._table import Table
from activecover.pool import VectorsLike

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

#: Average length in characters and words from which a column counts as text rather than names.
_LONG_CHARACTERS, _LONG_WORDS = 20, 4
_SAMPLED_ROWS = 1000
#: A shorter vector is only rounding: the text has nothing in common with the first ones.
_NO_DIRECTION = 1e-6
_BLOCK_ROWS = 4096
#: Texts that the directions are learnt from; more of them take time and change little.
_MOST_FITTED = 50_000


def text_columns(table: Table, free: Sequence[str]) -> list[str]:
    """The text columns: title and abstract if both exist, else all columns of long texts."""
    by_name = {name.lower(): name for name in free}
    if {"title", "abstract"} <= {*by_name}:
        return [by_name["title"], by_name["abstract"]]
    return [name for name in free if table.is_text(name) and _is_long(table.texts(name))]


def columns_to_read(table: Table, free: Sequence[str]) -> list[str]:
    """The same, but refuse a table without any."""
    columns = text_columns(table, free)
    if not columns:
        raise InputError(f"{table.source}: no column holds long texts; name the ones to read")
    return columns


def average_length(texts: Sequence[str]) -> float:
    """Mean number of characters of the texts that are not empty."""
    lengths = [len(text) for text in _sample(texts)]
    return float(np.mean(lengths)) if lengths else 0.0


def joined(table: Table, columns: Sequence[str]) -> list[str]:
    """The texts of some columns, joined per row."""
    return ["\n".join(parts) for parts in zip(*(table.texts(name) for name in columns), strict=True)]


class TfidfEmbedding(Embedding):
    """Words and word pairs, weighted by rarity (TF-IDF), as a sparse matrix for the cosine metric.

    The weight of a word is 1 + log of its count in the text, times 1 + log((1 + n) / (1 + texts that contain it)).
    With 50 texts or more, words that occur in only one text are left out. An extra column marks texts without any
    known word, so that they are close to each other and far from all others.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns, or patterns. By default title and abstract if both exist, else all columns of long texts.
    most_words : int
        Most words and pairs to keep; the most frequent ones.
    seed : int
        Not used.

    References
    ----------
    Salton, Buckley (1988). Term-weighting approaches in automatic text retrieval.

    Examples
    --------
    >>> table = Table.of({"text": ["the cat sat", "the dog sat", "..."]})
    >>> embedding = TfidfEmbedding(["text"]).fit(table)
    >>> embedding.words_
    ['cat', 'cat sat', 'dog', 'dog sat', 'sat', 'the', 'the cat', 'the dog']
    >>> embedding.transform(table)[[2]].indices
    array([8], dtype=int32)
    """

    name = "tfidf"
    metric = "cosine"

    def __init__(self, columns: Sequence[str] | None = None, *, most_words: int = 200_000, seed: int = 0) -> None:
        super().__init__(columns, seed=seed)
        self.most_words = most_words

    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {**super().parameters(), "most_words": self.most_words}

    @property
    def dimension_names(self) -> list[str] | None:
        """The words and pairs."""
        return [*self.words_, "(no known word)"]

    def transform(self, table: Table, allocate: Allocate = np.empty) -> VectorsLike:
        """The vectors of a table's rows, as a sparse matrix."""
        return _with_mark(self._weighted(joined(table, self.used_)))

    def _default_columns(self, table: Table, free: Sequence[str]) -> list[str]:
        return columns_to_read(table, free)

    def _fit(self, table: Table) -> None:
        texts = joined(table, self.used_)
        counter = _counter(min_df=2 if len(texts) >= 50 else 1, max_features=self.most_words)
        try:
            counts = counter.fit_transform(texts)
        except ValueError as wrong:
            raise InputError(f"{table.source}: no words in {', '.join(self.used_)} that distinguish rows") from wrong
        words = counter.get_feature_names_out()
        self.words_: list[str] = words.tolist()
        having = np.bincount(counts.indices, minlength=len(words))
        self.rarity_ = np.log((1 + len(texts)) / (1 + having)) + 1
        self._ready: CountVectorizer | None = None
        self._reduce(counts)

    def _reduce(self, counts: sparse.csr_matrix) -> None:
        """Learn more from the counts of all texts; nothing by default."""

    def _weighted(self, texts: Sequence[str]) -> sparse.csr_array:
        """Rows of length one; texts without a known word give empty rows."""
        if self._ready is None:
            self._ready = _counter(vocabulary={word: at for at, word in enumerate(self.words_)})
        return self._weigh(self._ready.transform(texts))

    def _weigh(self, counts: sparse.csr_matrix) -> sparse.csr_array:
        rows = sparse.csr_array(counts).astype(np.float64)
        rows.sort_indices()
        rows.data = (1 + np.log(rows.data)) * self.rarity_[rows.indices]
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        rows.data /= np.repeat(lengths, np.diff(rows.indptr))
        return rows

    def _learnt(self) -> tuple[dict[str, Any], Mapping[str, npt.NDArray[Any]]]:
        return {"words": self.words_}, {"rarity": self.rarity_}

    def _restore(self, learnt: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.words_, self.rarity_, self._ready = list(learnt["words"]), arrays["rarity"], None


class TextEmbedding(TfidfEmbedding):
    """TF-IDF reduced to a few hundred dimensions, so that texts on the same topic are close even with different words.

    Latent semantic analysis: a truncated singular value decomposition of the matrix of :class:`TfidfEmbedding` (of
    50,000 of its rows, if there are more). An extra dimension marks texts without any known word.

    Parameters
    ----------
    columns, most_words
        As for :class:`TfidfEmbedding`.
    dimensions : int
        Most dimensions; fewer if there are fewer texts or words.
    seed : int
        Seed for the starting vector of the decomposition and for the rows it uses.

    References
    ----------
    Deerwester et al. (1990). Indexing by latent semantic analysis.

    Examples
    --------
    >>> table = Table.of({"text": ["a red cat", "a red dog", "one blue car", "one blue bus"]})
    >>> TextEmbedding(["text"], dimensions=2).fit(table).transform(table).shape
    (4, 3)
    """

    name = "text"

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        *,
        dimensions: int = 128,
        most_words: int = 200_000,
        seed: int = 0,
    ) -> None:
        super().__init__(columns, most_words=most_words, seed=seed)
        self.dimensions = dimensions

    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {**super().parameters(), "dimensions": self.dimensions}

    @property
    def dimension_names(self) -> list[str] | None:
        """None, as mixtures of words have no names."""
        return None

    def transform(self, table: Table, allocate: Allocate = np.empty) -> VectorsLike:
        """The vectors of a table's rows, float32."""
        texts = joined(table, self.used_)
        vectors = allocate((len(texts), len(self.directions_) + 1), np.float32)
        for start in range(0, len(texts), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            reduced = self._weighted(texts[rows]) @ self.directions_.T
            lost = np.sqrt((reduced**2).sum(axis=1)) < _NO_DIRECTION
            reduced[lost] = 0
            vectors[rows, :-1], vectors[rows, -1] = reduced, lost
        return vectors

    def _reduce(self, counts: sparse.csr_matrix) -> None:
        random = np.random.default_rng(self.seed)
        chosen = np.sort(random.permutation(counts.shape[0])[:_MOST_FITTED])
        # On one thread, so that the same seed gives the same directions on any number of cores.
        with threadpool_limits(1, "blas"):
            directions = _leading(self._weigh(counts[chosen]), self.dimensions, random)
        self.directions_ = directions.astype(np.float32).astype(np.float64)

    def _learnt(self) -> tuple[dict[str, Any], Mapping[str, npt.NDArray[Any]]]:
        settings, arrays = super()._learnt()
        return settings, {**arrays, "directions": self.directions_.astype(np.float32)}

    def _restore(self, learnt: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        super()._restore(learnt, arrays)
        self.directions_ = arrays["directions"].astype(np.float64)


def _counter(**settings: Any) -> CountVectorizer:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(
        ngram_range=(1, 2), lowercase=True, strip_accents="unicode", token_pattern=r"(?u)\b\w\w+\b", **settings
    )


def _leading(matrix: sparse.csr_array, most: int, random: np.random.Generator) -> npt.NDArray[np.float64]:
    """Up to ``most`` leading right singular vectors, each with its largest entry positive."""
    count = min(most, *matrix.shape)
    if count < min(matrix.shape):
        start = random.standard_normal(min(matrix.shape))
        _, values, found = svds(matrix, count, v0=start)
    else:
        _, values, found = np.linalg.svd(matrix.toarray(), full_matrices=False)
    order = np.argsort(-values, kind="stable")
    # Values beyond the rank of the matrix are rounding.
    directions = found[order[values[order] > 1e-9 * values.max()]]
    largest = np.abs(directions).argmax(axis=1)
    signs = np.sign(directions[np.arange(len(directions)), largest])
    return np.asarray(directions * signs[:, None])


def _with_mark(rows: sparse.csr_array) -> sparse.csr_array:
    """Append a column that is 1 for empty rows, as cosine needs a direction."""
    empty = (np.diff(rows.indptr) == 0).astype(np.float64)
    return sparse.csr_array(sparse.hstack([rows, sparse.csr_array(empty[:, None])], format="csr"))


def _is_long(texts: Sequence[str]) -> bool:
    sample = _sample(texts)
    if not sample or len({*sample}) < len(sample) / 2:
        return False
    words = float(np.mean([len(text.split()) for text in sample]))
    return average_length(texts) >= _LONG_CHARACTERS and words >= _LONG_WORDS


def _sample(texts: Sequence[str]) -> list[str]:
    """Non-empty texts, spread over the table."""
    step = max(1, len(texts) // _SAMPLED_ROWS)
    return [text for text in texts[::step] if text.strip()]
