"""The paper's protocol: a stratified sample, an embedding trained on it, fixed batches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from activecover.lab.datasets import Dataset, Experiment
from activecover.lab.grid._provenance import code_hash
from activecover.lab.grid._reading import OURS, READINGS, check_reading, experiment_of
from activecover.lab.networks import NETWORKS, EmbeddingCache
from activecover.learners import LEARNERS, Learner, OneClass, make_learner, stratified_sample
from activecover.pool import Pool
from activecover.simulate import batch_size, simulate_one
from activecover.trace import Trace

#: The paper's methods by code, in the order of its tables.
METHODS = ("O", "O-LS", "A-LS", "O-RS", "A-RS", "O-IF", "A-IF", "O-RC", "A-RC", "EC")
SAMPLE = 100


@dataclass(frozen=True, slots=True)
class Trial:
    """The sample and vectors of one run, shared by all methods.

    All labels of a data set share them too, unless its items have attributes instead of classes.
    """

    dataset: Dataset
    experiment: Experiment
    run: int
    seed: int
    sample: npt.NDArray[np.int64]
    pool: Pool


def trial_key(dataset: Dataset, experiment: Experiment, label: str, run: int, seed: int) -> str:
    """A cache key for everything that the vectors of a trial depend on."""
    sample = _sample(dataset, label, seed + run)
    network = {
        "network": experiment.network,
        "epochs": experiment.epochs,
        "scale": experiment.scale,
        "seed": seed + run,
    }
    return EmbeddingCache.key(
        dataset=dataset.name, rows=len(dataset), label="" if dataset.shared else label, sample=sample,
        code=code_hash(), **network,
    )  # fmt: skip


def prepare_trial(
    dataset: Dataset,
    label: str,
    run: int,
    *,
    seed: int = 0,
    experiment: Experiment | None = None,
    cache: Path | None = None,
) -> Trial:
    """Draw the sample of a run, and compute the vectors from it or load them from a cache folder."""
    experiment = experiment or experiment_of(dataset.name)
    sample = _sample(dataset, label, seed + run)

    def make() -> npt.NDArray[np.float32]:
        network = NETWORKS.build(experiment.network, epochs=experiment.epochs, scale=experiment.scale, seed=seed + run)
        network.fit(dataset.inputs[sample], dataset.targets(label)[sample])
        return network.transform(dataset.inputs)

    vectors = (
        make() if cache is None else EmbeddingCache(cache).get(trial_key(dataset, experiment, label, run, seed), make)
    )
    return Trial(dataset, experiment, run, seed + run, sample, Pool(vectors))


def run_trial(trial: Trial, label: str, method: str, reading: str = OURS) -> Trace:
    """Run one method with one label as the positive class; ``reading`` names the grids for tuning."""
    return simulate_one(
        trial.pool,
        trial.dataset.positive(label),
        _learner(method, trial.sample.tolist(), reading),
        batch=batch_size(trial.experiment.percent, len(trial.dataset) - SAMPLE),
        batches=trial.experiment.batches,
        seed=trial.seed,
        run=trial.run,
        name=LEARNERS[method].code or LEARNERS[method].name,
    )


def _learner(method: str, sample: list[int], reading: str) -> Learner:
    check_reading(reading)
    learner = make_learner(method, explore=sample)
    if (
        isinstance(learner, OneClass)
        and isinstance(learner.detector, str)
        and learner.detector in READINGS[reading].grids
    ):
        return learner.replace(grid=READINGS[reading].grids[learner.detector])
    return learner


def _sample(dataset: Dataset, label: str, seed: int) -> npt.NDArray[np.int64]:
    return stratified_sample(dataset.targets(label), SAMPLE, seed)
