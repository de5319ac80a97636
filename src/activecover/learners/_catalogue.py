"""The registry of learners, with the paper's codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from activecover.learners._auto import Auto
from activecover.learners._base import Learner
from activecover.learners._blend import Blend
from activecover.learners._classifier import Linear, logistic
from activecover.learners._contrast import Contrast, LocalContrast
from activecover.learners._density import DensityCommit
from activecover.learners._ens import EfficientSearch
from activecover.learners._nearest import ExploreCommit, Offline
from activecover.learners._one_class import Grid, OneClass
from activecover.learners._posterior import KnnPosterior
from activecover.learners._rocchio import Rocchio
from activecover.learners._spread import SpreadPosterior
from activecover.learners._spread_commit import SpreadCommit
from activecover.learners._yardsticks import Optimal, Passive
from activecover.pool import Pool
from activecover.registry import Entry, Registry

LEARNERS: Registry[Learner] = Registry("learner", group="activecover.learners")

# The paper names powers of two and no ends; these were settled by trial on the sample sizes it uses.
NU: Grid = {"nu": [2.0**-i for i in (1, 3, 5, 7)]}
NU_GAMMA: Grid = {**NU, "gamma": [2.0**i for i in range(-16, 3, 2)]}
ESTIMATORS: Grid = {"n_estimators": [2**i for i in range(4, 9)]}
CONTAMINATION: Grid = {"contamination": [2.0**-i for i in range(1, 7)]}


def _linear_svm() -> Any:
    from sklearn.svm import OneClassSVM

    return OneClassSVM(kernel="linear")


def _rbf_svm() -> Any:
    from sklearn.svm import OneClassSVM

    return OneClassSVM(kernel="rbf")


def _isolation_forest() -> Any:
    from sklearn.ensemble import IsolationForest

    return IsolationForest()


def _robust_covariance() -> Any:
    from sklearn.covariance import EllipticEnvelope

    return EllipticEnvelope()


def _one_class(detector: Callable[[], Any], grid: Grid, active: bool) -> Callable[..., Learner]:
    def build(explore: int | Sequence[int] = 100) -> Learner:
        return OneClass(detector(), grid, active=active, explore=explore)

    return build


LEARNERS.add(Entry("passive", Passive, "a uniformly random order", negatives="none"))
LEARNERS.add(
    Entry("optimal", Optimal, "exactly the positives' support; a yardstick that needs the truth", negatives="none")
)
LEARNERS.add(Entry("offline", Offline, "nearest to a positive of the random sample", code="O", negatives="none"))
LEARNERS.add(
    Entry("explore-commit", ExploreCommit, "nearest to any positive found so far", code="EC", negatives="none")
)
for _name, _code, _detector, _grid, _summary in [
    ("linear-svm", "LS", _linear_svm, NU, "one-class linear SVM"),
    ("rbf-svm", "RS", _rbf_svm, NU_GAMMA, "one-class RBF SVM"),
    ("isolation-forest", "IF", _isolation_forest, ESTIMATORS, "Isolation Forest"),
    ("robust-covariance", "RC", _robust_covariance, CONTAMINATION, "Robust Covariance (elliptic envelope)"),
]:
    LEARNERS.add(
        Entry(
            f"offline-{_name}",
            _one_class(_detector, _grid, active=False),
            f"{_summary}, fitted once on the sample's positives",
            code=f"O-{_code}",
            negatives="sample",
        )
    )
    LEARNERS.add(
        Entry(
            f"active-{_name}",
            _one_class(_detector, _grid, active=True),
            f"{_summary}, refitted on all positives found",
            code=f"A-{_code}",
            negatives="sample",
        )
    )

# Past the paper. Those without negatives first.
_PAST_THE_PAPER: list[Entry[Learner]] = [
    Entry("density-commit", DensityCommit, "nearest to a positive, scaled by density", code="DC", negatives="none"),
    Entry("spread-commit", SpreadCommit, "positives spread over the graph", code="SC", negatives="none"),
    Entry("contrast", Contrast, "nearer to a positive than to a negative", code="CT", negatives="all"),
    Entry("local-contrast", LocalContrast, "the same among a row's neighbours", code="LC", negatives="all"),
    Entry("knn-posterior", KnnPosterior, "share of positives among labelled neighbours", code="KP", negatives="all"),
    Entry("spread-posterior", SpreadPosterior, "labels spread over the graph", "SP", version=4, negatives="all"),
    Entry("rocchio", Rocchio, "towards the positives' mean, away from the negatives'", code="RO", negatives="all"),
    Entry("linear", Linear, "a linear model, refit on all labels", code="LM", negatives="all"),
    Entry("blend", Blend, "a mean, the nearest positives and topics, added up", code="BL", version=2, negatives="all"),
    Entry("logistic", logistic, "logistic regression, refit on all labels", code="LR", negatives="all"),
    Entry("ens", EfficientSearch, "efficient nonmyopic search; small pools", code="ENS", negatives="all"),
    Entry("auto", Auto, "a portfolio: rules share the questions by their yield", "AU", version=5, negatives="all"),
    Entry(
        "auto-positives",
        partial(Auto, positives_only=True),
        "the portfolio of rules that learn from positives alone",
        code="AP",
        version=3,
        negatives="none",
    ),
]
for _entry in _PAST_THE_PAPER:
    LEARNERS.add(_entry)


#: The most rows of a pool on which the portfolio answers while a person reads the item before.
MOST_FOR_AUTO = 50_000


def default_learner(pool: Pool, *, forgets: bool = False) -> str:
    """The learner that decides where nobody has chosen one.

    The portfolio, where it can do its work: it needs negatives, all vectors at hand, and a pool that is small enough to
    rank anew while a person reads. Elsewhere the paper's, which needs none of that.

    Examples
    --------
    >>> from activecover.pool import Pool
    >>> pool = Pool([[0.0], [1.0]])
    >>> default_learner(pool), default_learner(pool, forgets=True)
    ('auto', 'explore-commit')
    """
    at_hand = pool.kind in ("dense", "sparse", "bits") and len(pool) <= MOST_FOR_AUTO
    return "auto" if at_hand and not forgets else "explore-commit"


def make_learner(name: str | Learner, **parameters: Any) -> Learner:
    """Build a learner by name or code; a learner is handed back as it is.

    Examples
    --------
    >>> make_learner("EC", explore=50)
    ExploreCommit(explore=50, frontier='auto')
    """
    if isinstance(name, Learner):
        return name
    return LEARNERS.build(name, **parameters)
