"""Any classifier as a learner: refit on all labels, ask for what it finds most likely."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.errors import ModelUnavailableError
from activecover.learners._base import Learner
from activecover.learners._labels import Flags, Negatives, Rows, Scores
from activecover.learners._products import Numbers, Values, compressed, compressed_bits, in_blocks
from activecover.learners._state import SearchState
from activecover.parallel import one_blas_thread

_SMALL_FIT = 1 << 20


class Classifier(Protocol):
    """What scikit-learn's classifiers have; ``decision_function`` or ``predict_proba`` scores."""

    def fit(self, vectors: Values, truth: npt.NDArray[np.int64]) -> Self:
        """Learn from rows and what they are, 0 or 1."""


class LinearClassifier(Classifier, Protocol):
    """A classifier by the side of a plane."""

    coef_: Numbers
    intercept_: Numbers


C = TypeVar("C", bound=Classifier)


class ClassifierLearner(Learner):
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

    negatives: ClassVar[Negatives] = "all"

    def __init__(self, estimator: Classifier, explore: int | Sequence[int] = 100) -> None:
        self.estimator = estimator
        self.explore = explore

    def score(self, state: SearchState, rows: Rows) -> Scores:
        return classified(state, rows, _seeded(self.estimator, state.seed))


class Logistic(Learner):
    """Logistic regression with balanced classes, refit on all labels.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    C, max_iter
        As in :class:`sklearn.linear_model.LogisticRegression`.
    """

    negatives: ClassVar[Negatives] = "all"

    def __init__(self, explore: int | Sequence[int] = 100, C: float = 1.0, max_iter: int = 200) -> None:
        self.explore = explore
        self.C = C
        self.max_iter = max_iter

    def score(self, state: SearchState, rows: Rows) -> Scores:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(class_weight="balanced", C=self.C, max_iter=self.max_iter)
        return classified(state, rows, model.set_params(random_state=state.seed % 2**32))


class Linear(Learner):
    """A linear model, refit on all labels: continuous active learning.

    On sparse pools and pools of bits a linear SVM with balanced classes; on dense ones, which may have
    many labels, balanced least squares.

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    C : float
        Of the SVM; by default ASReview's choice for text, which served well on other pools too.
    shrinkage : float
        Of the least squares, in mean variances.
    """

    negatives: ClassVar[Negatives] = "all"

    def __init__(self, explore: int | Sequence[int] = 100, C: float = 0.11, shrinkage: float = 0.1) -> None:
        self.explore = explore
        self.C = C
        self.shrinkage = shrinkage

    def score(self, state: SearchState, rows: Rows) -> Scores:
        from sklearn import config_context

        if state.pool.kind == "dense":
            return classified(state, rows, BalancedRidge(self.shrinkage))
        # Checking what is known to be right would take longer than the fit.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            svm = fitted(state, linear_svm(self.C, state.seed), compressed_examples(state))
        return state.projected(rows, svm.coef_[0]) + float(svm.intercept_[0])


class BalancedRidge:
    """Least squares on -1 and 1, both classes weighing the same, shrunk by some of the mean variance.

    The answer is in closed form, which is what makes a refit per label bearable on many dense rows.
    """

    def __init__(self, shrinkage: float = 0.1) -> None:
        self.shrinkage = shrinkage

    def fit(self, vectors: Numbers, truth: npt.NDArray[np.int64]) -> Self:
        """Find the weights."""
        share = np.where(truth == 1, 0.5 / truth.sum(), 0.5 / (len(truth) - truth.sum()))
        self.middle_ = share @ vectors
        centred = vectors - self.middle_
        spread = centred.T @ (centred * share[:, None])
        spread.flat[:: len(spread) + 1] += self.shrinkage * np.trace(spread) / len(spread) + 1e-30
        self.weights_ = np.linalg.solve(spread, centred.T @ (share * np.where(truth == 1, 1.0, -1.0)))
        return self

    def decision_function(self, vectors: Numbers) -> Numbers:
        """Larger for more like the positives."""
        values: Numbers = (vectors - self.middle_) @ self.weights_
        return values


def classified(state: SearchState, rows: Rows, estimator: Classifier) -> Scores:
    """Scores of rows by a classifier that has not been fitted yet; it is fitted to all labels here."""
    with _threads(len(state.known) * state.pool.dimensions):
        model = fitted(state, estimator, examples(state))
        parts = [state.vectors(part) for part in in_blocks(state.pool, rows)]
        scores = [_score(model, compressed(part) if state.pool.kind == "sparse" else part) for part in parts]
    return np.concatenate(scores) if scores else np.zeros(0)


def fitted(state: SearchState, estimator: C, vectors: Values) -> C:
    """A classifier fitted to the vectors of all known rows and of the positives from outside."""
    truth: Flags = state.truth
    if not len(state.negatives):
        raise ModelUnavailableError("no negative is known: a classifier needs one; rows are asked for at random")
    with warnings.catch_warnings():
        # A fit that has not converged still ranks; there is one at every label.
        warnings.simplefilter("ignore")
        try:
            return estimator.fit(vectors, truth.astype(np.int64))
        except (ValueError, np.linalg.LinAlgError) as reason:
            name, line = type(estimator).__name__, str(reason).splitlines()[0]
            raise ModelUnavailableError(f"{name} cannot be fitted to {len(truth)} labels: {line}") from reason


def examples(state: SearchState) -> Values:
    """The vectors of the known rows, and after them those from outside."""
    inside, outside = state.vectors(state.known), state.outside_vectors
    if state.pool.kind == "sparse":
        return compressed(sparse.vstack([inside, outside]))
    return np.concatenate([inside, outside])


def compressed_examples(state: SearchState) -> Values:
    """The same of a pool of bits in compressed rows: fingerprints are mostly zeros."""
    if state.pool.kind != "bits":
        return examples(state)
    inside = compressed_bits(state.pool, state.known)
    return compressed(sparse.vstack([inside, compressed(state.outside_vectors)]))


def linear_svm(C: float, seed: int) -> LinearClassifier:
    """A linear SVM with balanced classes."""
    from sklearn.svm import LinearSVC

    svm: LinearClassifier = LinearSVC(C=C, class_weight="balanced", dual=True, random_state=seed % 2**32)
    return svm


def _seeded(estimator: Classifier, seed: int) -> Classifier:
    from sklearn.base import clone

    copy = clone(estimator)
    seeded: Classifier = copy.set_params(random_state=seed % 2**32) if "random_state" in copy.get_params() else copy
    return seeded


def _threads(numbers: int) -> AbstractContextManager[None]:
    # For a small fit, setting the number of threads would take longer than the fit.
    return one_blas_thread() if numbers > _SMALL_FIT else nullcontext()


def _score(model: Classifier, vectors: Values) -> Scores:
    decides = hasattr(model, "decision_function")
    values = np.asarray(getattr(model, "decision_function" if decides else "predict_proba")(vectors), np.float64)
    return values.reshape(-1) if decides else values[:, -1]
