"""Three opinions on a row, added up: a mean, the nearest positives, and topics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from activecover.learners._auto5._base import Rows
from activecover.learners._auto5._by_score import Scores
from activecover.learners._auto5._classifier import BalancedRidge
from activecover.learners._auto5._rocchio import Rocchio
from activecover.learners._products import (
    Numbers,
    compressed,
    in_blocks,
    outside_vectors,
    projected,
    summed,
    vectors_of,
)
from activecover.learners._topics import shared_topics
from activecover.parallel import one_blas_thread
from activecover.pool import Pool, Vectors

#: Positives that a row is compared with: one alone may be an odd one.
NEAREST = 3
#: How far the model of topics is shrunk, in mean variances: there is one at every label, from the second on.
SHRINKAGE = 3.0
#: And up to how many labels. From there on it is shrunk the less the more there are: the last positives are unlike the
#: others, and what sets them apart from the negatives is in directions that so strong a hand would hold down. In sparse
#: rows, where that was found; on bits it lost.
FEW_LABELS = 500
#: What the models of topics weigh together, where the other two scores weigh one each.
TOPIC_WEIGHT = 1.8


class Blend(Rocchio):
    """Ask for the row that is best by the sum of three scores, each brought to the same spread.

    A direction (:class:`Rocchio`), the mean similarity to the row's three nearest positives, and balanced
    least squares on the pool's topics at three depths (:class:`~activecover.learners._topics.Topics`; on the
    vectors themselves in dense pools). They err on different rows: the first misses positives that are unlike the others,
    the second is led astray by a single odd one, the third does not see rare words. Everything is made anew from the
    set of labels, but for the nearest positives, which do not depend on the order either.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.

    References
    ----------
    Fox, E. and Shaw, J. (1994). Combination of multiple searches. TREC-2.

    Examples
    --------
    >>> from activecover.learners import Labels
    >>> pool = Pool([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.8, 0.6]], metric="cosine")
    >>> learner = Blend(explore=[0, 1]).begin(pool)
    >>> learner.tell(Labels.of([0, 1], [0, 1], [True, False], True))
    >>> learner.propose(2).rows
    array([3, 2])
    """

    def __init__(self, explore: int | Sequence[int] = 100) -> None:
        self.explore = explore

    def _reset(self) -> None:
        super()._reset()
        self._near: _NearestPositives | None = None

    def _scores(self, rows: Rows) -> Scores:
        opinions = even(super()._scores(rows)) + even(self._nearness(rows))
        models = self._modelled(rows) if len(self._marks.negatives()) else []
        return opinions + TOPIC_WEIGHT * np.mean(models, axis=0) if models else opinions

    def _nearness(self, rows: Rows) -> Scores:
        """The mean similarity to the nearest positives."""
        positives = self._marks.positives()
        if self._near is None or not self._near.leads_to(self.pool_, positives):
            self._near = _NearestPositives(self.pool_, outside_vectors(self.pool_, self.outside_))
        self._near.add(positives)
        return self._near.means(rows)

    def _modelled(self, rows: Rows) -> list[Scores]:
        """What a linear model makes of the topics at each depth; nothing where there are too many rows for them."""
        known = np.flatnonzero(self._marks.values)
        truth = np.concatenate([self._marks.values[known] == 1, np.ones(self.outside_.shape[0], bool)])
        with one_blas_thread():
            if self.pool_.kind == "dense":
                inside, outside = vectors_of(self.pool_, known), outside_vectors(self.pool_, self.outside_)
                return [even(projected(self.pool_, rows, self._weights(inside, outside, truth)))]
            topics = shared_topics(self.pool_)
            scores: list[Scores] = []
            if topics is None:
                return scores
            for depth in topics.depths:
                inside, outside = topics.of(known, depth), topics.encode(self.pool_, self.outside_, depth)
                scores.append(even(topics.projected(rows, self._weights(inside, outside, truth))))
            return scores

    def _weights(self, inside: Numbers, outside: Numbers, truth: npt.NDArray[np.bool_]) -> Numbers:
        easing = min(1.0, FEW_LABELS / len(truth)) if self.pool_.kind == "sparse" else 1.0
        model = BalancedRidge(SHRINKAGE * easing).fit(np.concatenate([inside, outside]), truth.astype(np.int64))
        return model.weights_


class _NearestPositives:
    """For every row of a pool, how similar it is to the positives that are most similar to it."""

    def __init__(self, pool: Pool, outside: Vectors) -> None:
        self._pool, self._erasures, self._rows = pool, pool.erasures, np.arange(len(pool))
        self._squares = _squared_lengths(pool)
        self._best = np.full((NEAREST, len(pool)), -np.inf)
        self._added: set[int] = set()
        self._count = 0
        for vector in compressed(outside).toarray():
            self._take_in(vector)

    def leads_to(self, pool: Pool, positives: Rows) -> bool:
        """Whether these positives can be had by adding some."""
        same = len(self._rows) == len(pool) and self._erasures == pool.erasures
        return same and self._added <= set(positives.tolist())

    def add(self, positives: Rows) -> None:
        """Know these positives too."""
        for row in positives.tolist():
            if row not in self._added:
                self._added.add(row)
                self._take_in(summed(self._pool, np.array([row])))

    def means(self, rows: Rows) -> Scores:
        """The mean over the nearest, or over all while there are fewer."""
        return np.asarray(self._best[-min(NEAREST, self._count) :, rows].mean(axis=0))

    def _take_in(self, vector: npt.NDArray[np.float64]) -> None:
        common, square = projected(self._pool, self._rows, vector), float(vector @ vector)
        if self._pool.metric == "jaccard":
            similar = common / np.maximum(self._squares + square - common, 1.0)
        else:
            similar = common - 0.5 * (self._squares + square)
        self._best = np.sort(np.vstack([self._best, similar]), axis=0)[1:]
        self._count += 1


def even(scores: Scores) -> Scores:
    """Scores with mean 0 and spread 1, so that none outweighs another.

    Examples
    --------
    >>> even(np.array([1.0, 3.0])), even(np.array([2.0, 2.0]))
    (array([-1.,  1.]), array([0., 0.]))
    """
    spread = scores.std() if len(scores) else 0.0
    # What is left of equal scores is rounding.
    if spread <= 1e-12 * np.abs(scores).max(initial=0.0):
        return np.zeros(len(scores))
    return np.asarray((scores - scores.mean()) / spread)


def _squared_lengths(pool: Pool) -> Scores:
    parts = [vectors_of(pool, part) for part in in_blocks(pool, np.arange(len(pool)))]
    return np.concatenate([np.asarray((part * part).sum(axis=1)).ravel() for part in parts]) if parts else np.zeros(0)
