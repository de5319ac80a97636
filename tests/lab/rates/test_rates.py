"""The rates laboratory, at reduced sizes (``make deep`` goes to a million rows)."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from activecover.cli import main
from activecover.errors import InputError
from activecover.lab.rates import (
    DISTRIBUTIONS,
    RateCell,
    RatePlan,
    adjusted,
    explore_curve,
    fit,
    measure,
    measure_one,
    read_cells,
)
from activecover.learners import ExploreCommit, Offline, Passive
from activecover.metrics import excess_query_cost
from activecover.planning import probability_all_hit
from activecover.pool import Pool
from activecover.simulate import simulate_one


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_laboratory_counts_what_a_simulation_counts(dimension):
    law = DISTRIBUTIONS.build("cube", dimensions=dimension)
    points, positive, inside = law.sample(600, np.random.default_rng([0, dimension, 600, 3]))
    for name, learner in (("passive", Passive), ("offline", Offline), ("explore-commit", ExploreCommit)):
        cell = measure_one("cube", dimension, 600, name, 3, seed=0)
        trace = simulate_one(Pool(points), positive, learner(explore=cell.sample), batch=1, seed=3)
        assert cell.excess == excess_query_cost(trace, optimal=int(inside.sum()))


def made(learner, dimension, n, excess, run):
    return RateCell("cube", dimension, n, learner, run, 0, 1, excess + 1000, 1000, 0.0)


def test_a_known_exponent_is_found_again():
    noise = np.random.default_rng(0)
    cells = []
    for n in (1000, 10_000, 100_000):
        for run in range(20):
            log = np.log(n)
            cells.append(made("explore-commit", 2, n, int(1 + 30 * n**0.5 * log**0.5 * noise.uniform(0.9, 1.1)), run))
            cells.append(made("offline", 2, n, int(30 * n ** (2 / 3) * log ** (1 / 3)), run))
            cells.append(made("passive", 2, n, int(0.4 * n), run))
    found = {one.learner: one for one in fit(cells)}
    assert found["explore-commit"].exponent == pytest.approx(0.5, abs=0.02)
    assert found["explore-commit"].low < 0.5 < found["explore-commit"].high
    assert found["offline"].exponent == pytest.approx(2 / 3, abs=0.01)
    assert found["passive"].exponent == pytest.approx(1, abs=0.001)
    assert [found[name].theory for name in ("explore-commit", "offline", "passive")] == [0.5, 2 / 3, 1.0]


def test_rates_at_reduced_sizes():
    cells = measure(RatePlan((1, 2), (1000, 3162, 10_000), 12))
    found = {(one.learner, one.dimension): one for one in fit(cells)}
    for dimension in (1, 2):
        assert found["passive", dimension].exponent == pytest.approx(1, abs=0.05)
        assert found["offline", dimension].exponent == pytest.approx(dimension / (dimension + 1), abs=0.2)
        for n in (3162, 10_000):
            mean = {
                name: np.mean([c.excess for c in cells if (c.learner, c.dimension, c.n) == (name, dimension, n)])
                for name in ("passive", "offline", "explore-commit")
            }
            assert mean["explore-commit"] < mean["offline"] < mean["passive"]
    assert found["explore-commit", 2].exponent < 0.5 + 0.15
    line = [adjusted(c) for c in cells if (c.learner, c.dimension) == ("explore-commit", 1)]
    assert np.mean(line[-12:]) < 2 * np.mean(line[:12])


def test_an_interrupted_measurement_goes_on(tmp_path):
    plan, path = RatePlan((1,), (200, 400), 3), tmp_path / "rates.csv"

    def stop(done, total):
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(plan, path, stop)
    assert len(read_cells(path)) == 7
    torn = path.read_text()
    path.write_text(torn + "cube,1,400,off")
    whole = measure(plan, path)
    fresh = measure(plan)
    assert [(c.key, c.cost, c.optimal) for c in whole] == [(c.key, c.cost, c.optimal) for c in fresh]
    with pytest.raises(InputError, match="seed 0, not 5"):
        measure(RatePlan((1,), (200,), 1, seed=5), path)


def test_measured_hits_agree_with_the_exact_probability():
    law = DISTRIBUTIONS.build("components", share=0.1)
    for size, hit in explore_curve(law, [100, 400, 900], runs=4000):
        assert hit == pytest.approx(probability_all_hit(0.1, list(law.weights), size), abs=0.04)


def test_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    common = ["--n", "300,600", "--runs", "2"]
    assert main(["theory", "rates", "--dims", "1,2", *common, "--plot", "rates.png", "--out", "rates.csv"]) == 0
    text = capsys.readouterr().out
    assert "explore-commit" in text
    assert "proved" in text
    assert (tmp_path / "rates.png").read_bytes().startswith(b"\x89PNG")
    assert main(["theory", "rates", "--dims", "1,2", *common, "--out", "rates.csv", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["fits"]) == 6
    assert main(["theory", "intrinsic", *common]) == 0
    assert "manifold" in capsys.readouterr().out
    assert main(["theory", "explore", "--runs", "50", "--plot", "hits.png"]) == 0
    assert "Lemma 1" in capsys.readouterr().out
    assert main(["theory", "distributions"]) == 0
    assert "spike" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rates", "--dims", "x"], "whole numbers"),
        (["rates", "--dims", "0"], "dimensions"),
        (["rates", "--n", "10..5"], "invalid sizes"),
        (["rates", "--n", "3"], "at least 10 points"),
        (["rates", "--n", "100", "--distribution", "cubee"], "did you mean 'cube'"),
        (["rates", "--n", "100", "--out", "x.txt"], ".csv"),
        (["rates", "--n", "100", "--plot", "x.txt"], "pictures"),
        (["explore", "--prevalence", "0"], "between 0 and 1"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["theory", *arguments]) == 2
    errors = capsys.readouterr().err
    assert len(errors.splitlines()) == 1
    assert message in errors


RESULTS = Path(__file__).parents[3] / "results"


def test_the_committed_measurements_show_the_rates():
    """Up to a million rows, 20 pools per size: what ``make deep`` measured, held to what is proved."""
    cells = read_cells(RESULTS / "theory-rates.csv")
    assert {cell.n for cell in cells} >= {1000, 10_000, 100_000, 1_000_000}
    found = {(one.learner, one.dimension): one for one in fit(cells)}
    for d in (1, 2, 3):
        assert found["passive", d].exponent == pytest.approx(1.0, abs=0.03)
        assert found["offline", d].exponent == pytest.approx(d / (d + 1), abs=0.06)
    for d in (2, 3):
        assert found["explore-commit", d].exponent <= (d - 1) / d + 0.06
    assert found["explore-commit", 1].growth < 2
    excess = defaultdict(list)
    for cell in cells:
        excess[cell.learner, cell.dimension, cell.n].append(cell.excess)
    assert all(len(values) == 20 for values in excess.values())
    for (learner, d, n), values in excess.items():
        if learner == "explore-commit" and n >= 10_000:
            assert np.mean(values) < np.mean(excess["offline", d, n])


def test_a_few_committed_measurements_can_be_made_again():
    cells = [cell for cell in read_cells(RESULTS / "theory-rates.csv") if cell.n == 1000 and cell.run < 3]
    for cell in cells:
        again = measure_one(*cell.key, seed=cell.seed)
        assert (again.cost, again.optimal, again.sample) == (cell.cost, cell.optimal, cell.sample)


def test_the_sheet_has_the_rate_of_two_dimensions():
    found = {one.learner: one for one in fit(read_cells(RESULTS / "theory-intrinsic.csv"))}
    assert found["explore-commit"].exponent <= 0.5 + 0.06
    assert found["offline"].exponent == pytest.approx(2 / 3, abs=0.06)
