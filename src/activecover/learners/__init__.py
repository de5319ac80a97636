"""What to ask next: one idea per file, found by name in one registry."""

from activecover.learners._ahead import ThinkAhead
from activecover.learners._auto5 import Auto, Blend
from activecover.learners._base import Learner
from activecover.learners._catalogue import LEARNERS, default_learner, make_learner
from activecover.learners._classifier import BalancedRidge, ClassifierLearner, Linear, Logistic
from activecover.learners._contrast import Contrast, LocalContrast, local_contrast
from activecover.learners._density import DensityCommit
from activecover.learners._ens import EfficientSearch
from activecover.learners._explore import Exploration, FreeRows, check_sample, stratified_sample
from activecover.learners._labels import Labels, Negatives, Proposal, Rows, Scores, highest, ranked
from activecover.learners._mixture import Mixture
from activecover.learners._mixture_positives import NearestWhitened
from activecover.learners._nearest import ExploreCommit, Offline
from activecover.learners._one_class import OneClass
from activecover.learners._posterior import KnnPosterior
from activecover.learners._recorded import learner_from, learner_settings
from activecover.learners._rocchio import Rocchio
from activecover.learners._spaces import WhitenedSpace, whitened
from activecover.learners._spread import SpreadPosterior
from activecover.learners._spread_commit import SpreadCommit
from activecover.learners._state import NearestTo, Part, SearchState, Space
from activecover.learners._yardsticks import Optimal, Passive

__all__ = [
    "LEARNERS",
    "Auto",
    "BalancedRidge",
    "Blend",
    "ClassifierLearner",
    "Contrast",
    "DensityCommit",
    "EfficientSearch",
    "Exploration",
    "ExploreCommit",
    "FreeRows",
    "KnnPosterior",
    "Labels",
    "Learner",
    "Linear",
    "LocalContrast",
    "Logistic",
    "Mixture",
    "NearestTo",
    "NearestWhitened",
    "Negatives",
    "Offline",
    "OneClass",
    "Optimal",
    "Part",
    "Passive",
    "Proposal",
    "Rocchio",
    "Rows",
    "Scores",
    "SearchState",
    "Space",
    "SpreadCommit",
    "SpreadPosterior",
    "ThinkAhead",
    "WhitenedSpace",
    "check_sample",
    "default_learner",
    "highest",
    "learner_from",
    "learner_settings",
    "local_contrast",
    "make_learner",
    "ranked",
    "stratified_sample",
    "whitened",
]
