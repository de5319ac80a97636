"""One-class learners: rank the open rows by an outlier detector fitted to the positives."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from activecover.errors import ModelUnavailableError
from activecover.learners._base import Labels, Learner, Negatives, Proposal, Rows, ranked
from activecover.learners._detectors import NO_FIT, fit, fit_each, score
from activecover.learners._explore import FreeRows
from activecover.parallel import one_blas_thread
from activecover.pool import blocks

Grid = Mapping[str, Sequence[Any]]
#: How much is scored at a time: asking a forest costs as much for one row as for thousands.
_SCORED_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class _Knowledge:
    """What a fit rests on: rows of known positives, and the sample used for tuning."""

    positives: Rows
    sample_positives: Rows
    sample_negatives: Rows


class OneClass(Learner):
    """Fit an outlier detector to the positives and ask for the rows it finds most like them.

    Parameters
    ----------
    detector : scikit-learn outlier detector
        Anything with ``fit``, ``predict`` and ``score_samples`` (or ``decision_function``).
    grid : mapping of parameter name to values, optional
        Tuned once, by cross-validation on the explored sample: train on the training folds' positives,
        predict the held-out fold, count the share that is right. There are as many stratified folds as
        there are positives, 5 at the most; of equally good settings the first is taken.
    active : bool
        Refit on all positives found (True), or fit once on those of the sample (False).
    explore : int or sequence of int
        How many rows to label at random first, or which.

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
    folds: ClassVar[int] = 5

    def __init__(
        self,
        detector: Any,
        grid: Grid | None = None,
        active: bool = True,
        explore: int | Sequence[int] = 100,
    ) -> None:
        self.detector = detector
        self.grid = grid
        self.active = active
        self.explore = explore

    def _reset(self) -> None:
        self.pool_.check_dense("a one-class learner")
        self._known: dict[int, tuple[bool, bool]] = {}
        self._tuned: tuple[bytes, dict[str, Any]] | None = None
        self._scored: tuple[bytes, npt.NDArray[np.float64]] | None = None
        self._positives = len(self.outside_)

    def _fold(self, labels: Labels) -> None:
        # Negatives outside the sample are not even remembered.
        use = labels.take(labels.positive | labels.sampled)
        for row, positive, sampled in zip(use.rows.tolist(), use.positive.tolist(), use.sampled.tolist(), strict=True):
            self._known[row] = (positive, sampled)
            self._positives += positive and (self.active or sampled)

    def _unfold(self, gone: Labels) -> None:
        for row in gone.rows.tolist():
            positive, sampled = self._known.pop(row, (False, False))
            self._positives -= positive and (self.active or sampled)
        # The row may have been closed, and so without a score, when the others were scored.
        self._scored = None

    def _grow(self) -> None:
        self._scored = None

    def _ready(self) -> bool:
        return self._positives > 0

    def _rank(self, k: int, free: FreeRows) -> Proposal:
        scores = self._scores()
        rows = free.all()
        order = np.argsort(-scores[rows], kind="stable")[:k]
        return ranked(rows[order])

    def _knowledge(self) -> _Knowledge:
        rows = np.array(sorted(row for row in self._known if not self.pool_.withdrawn[row]), np.int64)
        positive = np.array([self._known[row][0] for row in rows.tolist()], bool)
        sampled = np.array([self._known[row][1] for row in rows.tolist()], bool)
        counts = positive if self.active else positive & sampled
        return _Knowledge(rows[counts], rows[positive & sampled], rows[~positive & sampled])

    def _scores(self) -> npt.NDArray[np.float64]:
        """A score per row, larger for more like the positives; kept until the positives change."""
        known = self._knowledge()
        key = b"|".join(part.tobytes() for part in (known.positives, known.sample_positives, known.sample_negatives))
        if self._scored is None or self._scored[0] != key:
            with one_blas_thread(), warnings.catch_warnings():
                # Few positives in many dimensions: scikit-learn warns at every fit, the tuning judges it.
                warnings.simplefilter("ignore")
                fitted = _fit(self._build(self._best_parameters(known)), self._vectors(known.positives))
                self._scored = (key, self._score_open(fitted))
        return self._scored[1]

    def _score_open(self, fitted: Any) -> npt.NDArray[np.float64]:
        """Scores of the open rows; a closed one may have been erased and stays at minus infinity."""
        scores = np.full(len(self.pool_), -np.inf)
        rows = self._free(()).all()
        for block in blocks(len(rows), self.pool_.dimensions * 8, _SCORED_BYTES):
            part = np.asarray(self.pool_.vectors[rows[block]], np.float64)
            scores[rows[block]] = score(fitted, part)
        return scores

    def _vectors(self, rows: Rows) -> npt.NDArray[np.float64]:
        """Vectors of some positives together with those from outside."""
        inside = np.asarray(self.pool_.vectors[rows], np.float64)
        return np.concatenate([inside, self.outside_.astype(np.float64)])

    def _build(self, parameters: Mapping[str, Any]) -> Any:
        from sklearn.base import clone

        detector = clone(self.detector).set_params(**parameters)
        if "random_state" in detector.get_params():
            detector.set_params(random_state=self.seed_ % 2**32)
        return detector

    def _best_parameters(self, known: _Knowledge) -> dict[str, Any]:
        from sklearn.model_selection import ParameterGrid

        if not self.grid:
            return {}
        key = known.sample_positives.tobytes() + b"|" + known.sample_negatives.tobytes()
        if self._tuned is None or self._tuned[0] != key:
            inside = self._vectors(known.sample_positives)
            outside = np.asarray(self.pool_.vectors[known.sample_negatives], np.float64)
            settings = list(ParameterGrid(dict(self.grid)))
            accuracies = self._accuracies(settings, inside, outside)
            if accuracies.max() < 0:
                raise ModelUnavailableError("no setting of the grid could be fitted to the sample's positives")
            self._tuned = (key, settings[int(np.argmax(accuracies))])
        return self._tuned[1]

    def _accuracies(
        self, settings: Sequence[Mapping[str, Any]], inside: npt.NDArray[np.float64], outside: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Cross-validated shares of the sample that are judged rightly; below 0 where a fold cannot be fitted."""
        from sklearn.model_selection import StratifiedKFold

        folds = min(self.folds, len(inside))
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
        for train, test in StratifiedKFold(folds, shuffle=True, random_state=self.seed_ % 2**32).split(points, truth):
            positives = points[train][truth[train] == 1]
            for place, fitted in enumerate(fit_each([self._build(setting) for setting in settings], positives)):
                right[place] += -np.inf if fitted is None else (fitted.predict(points[test]) == truth[test]).sum()
        return right / len(points)


def _fit(detector: Any, positives: npt.NDArray[np.float64]) -> Any:
    try:
        return fit(detector, positives)
    except NO_FIT as reason:
        name = type(detector).__name__
        raise ModelUnavailableError(
            f"{name} cannot be fitted to {len(positives)} positive(s): {str(reason).splitlines()[0]}"
        ) from reason
