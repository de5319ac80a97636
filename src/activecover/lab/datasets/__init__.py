"""The benchmark data sets: their contents, sources and file formats."""

from activecover.lab.datasets import _catalogue as _catalogue
from activecover.lab.datasets._base import (
    DATASETS,
    Dataset,
    DatasetSpec,
    Download,
    Experiment,
    data_folder,
    load_dataset,
    need,
)
from activecover.lab.datasets._fetch import fetch, fetch_files
from activecover.lab.datasets._letters import load_letters

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetSpec",
    "Download",
    "Experiment",
    "data_folder",
    "fetch",
    "fetch_files",
    "load_dataset",
    "load_letters",
    "need",
]
