"""The models of the mixture: each is fitted to labels and scores any rows of the pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from activecover.learners._classifier import linear_svm
from activecover.learners._kernels import Gaussian, Kernel, cosine, fit_kernel_machine, tanimoto
from activecover.learners._labels import Flags, Rows, Scores
from activecover.learners._products import Values, compressed, compressed_bits, outside_vectors, vectors_of
from activecover.learners._spaces import whitened
from activecover.learners._state import SearchState
from activecover.parallel import one_blas_thread
from activecover.pool import Pool, Vectors, blocks

_BLOCK_BYTES = 1 << 24
_LITTLE_WORK = 1 << 20
#: Topics that texts are compared by: few, so that rare words do not count twice.
TOPICS = 30
#: From so many columns on, vectors are taken for an embedding, of which only directions say anything.
MANY_COLUMNS = 32


@dataclass(frozen=True, slots=True)
class Examples:
    """What models are fitted to: rows and what they are, and positives from outside the pool."""

    rows: Rows
    truth: Flags
    #: As the pool encodes them.
    outside: Vectors


class Fitted(Protocol):
    """A model that has been fitted."""

    def scores(self, vectors: Values) -> Scores:
        """Larger for more like the positives."""


@dataclass(frozen=True, slots=True)
class View:
    """The rows of a pool as some model reads them: by number, and those from outside."""

    take: Callable[[Rows], Values]
    encode: Callable[[Vectors], Values]

    def examples(self, examples: Examples) -> tuple[Values, Flags]:
        """The vectors of all examples, and which are positive."""
        outside = self.encode(examples.outside)
        truth = np.concatenate([examples.truth, np.ones(outside.shape[0], bool)])
        return _stacked(self.take(examples.rows), outside), truth

    def positives(self, examples: Examples) -> Values:
        """The vectors of the positives alone."""
        return _stacked(self.take(examples.rows[examples.truth]), self.encode(examples.outside))

    def score(self, model: Fitted, rows: Rows, width: int) -> Scores:
        """Scores of some rows, in blocks that fit into memory."""
        with _threads(len(rows) * width):
            parts = [model.scores(self.take(rows[block])) for block in blocks(len(rows), 8 * width, _BLOCK_BYTES)]
        return np.concatenate(parts) if parts else np.zeros(0)


class Model(Protocol):
    """One member of the mixture."""

    def __call__(self, examples: Examples) -> Callable[[Rows], Scores]:
        """Fit to examples; what comes back scores rows."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The mean similarity to the few positives that are most similar."""

    view: View
    kernel: Kernel
    count: int

    def __call__(self, examples: Examples) -> Callable[[Rows], Scores]:
        positives = self.view.positives(examples)
        return lambda rows: self.view.score(_NearestTo(positives, self.kernel, self.count), rows, positives.shape[0])


@dataclass(frozen=True, slots=True)
class _NearestTo:
    positives: Values
    kernel: Kernel
    count: int

    def scores(self, vectors: Values) -> Scores:
        similar = self.kernel(vectors, self.positives)
        if similar.shape[1] > self.count:
            similar = np.partition(similar, similar.shape[1] - self.count, axis=1)[:, -self.count :]
        return np.asarray(similar.mean(axis=1))


@dataclass(frozen=True, slots=True)
class Contrast:
    """How much nearer the nearest positive is than the nearest negative; for rows of length one."""

    view: View

    def __call__(self, examples: Examples) -> Callable[[Rows], Scores]:
        vectors, truth = self.view.examples(examples)
        model = _Contrast(vectors[truth], vectors[~truth])
        return lambda rows: self.view.score(model, rows, len(vectors))


@dataclass(frozen=True, slots=True)
class _Contrast:
    positives: npt.NDArray[np.float64]
    negatives: npt.NDArray[np.float64]

    def scores(self, vectors: Values) -> Scores:
        near, far = (
            np.sqrt(np.maximum(2.0 - 2.0 * cosine(vectors, known).max(axis=1), 0.0))
            for known in (self.positives, self.negatives)
        )
        return np.asarray(-near / np.maximum(near + far, 1e-12))


@dataclass(frozen=True, slots=True)
class Machine:
    """A kernel machine."""

    view: View
    kernel: Kernel
    C: float

    def __call__(self, examples: Examples) -> Callable[[Rows], Scores]:
        with _threads(len(examples.rows) ** 2):
            machine = fit_kernel_machine(self.kernel, *self.view.examples(examples), self.C)
        return lambda rows: self.view.score(machine, rows, len(machine.weights))


@dataclass(frozen=True, slots=True)
class LinearMachine:
    """A linear support vector machine."""

    view: View
    C: float
    seed: int

    def __call__(self, examples: Examples) -> Callable[[Rows], Scores]:
        from sklearn import config_context

        vectors, truth = self.view.examples(examples)
        # Checking what is known to be right would take longer than the fit.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            found = linear_svm(self.C, self.seed).fit(vectors, truth.astype(np.int64))
        machine = _Direction(np.asarray(found.coef_[0], np.float64))
        return lambda rows: self.view.score(machine, rows, len(machine.weights) if vectors.ndim == 2 else 1)


