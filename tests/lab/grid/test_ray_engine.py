"""The grid on Ray workers: the same cells as in processes, whatever is interrupted or killed."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from activecover.cli import main
from activecover.errors import InputError
from activecover.lab.grid import Cell, Grid, Plan, Result, make_plan, run_plan
from interrupts import interruptible

psutil = pytest.importorskip("psutil", reason="psutil is not installed")
pytest.importorskip("ray", reason="ray is not installed: it comes with activecover[ray]")

LABELS = ["A", "B"]
METHODS = ["O", "EC"]


def curves(out):
    with Grid(out) as grid:
        return {result.cell: result.curve for result in grid.results()}


@pytest.fixture(scope="module")
def plan():
    return make_plan(["letters"], labels=LABELS, methods=METHODS, runs=2)


@pytest.fixture(scope="module")
def by_processes(plan, tmp_path_factory):
    out = tmp_path_factory.mktemp("grid") / "whole"
    assert run_plan(plan, out, jobs=2)
    return curves(out)


def workers():
    """Processes of this one's cluster that are computing cells."""
    family = psutil.Process().children(recursive=True)
    return [child.pid for child in family if child.is_running() and "Worker.compute" in " ".join(child.cmdline())]


def test_same_curves_though_a_worker_is_killed_and_a_cell_is_claimed(cluster, plan, by_processes, tmp_path):
    out = tmp_path / "ray"
    claimed = Cell("letters", "B", "EC", 0)
    killed = []

    def watch(done, total):
        if done >= 3 and not killed and (busy := workers()):
            os.kill(busy[0], signal.SIGKILL)
            killed.append(busy[0])

    with Grid(out, create=True) as other:
        assert other.claim(claimed)
        assert not run_plan(plan, out, jobs=2, engine="ray", watch=watch), (
            "a cell that another has claimed was computed"
        )
        assert killed, "no worker was at work: nothing was tested"
        assert curves(out) == {cell: curve for cell, curve in by_processes.items() if cell != claimed}
        other.finish([Result(claimed, by_processes[claimed], None, 1.0, "seed=0")])
    assert run_plan(plan, out, jobs=2, engine="ray")
    assert curves(out) == by_processes
    # The one that was claimed elsewhere kept the embedding of its run from being counted as through.
    assert len(list((out / "embeddings").glob("*.npy"))) <= 1


def command(out, *more):
    chosen = ["--datasets", "letters", "--labels", ",".join(LABELS), "--methods", ",".join(METHODS), "--runs", "2"]
    return [sys.executable, "-m", "activecover", "bench", "run", *chosen, "--out", str(out), *more]


def test_an_interrupted_run_says_so_and_goes_on(plan, by_processes, tmp_path):
    out = tmp_path / "interrupted"
    folder = tempfile.mkdtemp(prefix="acray", dir="/tmp")
    process = interruptible(
        command(out, "--engine", "ray"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RAY_TMPDIR": folder},
    )
    try:
        while process.poll() is None and not ((out / "cells.sqlite").exists() and curves(out)):
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=90)
    finally:
        process.kill()
        shutil.rmtree(folder, ignore_errors=True)
    assert process.returncode == 130, errors
    assert "finished cells are kept" in errors
    assert "Traceback" not in errors
    assert 0 < len(curves(out)) < len(by_processes)
    assert run_plan(plan, out, jobs=2), "claims of the interrupted run were left behind"
    assert curves(out) == by_processes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "rey"], "unknown engine 'rey': choose process or ray"),
        (["--address", "localhost:6379"], "use engine ray"),
        (["--engine", "ray", "--address", "127.0.0.1:9"], "Ray cluster '127.0.0.1:9': no answer"),
    ],
)
def test_bad_input_is_refused_in_one_line(tmp_path, capsys, arguments, message):
    assert main(["bench", "run", "--labels", "A", "--methods", "O", "--out", str(tmp_path), *arguments]) == 2
    errors = capsys.readouterr().err
    assert len(errors.splitlines()) == 1
    assert message in errors


def test_what_a_worker_refuses_is_said_here(cluster, tmp_path):
    missing = Plan((Cell("mnist", "0", "O", 0),), 0, tmp_path / "nowhere")
    with pytest.raises(InputError, match="mnist"):
        run_plan(missing, tmp_path / "grid", engine="ray")
