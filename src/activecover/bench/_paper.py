"""The figures that the paper published, to compare with."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files


@cache
def paper_auc() -> dict[tuple[str, str, str], float | None]:
    """AUC in percent by (data set, label, method code); None where the paper has no result.

    Examples
    --------
    >>> paper_auc()["letters", "A", "EC"]
    97.12
    """
    text = files("activecover.bench").joinpath("paper_auc.csv").read_text(encoding="utf-8")
    return {
        (row["dataset"], row["label"], row["method"]): float(row["auc_percent"]) if row["auc_percent"] else None
        for row in csv.DictReader(text.splitlines())
    }
