"""The benchmarks' own parts, at small size: what they compare with does what it says."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from activecover import Pool
from activecover.frontier import ExactFrontier
from activecover.parallel import thread_count

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from _clusters import isotropic, patches, synthetic  # noqa: E402
from _rivals import Faiss, RunningMinimum, rivals, threads_for_all, versions  # noqa: E402


def follow(points: np.ndarray, answers: list[bool]) -> list[int]:
    """The rows of the exact frontier, from row 5 on."""
    pool = Pool(points)
    frontier = ExactFrontier(pool)
    row, rows = 5, []
    for positive in [True, *answers]:
        frontier.retire([row])
        if positive:
            frontier.add([row], pool.take([row]))
        row = int(frontier.nearest(1).rows[0])
        rows.append(row)
    return rows


@pytest.mark.parametrize("make", [synthetic, isotropic])
@pytest.mark.parametrize("answers", [[True] * 30, [number % 3 == 0 for number in range(30)]])
def test_the_running_minimum_asks_in_the_exact_order(make, answers):
    points = make(2000, 16)
    expected = follow(points, answers)
    rival = RunningMinimum(points)
    asked = [rival.tell(row, positive) for row, positive in zip([5, *expected], [True, *answers], strict=False)]
    assert asked == expected


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_faiss_finds_the_nearest_neighbour_of_a_new_positive(shards):
    pytest.importorskip("faiss")
    points = isotropic(501, 8)
    distances = ((points[:, None] - points[None]) ** 2).sum(axis=-1)
    np.fill_diagonal(distances, np.inf)
    rival = Faiss(points, shards)
    assert [rival.tell(row, True) for row in range(501)] == distances.argmin(axis=1).tolist()


def test_all_have_the_same_number_of_threads(monkeypatch):
    monkeypatch.delenv("ACTIVECOVER_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with threads_for_all(2):
        assert thread_count() == 2
        assert os.environ["OMP_NUM_THREADS"] == "2"
    assert "ACTIVECOVER_THREADS" not in os.environ
    assert os.environ["OMP_NUM_THREADS"] == "3"
    names = [rival.name for rival in rivals(isotropic(100, 8), 2)]
    assert names[0].startswith("NumPy")
    assert np.__version__ in versions()


def test_patches_are_cut_from_the_pictures():
    pictures = np.arange(3 * 10 * 20, dtype=np.uint8).reshape(3, 10, 20, 1).repeat(3, axis=3)
    found = patches(pictures, 50)
    there = {
        pictures[which, top : top + 8, left : left + 16, 0].astype(np.float32).tobytes()
        for which in range(3) for top in range(3) for left in range(5)
    }  # fmt: skip
    assert found.shape == (50, 128)
    assert {row.tobytes() for row in found} <= there
    assert len({row.tobytes() for row in found}) > 20


def test_the_loops_of_the_core_ask_for_the_same_rows():
    from core import make_task, plain_loop, running_minimum

    points, positive = make_task(600, 8, 0)
    sample = np.random.default_rng(0).permutation(600)[:100]
    order = plain_loop(points.astype(np.float64), positive, sample, 25)
    assert sorted(order) == list(range(600))
    simple = running_minimum(points, positive, sample, 25)
    assert [set(order[i : i + 25]) for i in range(100, 600, 25)] == [
        set(simple[i : i + 25]) for i in range(100, 600, 25)
    ]
