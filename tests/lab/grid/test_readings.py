"""Readings of the paper: their grids, what the cells say of them, and a machine that has nothing inside."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import OneClassSVM, _libsvm

from activecover.cli import main
from activecover.errors import InputError
from activecover.lab.grid import READINGS, Cell, Grid, Result, make_plan, run_plan
from activecover.learners import OneClass
from activecover.learners._detectors import fit, fit_each, score
from activecover.pool import Pool
from activecover.simulate import simulate_one

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_machine_with_nu_1_is_that_of_libsvm(kernel):
    points = np.random.default_rng(0).exponential(size=(30, 5))
    # What scikit-learn made of it before it refused: an infinite threshold, so that all decision values are equal.
    parts = _libsvm.fit(points, np.ones(30), svm_type=2, kernel=kernel, nu=1.0, gamma=0.1)
    assert np.isneginf(parts[4]).all()
    fitted = fit(OneClassSVM(kernel=kernel, nu=1.0), points)
    assert set(fitted.predict(points)) == {-1}
    assert np.ptp(score(fitted, points)) == 0
    (tried,) = fit_each([OneClassSVM(kernel=kernel, nu=1.0)], points)
    assert set(tried.predict(points)) == {-1}


def test_nu_1_is_chosen_where_nothing_is_better_than_calling_all_rows_outliers():
    random = np.random.default_rng(0)
    points = random.normal(size=(400, 4)) + 10
    truth = np.arange(400) < 40
    points[truth] *= 0.5  # nearer to the origin than the rest, so a linear machine looks the wrong way
    sample = [*range(10), *range(40, 130)]

    def order(nu: list[float]) -> list[int]:
        learner = OneClass("linear-svm", {"nu": nu}, explore=sample)
        return simulate_one(Pool(points), truth, learner, batch=100, batches=1).rows[len(sample) :].tolist()

    # All rows tie, and ties are asked for in the order of rows.
    assert order([0.5, 1.0]) == [*range(10, 40), *range(130, 200)]
    assert order([0.5]) != order([0.5, 1.0])


def test_a_reading_is_recorded_and_kept_apart(tmp_path, capsys):
    arguments = ["bench", "run", "--labels", "A", "--methods", "O-LS", "--out", str(tmp_path / "paper")]
    assert main([*arguments, "--reading", "paper"]) == 0
    with Grid(tmp_path / "paper") as grid:
        (theirs,) = grid.results()
    assert "reading=paper" in theirs.made_with.split()
    assert main(arguments) == 2
    assert "made with reading paper, not ours" in capsys.readouterr().err
    assert main(["bench", "verify", str(tmp_path / "paper"), "--sample", "1"]) == 0
    run_plan(make_plan(["letters"], labels=["A"], methods=["O-LS"]), tmp_path / "ours")
    with Grid(tmp_path / "ours") as grid:
        (ours,) = grid.results()
        assert "reading" not in ours.made_with
        grid.export(tmp_path / "ours.csv")
    assert ours.curve != theirs.curve
    assert main(["bench", "include", str(tmp_path / "paper"), str(tmp_path / "ours.csv")]) == 2
    assert main([*arguments[:-1], str(tmp_path / "new"), "--reading", "yours"]) == 2
    assert "choose ours or paper" in capsys.readouterr().err


def test_a_grid_from_before_there_were_readings_has_ours(tmp_path):
    with Grid(tmp_path, create=True) as grid:
        grid.finish([Result(Cell("letters", "A", "O", 0), (50.0,), None, 1.0, "seed=0")])
        with pytest.raises(InputError, match="made with reading ours, not paper"):
            grid.check_reading("paper")


def test_the_grids_are_powers_of_two():
    for grids in READINGS["paper"].grids.values():
        for values in grids.values():
            assert all(float(np.log2(value)).is_integer() for value in values)


def test_cells_are_renewed(tmp_path):
    from renew import renew, resume

    def cell(run: int, value: float, made: str = "seed=0") -> Result:
        return Result(Cell("letters", "A", "O", run), (value,), None, 1.0, made)

    file = tmp_path / "cells.csv.gz"
    with Grid(tmp_path / "old", create=True) as old, Grid(tmp_path / "new", create=True) as new:
        old.finish([cell(0, 10.0), cell(1, 20.0), cell(2, 30.0)])
        new.finish([cell(1, 21.0), cell(2, 30.0), cell(3, 40.0, "seed=0 code=1")])
        old.export(file)
    assert "4 cells, 3 of them from" in (said := renew(tmp_path / "new", file))
    assert "1 new, 1 as they were, 1 changed" in said
    with Grid(tmp_path / "all", create=True) as grid:
        grid.include(file)
        assert [one.curve for one in grid.results()] == [(10.0,), (21.0,), (30.0,), (40.0,)]
    # Only what records its code is taken up again.
    assert "1 new cells of the 1 in" in resume(tmp_path / "next", file)
    with Grid(tmp_path / "next") as grid:
        assert [one.cell.run for one in grid.results()] == [3]
