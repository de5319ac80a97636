"""The registry of learners, with the paper's codes."""

from __future__ import annotations

from functools import partial
from typing import Any

from activecover.learners._auto5 import Auto, Blend
from activecover.learners._base import Learner
from activecover.learners._classifier import Linear, Logistic
from activecover.learners._contrast import Contrast, LocalContrast
from activecover.learners._density import DensityCommit
from activecover.learners._ens import EfficientSearch
from activecover.learners._mixture import Mixture
from activecover.learners._mixture_positives import NearestWhitened
from activecover.learners._nearest import ExploreCommit, Offline
from activecover.learners._one_class import OneClass
from activecover.learners._posterior import KnnPosterior
from activecover.learners._rocchio import Rocchio
from activecover.learners._spread import SpreadPosterior
from activecover.learners._spread_commit import SpreadCommit
from activecover.learners._yardsticks import Optimal, Passive
from activecover.pool import Pool
from activecover.registry import Registry

LEARNERS: Registry[Learner] = Registry("learner", group="activecover.learners")

for _name, _learner, _summary, _code in [
    ("passive", Passive, "a uniformly random order", ""),
    ("optimal", Optimal, "exactly the positives' support; a yardstick that needs the truth", ""),
    ("offline", Offline, "nearest to a positive of the random sample", "O"),
    ("explore-commit", ExploreCommit, "nearest to any positive found so far", "EC"),
]:
    LEARNERS.register(_name, _summary, code=_code)(_learner)
for _name, _code, _summary in [
    ("linear-svm", "LS", "one-class linear SVM"),
    ("rbf-svm", "RS", "one-class RBF SVM"),
    ("isolation-forest", "IF", "Isolation Forest"),
    ("robust-covariance", "RC", "Robust Covariance (elliptic envelope)"),
]:
    LEARNERS.register(f"offline-{_name}", f"{_summary}, fitted once on the sample's positives", code=f"O-{_code}")(
        partial(OneClass, detector=_name, active=False)
    )
    LEARNERS.register(f"active-{_name}", f"{_summary}, refitted on all positives found", code=f"A-{_code}")(
        partial(OneClass, detector=_name, active=True)
    )
# Past the paper. Those without negatives first.
for _name, _learner, _summary, _code, _version in [
    ("density-commit", DensityCommit, "nearest to a positive, scaled by density", "DC", 1),
    ("spread-commit", SpreadCommit, "positives spread over the graph", "SC", 1),
    ("contrast", Contrast, "nearer to a positive than to a negative", "CT", 1),
    ("local-contrast", LocalContrast, "the same among a row's neighbours", "LC", 1),
    ("knn-posterior", KnnPosterior, "share of positives among labelled neighbours", "KP", 1),
    ("spread-posterior", SpreadPosterior, "labels spread over the graph", "SP", 4),
    ("rocchio", Rocchio, "towards the positives' mean, away from the negatives'", "RO", 1),
    ("linear", Linear, "a linear model, refit on all labels", "LM", 1),
    ("blend", Blend, "a mean, the nearest positives and topics, added up", "BL", 2),
    ("logistic", Logistic, "logistic regression, refit on all labels", "LR", 1),
    ("nearest-whitened", NearestWhitened, "nearest to any positive, in the better of two spaces", "NW", 1),
    ("mixture", Mixture, "models weighted by how early they would have found the positives", "MX", 1),
    ("ens", EfficientSearch, "efficient nonmyopic search; small pools", "ENS", 1),
]:
    LEARNERS.register(_name, _summary, code=_code, version=_version)(_learner)
LEARNERS.register(
    "auto", "a portfolio: learners share the questions by their yield", code="AU", version=5, negatives="all"
)(partial(Auto, positives_only=False))
LEARNERS.register(
    "auto-positives",
    "the portfolio of those that learn from positives alone",
    code="AP",
    version=3,
    negatives="none",
)(partial(Auto, positives_only=True))


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
