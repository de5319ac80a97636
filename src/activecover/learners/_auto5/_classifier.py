"""Any classifier as a learner: refit on all labels, ask for what it finds most likely."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import ModelUnavailableError
from activecover.learners._auto5._base import Rows
from activecover.learners._auto5._by_score import MarkedScore, Scores
from activecover.learners._products import (
    compressed,
    compressed_bits,
    in_blocks,
    outside_vectors,
    projected,
    vectors_of,
)
from activecover.parallel import one_blas_thread

#: ASReview's choice for text, which served well on other pools too.
SVM_C = 0.11
_SMALL_FIT = 1 << 20


class ClassifierLearner(MarkedScore):
    """Fit a classifier to all labels and ask for the rows it finds most like the positives.

    The classifier is fitted anew, on the rows in their order, whenever a proposal follows new labels;
    so its state is a function of the labels alone. Until a negative is known rows are asked for at
    random.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Anything with ``fit`` and ``decision_function`` or ``predict_proba``. Sparse pools are handed to
        it sparse, pools of bits as zeros and ones.
    explore : int or sequence of int
        How many rows to label at random first, or which.

    References
    ----------
    Cormack, G. and Grossman, M. (2015). Autonomy and reliability of continuous active learning.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from activecover.learners import Labels
    >>> from activecover.pool import Pool
    >>> pool = Pool([[0.0], [0.2], [9.0], [8.8], [8.0], [1.0]])
    >>> learner = ClassifierLearner(GaussianNB(), explore=[0, 1, 2, 3]).begin(pool)
    >>> learner.tell(Labels.of([0, 1, 2, 3], [0, 1, 2, 3], [True, True, False, False], True))
    >>> learner.propose(2).rows
    array([5, 4])
    """

    def __init__(self, estimator: Any, explore: int | Sequence[int] = 100) -> None:
        self.estimator = estimator
        self.explore = explore

    def _scores(self, rows: Rows) -> Scores:
        known = np.flatnonzero(self._marks.values)
        positive = self._marks.values[known] == 1
        if positive.all():
            raise ModelUnavailableError("no negative is known: a classifier needs one; rows are asked for at random")
        truth = np.concatenate([positive, np.ones(self.outside_.shape[0], bool)])
        with self._threads(len(known)), warnings.catch_warnings():
            # A fit that has not converged still ranks; there is one at every label.
            warnings.simplefilter("ignore")
            scores = self._predicted(self._fitted(self._examples(known), truth), rows)
        return np.nan_to_num(scores, nan=-np.finfo(float).max)

    def _examples(self, known: Rows) -> Any:
        """The vectors of the labelled rows, and after them those from outside."""
        inside, outside = vectors_of(self.pool_, known), outside_vectors(self.pool_, self.outside_)
        return (
            compressed(sparse.vstack([inside, outside]))
            if self.pool_.kind == "sparse"
            else np.concatenate([inside, outside])
        )

    def _predicted(self, fitted: Any, rows: Rows) -> Scores:
        parts = [vectors_of(self.pool_, part) for part in in_blocks(self.pool_, rows)]
        scores = [_score(fitted, compressed(part) if self.pool_.kind == "sparse" else part) for part in parts]
        return np.concatenate(scores) if scores else np.zeros(0)

    def _threads(self, labels: int) -> AbstractContextManager[None]:
        # For a small fit, setting the number of threads would take longer than the fit.
        return one_blas_thread() if labels * self.pool_.dimensions > _SMALL_FIT else nullcontext()

    def _fitted(self, vectors: Any, truth: npt.NDArray[np.bool_]) -> Any:
        estimator = self._unfitted()
        try:
            return estimator.fit(vectors, truth.astype(np.int64))
        except (ValueError, np.linalg.LinAlgError) as reason:
            name, line = type(estimator).__name__, str(reason).splitlines()[0]
            raise ModelUnavailableError(f"{name} cannot be fitted to {len(truth)} labels: {line}") from reason

    def _unfitted(self) -> Any:
        from sklearn.base import clone

        estimator = clone(self.estimator)
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=self.seed_ % 2**32)
        return estimator


class BalancedRidge:
    """Least squares on -1 and 1, both classes weighing the same, shrunk by some of the mean variance.

    The answer is in closed form, which is what makes a refit per label bearable on many dense rows.
    """

    def __init__(self, shrinkage: float = 0.1) -> None:
        self.shrinkage = shrinkage

    def fit(self, vectors: npt.NDArray[np.float64], truth: npt.NDArray[np.int64]) -> BalancedRidge:
        """Find the weights."""
        share = np.where(truth == 1, 0.5 / truth.sum(), 0.5 / (len(truth) - truth.sum()))
        self.middle_ = share @ vectors
        centred = vectors - self.middle_
        spread = centred.T @ (centred * share[:, None])
        spread.flat[:: len(spread) + 1] += self.shrinkage * np.trace(spread) / len(spread) + 1e-30
        self.weights_ = np.linalg.solve(spread, centred.T @ (share * np.where(truth == 1, 1.0, -1.0)))
        return self

    def decision_function(self, vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Larger for more like the positives."""
        values: npt.NDArray[np.float64] = (vectors - self.middle_) @ self.weights_
        return values


class Linear(ClassifierLearner):
    """A linear model, refit on all labels: continuous active learning.

    On sparse pools and pools of bits a linear SVM with balanced classes; on dense ones, which may have
    many labels, balanced least squares.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    """

    def __init__(self, explore: int | Sequence[int] = 100) -> None:
        self.explore = explore

    def _reset(self) -> None:
        super()._reset()
        self.estimator = self._unfitted()

    def _unfitted(self) -> Any:
        # Made rather than cloned: that would take longer than the fit.
        return BalancedRidge() if self.pool_.kind == "dense" else _svm(self.seed_ % 2**32)

    def _examples(self, known: Rows) -> Any:
        if self.pool_.kind != "bits":
            return super()._examples(known)
        outside = compressed(outside_vectors(self.pool_, self.outside_))
        return compressed(sparse.vstack([compressed_bits(self.pool_, known), outside]))

    def _fitted(self, vectors: Any, truth: npt.NDArray[np.bool_]) -> Any:
        from sklearn import config_context

        # Checking what is known to be right would take longer than the fit.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            return super()._fitted(vectors, truth)

    def _predicted(self, fitted: Any, rows: Rows) -> Scores:
        if self.pool_.kind == "dense":
            return super()._predicted(fitted, rows)
        return projected(self.pool_, rows, fitted.coef_[0]) + float(fitted.intercept_[0])


def _svm(seed: int) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(C=SVM_C, class_weight="balanced", dual=True, random_state=seed)


def _score(fitted: Any, vectors: Any) -> Scores:
    if hasattr(fitted, "decision_function"):
        return np.asarray(fitted.decision_function(vectors), np.float64).reshape(-1)
    return np.asarray(fitted.predict_proba(vectors), np.float64)[:, -1]
