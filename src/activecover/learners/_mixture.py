"""One mixture of a few strong models, weighted by how early each would have found the positives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.learners._base import Learner
from activecover.learners._calibration import Calibration, fit_calibration
from activecover.learners._explore import FreeRows
from activecover.learners._history import History
from activecover.learners._labels import Negatives, Proposal, Rows, Scores, ranked
from activecover.learners._models import Model, Sizes, models_for
from activecover.learners._question import question_vector
from activecover.learners._state import SearchState
from activecover.pool import Vectors, sparse_vectors

Numbers = npt.NDArray[np.float64]

#: While no positive is known, one question in so many is drawn at random rather than chosen by the question in words.
CHANCE_EVERY = 4


class Mixture(Learner):
    """Ask for the row that a mixture of models holds most likely to be positive.

    Every model ranks the open rows, and is read as a distribution over them: the next positive is at rank r with a
    probability in proportion to 1 / (offset + r). A row's score is the mean of the logarithms, weighted. The weights
    are learnt from each positive that turns up: a model gains by the probability that it gave to that row (Hedge,
    with full information: every model is judged by every positive, whoever proposed it), and a fixed share is dealt
    out anew so that a model that was wrong early can return.

    ========  ==============================================================================================
    pool      models
    ========  ==============================================================================================
    sparse    linear SVM on words, linear SVM on topics, nearest positives
    dense     extremely randomised trees, RBF SVM on standardised columns (of embeddings: in the whitened space);
              in the whitened space the nearest positive, and how much nearer it is than the nearest negative
    bits      extremely randomised trees, SVM with the Tanimoto kernel, nearest positives
    ========  ==============================================================================================

    Models are refitted whenever the labels have grown by ``growth``, at counts that depend on nothing else, so that the
    same labels always give the same order. Where few negatives are known, random open rows are presumed negative.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which. None are needed where a positive is known, or a question.
    question : str, optional
        What is looked for, in words; for pools of words. It counts as one more positive, and so for less and less.
    growth : float
        By what share labels grow until models are refitted.
    rate, share : float
        How much a positive changes the weights; what share of them is dealt out anew with it.
    offset : float
        How many rows at the top of a ranking count nearly the same.
    C, C_rbf : float
        Of the linear and of the other support vector machines.
    n_estimators : int
        Trees of a forest.
    n_neighbors : int
        Nearest positives that count, of texts and bits.
    max_fit : int
        Most negatives that models are fitted to.

    References
    ----------
    Herbster, M. and Warmuth, M. (1998). Tracking the best expert. Machine Learning.
    Cormack, G. and Grossman, M. (2015). Autonomy and reliability of continuous active learning.

    Examples
    --------
    >>> from activecover.learners import Labels
    >>> from activecover.pool import Pool
    >>> points = np.random.default_rng(0).normal(size=(200, 3))
    >>> learner = Mixture().begin(Pool(points))
    >>> learner.tell(Labels.of([0, 1], [0, 1], [True, False], sampled=True))
    >>> len(learner.propose(5))
    5
    """

    negatives: ClassVar[Negatives] = "all"

    def __init__(
        self,
        explore: int | Sequence[int] = 0,
        question: str | None = None,
        growth: float = 0.05,
        rate: float = 0.2,
        share: float = 0.1,
        offset: float = 1.0,
        C: float = 0.11,
        C_rbf: float = 10.0,
        n_estimators: int = 60,
        n_neighbors: int = 3,
        max_fit: int = 2_000,
    ) -> None:
        self.explore = explore
        self.question = question
        self.growth = growth
        self.rate = rate
        self.share = share
        self.offset = offset
        self.C = C
        self.C_rbf = C_rbf
        self.n_estimators = n_estimators
        self.n_neighbors = n_neighbors
        self.max_fit = max_fit

    def prepare(self, state: SearchState) -> None:
        if self.question is not None:
            question_vector(state.pool, self.question)
        self.models(state)

    def ready(self, state: SearchState) -> bool:
        return state.has_positives or self.question is not None

    def score(self, state: SearchState, rows: Rows) -> Scores:
        return self._now(state)[rows]

    def rank(self, state: SearchState, k: int, free: FreeRows) -> Proposal:
        proposal = super().rank(state, k, free)
        return proposal if state.has_positives else self._shared_with_chance(state, proposal, free)

    def probabilities(self, state: SearchState, rows: Rows) -> Numbers:
        """How likely each of some open rows is positive, by what such scores have meant lately."""
        return self._calibration(state).of(self._now(state)[rows])

    def expected_positives(self, state: SearchState) -> float:
        """How many positives the open rows can be expected to hold, by the same."""
        return float(self.probabilities(state, state.open_rows()).sum())

    def weights(self, state: SearchState) -> Mapping[str, float]:
        """What each model counts for now."""
        found = self._history(state).now(state.labels)
        return dict(zip(self.models(state), found.weights.tolist(), strict=True))

    def _calibration(self, state: SearchState) -> Calibration:
        found = self._history(state).now(state.labels)
        return state.kept(
            ("calibration", repr(self)), lambda: fit_calibration(np.array(found.scores), np.array(found.truth, bool))
        )

    def _now(self, state: SearchState) -> Scores:
        """A score per row; of closed ones it means nothing."""
        return state.kept(("mixture", repr(self)), lambda: self._history(state).scores(state.labels))

    def _history(self, state: SearchState) -> History:
        return state.of_pool(("history", repr(self)), lambda: History(self, state))

    def models(self, state: SearchState) -> Mapping[str, Model]:
        """The members of the mixture, by name."""
        sizes = Sizes(self.C, self.C_rbf, self.n_estimators, self.n_neighbors)
        return state.of_pool(("models", repr(self)), lambda: models_for(state, sizes))

    def outside(self, state: SearchState) -> Vectors:
        """Encoded positives from outside the pool, the question among them."""
        if self.question is None:
            return state.outside
        vector = question_vector(state.pool, self.question)
        if not state.outside.shape[0]:
            return vector
        return sparse.csr_array(sparse.vstack([sparse_vectors(state.outside), sparse_vectors(vector)]))

    def _shared_with_chance(self, state: SearchState, proposal: Proposal, free: FreeRows) -> Proposal:
        """The question in words has not paid yet: every so many asks are drawn at random."""
        asked = len(state.labels)
        lots = iter(self.exploration_.on(len(proposal) + free.count, free).tolist())
        chosen = iter(proposal.rows.tolist())
        rows: dict[int, None] = {}
        while len(rows) < len(proposal):
            by_chance = (asked + len(rows)) % CHANCE_EVERY == CHANCE_EVERY - 1
            rows[next(row for row in (lots if by_chance else chosen) if row not in rows)] = None
        return ranked(list(rows))