@dataclass(frozen=True, slots=True)
class _Direction:
    weights: npt.NDArray[np.float64]

    def scores(self, vectors: Values) -> Scores:
        return np.asarray(vectors @ self.weights, np.float64)


@dataclass(frozen=True, slots=True)
class Trees:
    """Extremely randomised trees: they see columns one by one, and do not mind their scale."""

    view: View
    n_estimators: int
    seed: int

    def __call__(self, examples: Examples) -> Callable[[Rows], Scores]:
        from sklearn.ensemble import ExtraTreesClassifier

        vectors, truth = self.view.examples(examples)
        trees = ExtraTreesClassifier(self.n_estimators, class_weight="balanced", random_state=self.seed % 2**32)
        forest = _Forest(trees.fit(vectors, truth))
        return lambda rows: self.view.score(forest, rows, vectors.shape[1])


@dataclass(frozen=True, slots=True)
class _Forest:
    trees: Any

    def scores(self, vectors: Values) -> Scores:
        if not vectors.shape[0]:
            return np.zeros(0)
        return np.asarray(self.trees.predict_proba(vectors)[:, -1], np.float64)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The parameters that models take from the learner."""

    C: float
    C_rbf: float
    n_estimators: int
    n_neighbors: int


def models_for(state: SearchState, sizes: Sizes) -> Mapping[str, Model]:
    """The members of the mixture for a kind of pool, by name."""
    make = {"sparse": _for_words, "bits": _for_bits}.get(state.pool.kind, _for_columns)
    return make(state, sizes)


def nearest_for(pool: Pool) -> tuple[View, Kernel]:
    """The space in which positives alone are compared."""
    if pool.kind == "dense":
        return _whitened(pool), cosine
    return (_bits(pool), tanimoto) if pool.kind == "bits" else (_words(pool), cosine)


def _for_words(state: SearchState, sizes: Sizes) -> Mapping[str, Model]:
    words = _words(state.pool)
    models: dict[str, Model] = {
        "words": LinearMachine(words, sizes.C, state.seed),
        "nearest": Nearest(words, cosine, sizes.n_neighbors),
    }
    topics = state.topics
    if topics is not None:
        depth = min(TOPICS, topics.depths[-1])
        view = View(lambda rows: topics.of(rows, depth), lambda outside: topics.encode(state.pool, outside, depth))
        models["topics"] = LinearMachine(view, sizes.C, state.seed)
    return models


def _for_bits(state: SearchState, sizes: Sizes) -> Mapping[str, Model]:
    bits = _bits(state.pool)
    return {
        "trees": Trees(bits, sizes.n_estimators, state.seed),
        "machine": Machine(bits, tanimoto, sizes.C_rbf),
        "nearest": Nearest(bits, tanimoto, sizes.n_neighbors),
    }


def _for_columns(state: SearchState, sizes: Sizes) -> Mapping[str, Model]:
    pool = state.pool
    middle, spread = state.of_pool("columns' spread", lambda: _spread(pool))
    plain = View(lambda rows: vectors_of(pool, rows), lambda outside: np.asarray(outside, np.float64))
    even = View(
        lambda rows: (vectors_of(pool, rows) - middle) / spread,
        lambda outside: (np.asarray(outside, np.float64) - middle) / spread,
    )
    white = _whitened(pool)
    few = pool.dimensions < MANY_COLUMNS
    return {
        "trees": Trees(plain, sizes.n_estimators, state.seed),
        "machine": Machine(even if few else white, Gaussian(1.0 / pool.dimensions if few else 2.0), sizes.C_rbf),
        "contrast": Contrast(white),
        "nearest": Nearest(white, cosine, 1),
    }


def _words(pool: Pool) -> View:
    return View(lambda rows: compressed(vectors_of(pool, rows)), compressed)


def _bits(pool: Pool) -> View:
    return View(
        lambda rows: compressed_bits(pool, rows),
        lambda outside: compressed(outside_vectors(pool, outside)),
    )


def _whitened(pool: Pool) -> View:
    space = whitened(pool)
    return View(
        lambda rows: vectors_of(space.pool, rows) + space.pool.origin,
        lambda outside: np.asarray(space.encode(outside), np.float64) + space.pool.origin,
    )


def _spread(pool: Pool) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    rows = np.flatnonzero(~pool.withdrawn)
    total, squares = np.zeros(pool.dimensions), np.zeros(pool.dimensions)
    for block in blocks(len(rows), 8 * pool.dimensions):
        part = vectors_of(pool, rows[block])
        total += part.sum(axis=0)
        squares += (part**2).sum(axis=0)
    middle = total / max(1, len(rows))
    spread = np.sqrt(np.maximum(squares / max(1, len(rows)) - middle**2, 0.0))
    return middle, np.where(spread > 0, spread, 1.0)


def _threads(numbers: int) -> AbstractContextManager[None]:
    # For little work, setting the number of threads would take longer than the work.
    return one_blas_thread() if numbers > _LITTLE_WORK else nullcontext()


def _stacked(inside: Values, outside: Values) -> Values:
    if not outside.shape[0]:
        return inside
    if hasattr(inside, "tocsr"):
        from scipy import sparse

        return compressed(sparse.vstack([inside, outside]))
    return np.concatenate([inside, outside])
