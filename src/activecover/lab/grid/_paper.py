"""The published results of the paper, for comparison."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

Key = tuple[str, str, str]


@cache
def _records() -> list[dict[str, str]]:
    text = files("activecover.lab.grid").joinpath("paper_auc.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def paper_auc() -> dict[Key, float | None]:
    """AUC in percent by (data set, label, method code); None if the paper has no result.

    Examples
    --------
    >>> paper_auc()["letters", "A", "EC"]
    97.12
    """
    return {_key(row): float(row["auc_percent"]) if row["auc_percent"] else None for row in _records()}


def paper_best() -> set[Key]:
    """The results printed in bold in the paper: the best method of each task and those tied with it."""
    return {_key(row) for row in _records() if row["bold"] == "1"}


def _key(row: dict[str, str]) -> Key:
    # The paper prints CelebA's attributes with hyphens, the data set's own list has underscores.
    label = row["label"].replace("-", "_") if row["dataset"] == "celeba" else row["label"]
    return row["dataset"], label, row["method"]
