"""What is looked for, in words, as a row of a pool of words."""

from __future__ import annotations

import itertools
import re
import unicodedata

import numpy as np
from scipy import sparse

from activecover.errors import InputError
from activecover.pool import Pool, Vectors, sparse_vectors

_WORD = re.compile(r"(?u)\b\w\w+\b")


def question_vector(pool: Pool, question: str) -> Vectors:
    """A question as one encoded row: its words and pairs of words, weighted by how rare they are in the pool.

    Examples
    --------
    >>> rows = sparse.csr_array([[1.0, 0, 0], [1, 1, 0], [0, 0, 1]])
    >>> pool = Pool(rows, metric="cosine", columns=["cat", "sat", "dog"])
    >>> question_vector(pool, "Where the cat sat").toarray().round(2).astype(str).tolist()
    [['0.61', '0.8', '0.0']]
    """
    if pool.kind != "sparse" or pool.columns is None:
        raise InputError("a question in words needs a pool of words: make its vectors with --embed tfidf")
    places = {name: place for place, name in enumerate(pool.columns)}
    plain = unicodedata.normalize("NFKD", question.lower())
    words = _WORD.findall("".join(letter for letter in plain if not unicodedata.combining(letter)))
    pairs = [f"{first} {second}" for first, second in itertools.pairwise(words)]
    known = sorted({places[word] for word in [*words, *pairs] if word in places})
    if not known:
        raise InputError(f"no text of the pool has a word of the question {question!r}: use words that texts have")
    there = np.flatnonzero(~pool.withdrawn)
    having = np.bincount(sparse_vectors(pool.vectors).indices, minlength=pool.dimensions)[known]
    rarity = np.log((1 + len(there)) / (1 + having)) + 1
    row = sparse.csr_array((rarity, (np.zeros(len(known), np.int64), known)), shape=(1, pool.dimensions))
    return pool.encode(row)
