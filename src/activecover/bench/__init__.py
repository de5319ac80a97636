"""The paper's experiments."""

from activecover.bench._paper import paper_auc
from activecover.bench._protocol import METHODS, Trial, prepare_trial, run_trial

__all__ = ["METHODS", "Trial", "paper_auc", "prepare_trial", "run_trial"]
