"""What a data set is: inputs and one label per item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError


@dataclass(frozen=True, slots=True)
class Dataset:
    """Inputs, all splits merged, and a label per item.

    Attributes
    ----------
    name : str
        How the data set is called.
    inputs : array of shape (n, ...)
        As in the files: unscaled.
    labels : array of str
        The class of each item.
    """

    name: str
    inputs: npt.NDArray[Any]
    labels: npt.NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> list[str]:
        """The labels there are, in order."""
        return [str(name) for name in np.unique(self.labels)]

    def positive(self, label: str) -> npt.NDArray[np.bool_]:
        """Which items have a label."""
        if label not in self.classes:
            raise InputError(f"{self.name} has no label {label!r} (labels are: {', '.join(self.classes)})")
        return np.asarray(self.labels == label)
