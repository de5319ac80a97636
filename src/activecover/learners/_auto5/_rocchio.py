"""Towards the mean of the positives, away from that of the negatives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from activecover.learners._auto5._base import Rows
from activecover.learners._auto5._by_score import MarkedScore, Scores
from activecover.learners._products import outside_vectors, projected, summed


class Rocchio(MarkedScore):
    """Ask for the row whose mean similarity to the positives exceeds that to the negatives most.

    Similarity is the inner product, so the score is the product with the difference of two means. The
    sums are made anew for each proposal, in the order of the rows: that costs as much as a look at the
    labelled rows, and leaves no trace of the order in which labels came.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.

    References
    ----------
    Rocchio, J. (1971). Relevance feedback in information retrieval. The SMART Retrieval System.

    Examples
    --------
    >>> from activecover.learners import Labels
    >>> from activecover.pool import Pool
    >>> pool = Pool([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.8, 0.6]], metric="cosine")
    >>> learner = Rocchio(explore=[0, 1]).begin(pool)
    >>> learner.tell(Labels.of([0, 1], [0, 1], [True, False], True))
    >>> learner.propose(2).rows
    array([3, 2])
    """

    def __init__(self, explore: int | Sequence[int] = 100) -> None:
        self.explore = explore

    def _scores(self, rows: Rows) -> Scores:
        positives, negatives = self._marks.positives(), self._marks.negatives()
        outside = outside_vectors(self.pool_, self.outside_)
        towards = summed(self.pool_, positives) + np.asarray(outside.sum(axis=0)).ravel()
        weights = towards / (len(positives) + outside.shape[0])
        if len(negatives):
            weights -= summed(self.pool_, negatives) / len(negatives)
        return projected(self.pool_, rows, weights)
