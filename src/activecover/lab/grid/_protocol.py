"""The paper's protocol: a stratified sample, an embedding trained on it, fixed batches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from activecover.lab.datasets import Dataset, Recipe
from activecover.lab.grid._provenance import code_hash
from activecover.lab.grid._reading import OURS, READINGS, check_reading, recipe_of
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
    """One run's common ground: every method starts from the same sample and vectors.

    All labels of a data set share it too, unless its items have attributes instead of classes.
    """

    dataset: Dataset
    recipe: Recipe
    run: int
    seed: int
    sample: npt.NDArray[np.int64]
    pool: Pool


def trial_key(dataset: Dataset, recipe: Recipe, label: str, run: int, seed: int) -> str:
    """What the vectors of a trial depend on, as a name for a cache."""
    sample = _sample(dataset, label, seed + run)
    network = {"network": recipe.network, "epochs": recipe.epochs, "scale": recipe.scale, "seed": seed + run}
    return EmbeddingCache.key(
        dataset=dataset.name, rows=len(dataset), label="" if dataset.shared else label, sample=sample,
        code=code_hash(), **network,
    )  # fmt: skip


def prepare_trial(
    dataset: Dataset, label: str, run: int, *, seed: int = 0, recipe: Recipe | None = None, cache: Path | None = None
) -> Trial:
    """Draw the sample of a run and make the vectors from it (or take them from a cache folder)."""
    recipe = recipe or recipe_of(dataset.name)
    sample = _sample(dataset, label, seed + run)

    def make() -> npt.NDArray[np.float32]:
        network = NETWORKS.build(recipe.network, epochs=recipe.epochs, scale=recipe.scale, seed=seed + run)
        network.fit(dataset.inputs[sample], dataset.targets(label)[sample])
        return network.transform(dataset.inputs)

    vectors = make() if cache is None else EmbeddingCache(cache).get(trial_key(dataset, recipe, label, run, seed), make)
    return Trial(dataset, recipe, run, seed + run, sample, Pool(vectors))


def run_trial(trial: Trial, label: str, method: str, reading: str = OURS) -> Trace:
    """Run one method with one label as the positive class; ``reading`` names the grids for tuning."""
    return simulate_one(
        trial.pool,
        trial.dataset.positive(label),
        _learner(method, trial.sample.tolist(), reading),
        batch=batch_size(trial.recipe.percent, len(trial.dataset) - SAMPLE),
        batches=trial.recipe.batches,
        seed=trial.seed,
        run=trial.run,
        name=LEARNERS[method].code or LEARNERS[method].name,
    )


def _learner(method: str, sample: list[int], reading: str) -> Learner:
    check_reading(reading)
    learner = make_learner(method, explore=sample)
    if isinstance(learner, OneClass) and learner.detector in READINGS[reading].grids:
        return learner.replace(grid=READINGS[reading].grids[learner.detector])
    return learner


def _sample(dataset: Dataset, label: str, seed: int) -> npt.NDArray[np.int64]:
    return stratified_sample(dataset.targets(label), SAMPLE, seed)
