"""One-class learners: rank the open rows by an outlier detector fitted to the positives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError, ModelUnavailableError
from activecover.learners._base import Learner
from activecover.learners._detectors import NO_FIT, Detector, fit, fit_each, score
from activecover.learners._labels import Negatives, Rows, Scores
from activecover.learners._state import SearchState
from activecover.parallel import one_blas_thread
from activecover.pool import Pool, blocks

Grid = Mapping[str, Sequence[Any]]


def _linear_svm() -> Detector:
    from sklearn.svm import OneClassSVM

    detector: Detector = OneClassSVM(kernel="linear")
    return detector


def _rbf_svm() -> Detector:
    from sklearn.svm import OneClassSVM

    detector: Detector = OneClassSVM(kernel="rbf")
    return detector


def _isolation_forest() -> Detector:
    from sklearn.ensemble import IsolationForest

    detector: Detector = IsolationForest()
    return detector


def _robust_covariance() -> Detector:
    from sklearn.covariance import EllipticEnvelope

    detector: Detector = EllipticEnvelope()
    return detector


_NU = [2.0**-i for i in (1, 3, 5, 7)]
#: The paper's detectors with the grids that they are tuned on. It names powers of two and no ends; these were settled
#: by trial on the sample sizes it uses.
DETECTORS: Mapping[str, tuple[Callable[[], Detector], Grid]] = {
    "linear-svm": (_linear_svm, {"nu": _NU}),
    "rbf-svm": (_rbf_svm, {"nu": _NU, "gamma": [2.0**i for i in range(-16, 3, 2)]}),
    "isolation-forest": (_isolation_forest, {"n_estimators": [2**i for i in range(4, 9)]}),
    "robust-covariance": (_robust_covariance, {"contamination": [2.0**-i for i in range(1, 7)]}),
}
#: How much is scored at a time: asking a forest costs as much for one row as for thousands.
_SCORED_BYTES = 1 << 26
#: The settings found on a pool, so that the offline and the active variant of a detector are tuned once, not twice.
_TUNED: WeakKeyDictionary[Pool, dict[Hashable, dict[str, Any]]] = WeakKeyDictionary()
_MOST_TUNED = 100


@dataclass(frozen=True, slots=True)
class _Knowledge:
    """What a fit rests on: rows of known positives, and the sample used for tuning."""

    positives: Rows
    sample_positives: Rows
    sample_negatives: Rows

    @property
    def key(self) -> tuple[bytes, bytes, bytes]:
        """The same for the same rows."""
        return self.positives.tobytes(), self.sample_positives.tobytes(), self.sample_negatives.tobytes()


def _known(state: SearchState, active: bool) -> _Knowledge:
    """Rows ascending; negatives outside the sample are not even looked at."""
    known = state.known
    positive = state.marks[known] == 1
    sampled = np.isin(known, state.labels.rows[state.labels.sampled])
    counts = positive if active else positive & sampled
    return _Knowledge(known[counts], known[positive & sampled], known[~positive & sampled])


def _with_outside(state: SearchState, rows: Rows) -> npt.NDArray[np.float64]:
    """Vectors of some positives together with those from outside."""
    return np.concatenate([state.vectors(rows), state.outside_vectors])


class OneClass(Learner):
    """Fit an outlier detector to the positives and ask for the rows it finds most like them.

    Parameters
    ----------
    detector : str or scikit-learn outlier detector
        One of :data:`DETECTORS`, or anything with ``fit``, ``predict`` and ``score_samples`` (or
        ``decision_function``).
    grid : mapping of parameter name to values, optional
        By default what :data:`DETECTORS` says, and nothing for a detector of one's own. Tuned once, by cross-validation on the explored sample: train on the training folds' positives,
        predict the held-out fold, count the share that is right; of equally good settings the first is taken.
    active : bool
        Refit on all positives found (True), or fit once on those of the sample (False).
    explore : int or sequence of int
        How many rows to label at random first, or which.
    cv : int
        The most folds of the cross-validation; there are as many stratified folds as positives, up to that.

    Notes
    -----
    Tuning is the one place where negatives are used, and only those of the sample. A fit that cannot be
    made (fewer than two positives to tune on, a covariance that cannot be had) is reported as not
    available; rows are then asked for at random.

    Examples
    --------
    >>> from sklearn.neighbors import LocalOutlierFactor
    >>> learner = OneClass(LocalOutlierFactor(n_neighbors=1, novelty=True), active=True, explore=20)
    >>> learner.negatives
    'sample'
    """

    negatives: ClassVar[Negatives] = "sample"

    def __init__(
        self,
        detector: str | Detector,
        grid: Grid | None = None,
        active: bool = True,
        explore: int | Sequence[int] = 100,
        cv: int = 5,
    ) -> None:
        self.detector = detector
        self.grid = grid
        self.active = active
        self.explore = explore
        self.cv = cv

    def prepare(self, state: SearchState) -> None:
        if isinstance(self.detector, str) and self.detector not in DETECTORS:
            raise InputError(f"unknown detector {self.detector!r}: choose among {', '.join(DETECTORS)}")
        state.pool.check_dense("a one-class learner")

    def ready(self, state: SearchState) -> bool:
        return bool(len(state.outside) or len(self._knowledge(state).positives))

    def score(self, state: SearchState, rows: Rows) -> Scores:
        known = self._knowledge(state)
        # Kept until the positives change; a row that was closed when the others were scored has no score.
        key = (known.key, state.reopened, state.pool.erasures)
        scores = state.kept_for(("one class", self), key, lambda: self._score_open(state, known))
        return scores[rows]

    def _knowledge(self, state: SearchState) -> _Knowledge:
        return state.kept(("knowledge", self), lambda: _known(state, self.active))

    def _score_open(self, state: SearchState, known: _Knowledge) -> Scores:
        """A score per open row, larger for more like the positives."""
        scores = np.full(len(state.pool), -np.inf)
        rows = state.open_rows()
        with one_blas_thread(), self._unchecked(), warnings.catch_warnings():
            # Few positives in many dimensions: scikit-learn warns at every fit, the tuning judges it.
            warnings.simplefilter("ignore")
            detector = self._build(self._best_parameters(state, known), state.seed)
            fitted = _fit(detector, _with_outside(state, known.positives))
            for block in blocks(len(rows), state.pool.dimensions * 8, _SCORED_BYTES):
                scores[rows[block]] = score(fitted, state.vectors(rows[block]))
        return scores

    def _unchecked(self) -> AbstractContextManager[None]:
        """Without scikit-learn's checks of numbers and parameters, which cost more than the fits of small forests.

        A pool has been checked, and so have the parameters of our own grids; a detector of the caller's has not.
        """
        from sklearn import config_context

        ours = isinstance(self.detector, str) and self.grid is None
        context: AbstractContextManager[None] = (
            config_context(assume_finite=True, skip_parameter_validation=True) if ours else nullcontext()
        )
        return context

    def _build(self, parameters: Mapping[str, Any], seed: int) -> Detector:
        from sklearn.base import clone

        given = DETECTORS[self.detector][0]() if isinstance(self.detector, str) else self.detector
        detector: Detector = clone(given).set_params(**parameters)
        if "random_state" in detector.get_params():
            detector.set_params(random_state=seed % 2**32)
        return detector

    @property
    def _grid(self) -> Grid:
        if self.grid is None and isinstance(self.detector, str):
            return DETECTORS[self.detector][1]
        return self.grid or {}

    def _best_parameters(self, state: SearchState, known: _Knowledge) -> dict[str, Any]:
        if not self._grid:
            return {}
        key = (known.sample_positives.tobytes(), known.sample_negatives.tobytes())
        return state.kept_for(("tuned", self), key, lambda: self._tuned_once(state, known))

    def _tuned_once(self, state: SearchState, known: _Knowledge) -> dict[str, Any]:
        """What :meth:`_tuned` finds, taken from an earlier run on the same pool, sample and seed if there was one."""
        if not isinstance(self.detector, str):
            return self._tuned(state, known)
        grid = tuple((name, tuple(values)) for name, values in self._grid.items())
        rows = (known.sample_positives.tobytes(), known.sample_negatives.tobytes(), state.outside_vectors.tobytes())
        key = (self.detector, grid, self.cv, state.seed, *rows)
        found = _TUNED.setdefault(state.pool, {})
        if key not in found:
            if len(found) >= _MOST_TUNED:
                found.clear()
            found[key] = self._tuned(state, known)
        return found[key]

    def _tuned(self, state: SearchState, known: _Knowledge) -> dict[str, Any]:
        from sklearn.model_selection import ParameterGrid

        inside = _with_outside(state, known.sample_positives)
        outside = state.vectors(known.sample_negatives)
        settings: list[dict[str, Any]] = list(ParameterGrid(dict(self._grid)))
        accuracies = self._accuracies(settings, inside, outside, state.seed)
        if accuracies.max() < 0:
            raise ModelUnavailableError("no setting of the grid could be fitted to the sample's positives")
        return settings[int(np.argmax(accuracies))]

    def _accuracies(
        self,
        settings: Sequence[Mapping[str, Any]],
        inside: npt.NDArray[np.float64],
        outside: npt.NDArray[np.float64],
        seed: int,
    ) -> npt.NDArray[np.float64]:
        """Cross-validated shares of the sample that are judged rightly; below 0 where a fold cannot be fitted."""
        from sklearn.model_selection import StratifiedKFold

        folds = min(self.cv, len(inside))
        if folds < 2:
            raise ModelUnavailableError(
                f"{len(inside)} positive(s) in the sample: tuning needs at least 2; explore more"
            )
        if len(outside) < folds:
            # Too few negatives to stratify: every fold is judged on its positives alone.
            outside = outside[:0]
        points = np.concatenate([inside, outside])
        truth = np.repeat([1, -1], [len(inside), len(outside)])
        right = np.zeros(len(settings))
        for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed % 2**32).split(points, truth):
            positives = points[train][truth[train] == 1]
            for place, fitted in enumerate(fit_each([self._build(setting, seed) for setting in settings], positives)):
                right[place] += -np.inf if fitted is None else (fitted.predict(points[test]) == truth[test]).sum()
        return right / len(points)


def _fit(detector: Detector, positives: npt.NDArray[np.float64]) -> object:
    try:
        return fit(detector, positives)
    except NO_FIT as reason:
        name = type(detector).__name__
        raise ModelUnavailableError(
            f"{name} cannot be fitted to {len(positives)} positive(s): {str(reason).splitlines()[0]}"
        ) from reason
