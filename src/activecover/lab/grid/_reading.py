"""Readings of what the paper leaves open: the ends of the grids for tuning, and the scale of the inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from activecover.errors import InputError
from activecover.lab.datasets import DATASETS, Experiment

Grid = Mapping[str, Sequence[float]]
OURS = "ours"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reading changes: the grids of some detectors, and by what the inputs of some data sets are multiplied."""

    grids: Mapping[str, Grid] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)


_NU = tuple(2.0**i for i in range(-10, 1))
#: "paper" is the one that comes closest to the paper's figures of its one-class methods (docs/results-notes.md).
READINGS: Mapping[str, Reading] = {
    OURS: Reading(),
    "paper": Reading(
        grids={
            "linear-svm": {"nu": _NU},
            "rbf-svm": {"nu": _NU, "gamma": tuple(2.0**i for i in range(-6, 5))},
            "isolation-forest": {"n_estimators": tuple(2**i for i in range(9))},
        },
        scales={"letters": 1 / 15},
    ),
}


def check_reading(reading: str) -> None:
    """Refuse a reading that is unknown."""
    if reading not in READINGS:
        raise InputError(f"unknown reading {reading!r}: choose {' or '.join(READINGS)}")


def experiment_of(dataset: str, reading: str = OURS) -> Experiment:
    """How the experiments use a data set under a reading."""
    experiment = DATASETS.build(dataset).experiment
    return replace(experiment, scale=READINGS[reading].scales.get(dataset, experiment.scale))
