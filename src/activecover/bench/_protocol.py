"""The paper's protocol: a stratified sample, an embedding trained on it, fixed batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.datasets import Dataset
from activecover.embed import DenseNetwork
from activecover.learners import LEARNERS, make_learner, stratified_sample
from activecover.pool import Pool
from activecover.simulate import batch_size, cover
from activecover.trace import Trace

METHODS = ("O", "EC", "O-LS", "A-LS", "O-RS", "A-RS", "O-IF", "A-IF", "O-RC", "A-RC")
SAMPLE = 100

Embed = Callable[[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], int], npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Trial:
    """One run's common ground: every method and every label starts from the same sample and vectors."""

    dataset: Dataset
    run: int
    seed: int
    sample: npt.NDArray[np.int64]
    pool: Pool


def prepare_trial(dataset: Dataset, run: int, *, seed: int = 0) -> Trial:
    """Draw the sample of a run and make the vectors from it."""
    key = seed + run
    sample = stratified_sample(dataset.labels, SAMPLE, key)
    network = DenseNetwork(seed=key).fit(dataset.inputs[sample], dataset.labels[sample])
    return Trial(dataset, run, key, sample, Pool(network.transform(dataset.inputs)))


def run_trial(trial: Trial, label: str, method: str, *, percent: str = "5%", batches: int = 20) -> Trace:
    """Run one method with one label as the positive class."""
    return cover(
        trial.pool,
        trial.dataset.positive(label),
        make_learner(method, explore=trial.sample.tolist()),
        batch=batch_size(percent, len(trial.dataset) - SAMPLE),
        batches=batches,
        seed=trial.seed,
        run=trial.run,
        name=LEARNERS[method].code,
    )
