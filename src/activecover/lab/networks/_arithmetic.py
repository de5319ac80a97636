"""Arithmetic that gives the same bits on every machine.

A BLAS chooses its kernels by processor, and they sum in different orders. The last bits matter here: a single
comparison can change a whole tree of an isolation forest that is trained on the vectors. Additions, multiplications,
divisions and square roots are rounded the same way everywhere, so a fixed order of summation and an exponential built
from these operations are enough.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from activecover.compiling import compiled

_Doubles = npt.NDArray[np.float64]

Floats = TypeVar("Floats", bound=npt.NDArray[np.floating[Any]])

#: ln 2 in two parts; the first has so few digits that its multiples are exact.
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440054690583e-4
_TERMS = 14


def product(left: Floats, right: Floats) -> Floats:
    """The matrix product of two arrays of the same type, with every sum taken in order."""
    total = np.zeros((len(left), right.shape[1]), left.dtype)
    _add_products(np.ascontiguousarray(left), np.ascontiguousarray(right), total)
    return total  # type: ignore[return-value]


def exponential(powers: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    """The exponential function to about fifteen digits, for arguments that do not overflow."""
    exponent = np.maximum(np.asarray(powers, np.float64), -700.0)
    doublings = np.rint(exponent / (_LN2_HIGH + _LN2_LOW))
    rest = exponent - doublings * _LN2_HIGH - doublings * _LN2_LOW
    series = np.ones_like(rest)
    for term in range(_TERMS, 0, -1):
        series = 1.0 + series * rest / term
    return np.ldexp(series, doublings.astype(np.int32))


@compiled()
def _add_products(left: _Doubles, right: _Doubles, total: _Doubles) -> None:
    # Columns are independent, so the compiler may process several at a time; it neither reorders sums nor fuses a
    # multiplication with an addition.
    for i in range(left.shape[0]):
        for k in range(left.shape[1]):
            factor = left[i, k]
            for j in range(right.shape[1]):
                total[i, j] += factor * right[k, j]
