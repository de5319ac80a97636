"""Whole numbers, checked in one place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from activecover.campaign import Campaign
from activecover.errors import InputError, check_count
from activecover.pool import Pool
from activecover.simulate import batch_size, simulate

POOL = Pool(np.arange(6.0)[:, None])
POSITIVE = np.arange(6) < 2
NO_COUNT = [0, -1, 1.0, 1.5, float("nan"), True, "3", [3], np.float64(3), 2**63]


@pytest.mark.parametrize("value", [None, 1, 7, np.int32(1), 2**63 - 1])
def test_whole_numbers(value: Any) -> None:
    check_count("budget", value)
    check_count("seed", 0, 0)


@pytest.mark.parametrize("value", NO_COUNT)
def test_others(value: Any) -> None:
    with pytest.raises(InputError, match=r"^budget .*: give a whole number from 1$"):
        check_count("budget", value)


@pytest.mark.parametrize("value", NO_COUNT)
@pytest.mark.parametrize("name", ["budget", "target", "seed"])
def test_a_campaign_refuses_them(name: str, value: Any) -> None:
    if (name, value) != ("seed", 0):
        with pytest.raises(InputError, match=f"^{name} "):
            Campaign(POOL, **{name: value})


@pytest.mark.parametrize("value", NO_COUNT)
@pytest.mark.parametrize("name", ["runs", "budget", "seed"])
def test_a_simulation_refuses_them(name: str, value: Any) -> None:
    if (name, value) != ("seed", 0):
        with pytest.raises(InputError, match=f"^{name} "):
            simulate(POOL, POSITIVE, explore=2, **{name: value})


@pytest.mark.parametrize(
    "value",
    [0, -1, "0", "abc", "0%", "500%", "-5%", "nan", "nan%", "inf%", "1.5", 1.5, "%", "5%5", None, 10**30],
)
def test_no_size_of_a_batch(value: Any) -> None:
    with pytest.raises(InputError, match=r"^batch .*such as 5%$"):
        batch_size(value, 100)


@pytest.mark.parametrize(
    ("value", "rows"), [(3, 3), ("3", 3), (" 3 ", 3), ("5%", 5), ("0.1%", 1), ("100%", 100), (500, 500)]
)
def test_sizes_of_a_batch(value: Any, rows: int) -> None:
    assert batch_size(value, 100) == rows


@pytest.mark.parametrize("lease", [0, -1, 0.5, float("nan")])
def test_a_lease_is_a_second_or_more(lease: float) -> None:
    with pytest.raises(InputError, match=r"^lease "):
        Campaign(POOL, lease=lease)
