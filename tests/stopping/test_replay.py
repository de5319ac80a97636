"""Finished runs against every rule: traces, logs, files, and the time it takes."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from activecover.campaign import Campaign
from activecover.errors import InputError
from activecover.pool import Pool
from activecover.stopping import Budget, Record, load_runs, replay, standard_rules, summarise
from activecover.store import Ledger
from activecover.trace import Trace, read_traces, write_traces


def trace(rows: int = 2000, positives: int = 100, asked: int | None = None, **more: object) -> Trace:
    clock = np.arange(asked or rows)
    return Trace(clock, clock < positives, clock // 10, clock < 10, rows, positives, learner="EC", **more)  # type: ignore[arg-type]


def test_every_rule_has_its_line() -> None:
    result = replay(trace(), target=0.9)
    assert [stop.rule for stop in result.stops] == [rule.name for rule in standard_rules()]
    assert (result.ideal, result.positives, result.rows) == (90, 100, 2000)
    for stop in result.stops:
        if stop.valid:
            assert stop.labels is not None
            assert stop.met
            assert stop.recall_lower is not None
            assert 0.9 <= stop.recall_lower <= stop.recall  # type: ignore[operator]
            assert stop.price == stop.labels - 90
    assert result.as_dict()["stops"][0]["rule"] == "qbcb"


def test_the_same_seed_gives_the_same_replay() -> None:
    first, second, other = (replay(trace(), target=0.9, seed=seed).stops for seed in (1, 1, 2))
    assert first == second
    assert first != other


def test_a_run_that_ended_early_is_completed() -> None:
    """The 10 positives that the run missed lie anywhere behind it."""
    result = replay(trace(positives=100, asked=90), target=0.95)
    assert result.positives == 100
    assert result.ideal is not None
    assert result.ideal > 90


def test_a_live_log_is_taken_as_it_is(tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(100, 2))
    with Campaign(Pool(points), log=tmp_path / "labels.jsonl", explore=10, seed=0) as campaign:
        for _ in range(80):
            for item in campaign.ask(1):
                campaign.tell([item.id], [int(item.id) < 30])
    ((name, run),) = load_runs(tmp_path / "labels.jsonl")
    assert name == "labels.jsonl"
    assert isinstance(run, Record)
    result = replay(run, target=0.8, rules=[Budget(50), *standard_rules(0.8)])
    stops = {stop.rule: stop for stop in result.stops}
    assert stops["budget"].labels == 50
    assert stops["qbcb"].labels is None, "there was no control sample"
    assert isinstance(run, Record)
    assert len(Ledger().asks) == 0


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_traces_survive_files(tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"runs.{suffix}"
    write_traces(path, [trace(300, 20, run=0), trace(300, 20, run=1)])
    first, second = read_traces(path, rows=300, positives=20)
    assert (first.run, second.run, first.learner, first.pool_rows, first.positives) == (0, 1, "EC", 300, 20)
    assert np.array_equal(first.positive, trace(300, 20).positive)
    assert np.array_equal(first.explored, trace(300, 20).explored)
    results = [replay(run, target=0.8) for _, run in load_runs(path)]
    lines = summarise(results)
    assert lines[0]["runs"] == 2
    assert {line["rule"] for line in lines} == {rule.name for rule in standard_rules()}


def test_bad_files(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    with pytest.raises(InputError, match="no such file"):
        load_runs(path)
    with pytest.raises(InputError, match="no such file"):
        load_runs(tmp_path / "runs.jsonl")
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"not traces written by --out \(KeyError: 'learner'\)"):
        load_runs(path)
    path.write_text("")
    with pytest.raises(InputError, match="contains no traces"):
        load_runs(path)
    write_traces(path, [trace(300, 20)])
    with pytest.raises(InputError, match="a pool of 10 rows has no row 299"):
        load_runs(path, rows=10)
    with pytest.raises(InputError, match="20 positives were found"):
        load_runs(path, positives=3)
    with pytest.raises(InputError, match="traces are written to"):
        load_runs(tmp_path / "runs.txt")


def test_time_grows_in_step_with_the_labels() -> None:
    """Ten times the labels take at most twenty times as long; quadratic would be a hundred."""
    seconds = []
    for rows in (3000, 30_000):
        run = trace(rows, rows // 20)
        started = time.process_time()
        replay(run, target=0.9)
        seconds.append(time.process_time() - started)
    assert seconds[1] <= 20 * seconds[0]
