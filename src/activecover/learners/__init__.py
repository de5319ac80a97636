"""What to ask next: one idea per file, found by name in one registry."""

from activecover.learners._ahead import ThinkAhead
from activecover.learners._base import Labels, Learner, Proposal, ranked
from activecover.learners._catalogue import LEARNERS, make_learner
from activecover.learners._explore import Exploration, FreeRows, stratified_sample
from activecover.learners._nearest import ExploreCommit, Offline
from activecover.learners._one_class import OneClass
from activecover.learners._yardsticks import Optimal, Passive

__all__ = [
    "LEARNERS",
    "Exploration",
    "ExploreCommit",
    "FreeRows",
    "Labels",
    "Learner",
    "Offline",
    "OneClass",
    "Optimal",
    "Passive",
    "Proposal",
    "ThinkAhead",
    "make_learner",
    "ranked",
    "stratified_sample",
]
