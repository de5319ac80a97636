import numpy as np
import pytest

from activecover.errors import InputError
from activecover.lab.datasets import load_letters


def test_letters_are_as_published():
    letters = load_letters()
    assert len(letters) == 20_000
    assert letters.inputs.shape == (20_000, 16)
    assert (letters.inputs.min(), letters.inputs.max()) == (0, 15)
    assert letters.classes == [chr(c) for c in range(ord("A"), ord("Z") + 1)]
    counts = dict(zip(*np.unique(letters.labels, return_counts=True), strict=True))
    assert (counts["A"], counts["H"], counts["U"], counts["Z"]) == (789, 734, 813, 734)
    assert len(np.unique(letters.inputs, axis=0)) == 18_668


def test_an_unknown_label_is_named():
    with pytest.raises(InputError, match="letters has no label 'a'"):
        load_letters().positive("a")
