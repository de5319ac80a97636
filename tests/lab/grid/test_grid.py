"""The grid: killed, interrupted, shared, budgeted - and the same in the end."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from activecover.cli import main
from activecover.errors import InputError
from activecover.lab.grid import Cell, Grid, Result, make_plan, run_plan
from interrupts import interruptible

LABELS = ["A", "B", "C", "D"]
METHODS = ["O", "EC", "A-LS"]


def command(out, *more):
    chosen = ["--datasets", "letters", "--labels", ",".join(LABELS), "--methods", ",".join(METHODS), "--runs", "3"]
    return [sys.executable, "-m", "activecover", "bench", "run", *chosen, "--out", str(out), *more]


def table(out, capsys):
    assert main(["bench", "table", str(out), "--format", "csv"]) == 0
    return capsys.readouterr().out


def curves(out):
    with Grid(out) as grid:
        return {result.cell: result.curve for result in grid.results()}


def finished(out):
    return len(curves(out)) if (out / "cells.sqlite").exists() else 0


def is_there(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    out = tmp_path_factory.mktemp("grid") / "whole"
    plan = make_plan(["letters"], labels=LABELS, methods=METHODS, runs=3)
    assert run_plan(plan, out, jobs=2)
    return out


@pytest.mark.parametrize("kills", [20])
def test_killed_again_and_again_the_table_is_the_same(tmp_path, uninterrupted, capsys, kills):
    out = tmp_path / "killed"
    moments = random.Random(0)
    for turn in range(kills):
        process = subprocess.Popen(
            command(out, "--jobs", "2"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        if turn % 3:
            # While it starts, or soon after.
            time.sleep(moments.uniform(0.1, 1.2))
        else:
            # In the work itself, however quick that is.
            before = finished(out)
            while finished(out) == before:
                time.sleep(0.005)
            time.sleep(moments.uniform(0.0, 0.05))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert 7 <= finished(out) < 36, "the grid was finished before the last kill: nothing was tested"
    assert subprocess.run(command(out), capture_output=True).returncode == 0
    assert curves(out) == curves(uninterrupted)
    assert table(out, capsys) == table(uninterrupted, capsys)
    assert list((out / "embeddings").glob("*.npy")) == []


def test_opening_waits_for_one_who_is_making_the_grid(tmp_path):
    # SQLite itself waits for others in all cases but this one: the journal is to be switched while someone writes.
    other = sqlite3.connect(tmp_path / "cells.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE made (first INTEGER)")
    other.execute("BEGIN IMMEDIATE")
    done = threading.Timer(0.3, other.execute, ["COMMIT"])
    done.start()
    with Grid(tmp_path) as grid:
        assert list(grid.results()) == []
    done.join()
    other.close()


def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path):
    out = tmp_path / "orphans"
    process = subprocess.Popen(command(out, "--jobs", "2"), stderr=subprocess.DEVNULL, start_new_session=True)
    while not finished(out):
        time.sleep(0.005)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60
    while is_there(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_there(process.pid)
    assert finished(out) < 36


def test_two_processes_share_a_folder_without_computing_a_cell_twice(tmp_path, uninterrupted):
    out = tmp_path / "shared"
    processes = [subprocess.Popen(command(out), stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(180) for process in processes] == [0, 0]
    assert curves(out) == curves(uninterrupted)


def test_an_interrupted_run_says_so_and_goes_on(tmp_path, uninterrupted):
    out = tmp_path / "interrupted"
    process = interruptible(command(out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (out / "cells.sqlite").exists() or not curves(out):
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finished cells are kept" in errors
    assert "Traceback" not in errors
    assert 0 < len(curves(out)) < 36
    assert main(command(out)[3:]) == 0
    assert curves(out) == curves(uninterrupted)


def test_a_budget_is_kept_and_spent_evenly(tmp_path):
    plan = make_plan(["letters"], labels=LABELS, methods=["O", "EC"], runs=1000)
    counts = [0]
    while min(counts) < 2:  # on a busy machine a budget may be spent before the first cell
        started = time.monotonic()
        assert not run_plan(plan, tmp_path, budget=6)
        assert time.monotonic() - started < 60
        with Grid(tmp_path) as grid:
            done = grid.done()
        tasks = [(label, method) for label in LABELS for method in ("O", "EC")]
        counts = [sum((cell.label, cell.method) == task for cell in done) for task in tasks]
        assert max(counts) - min(counts) <= 1


def test_a_claim_holds_while_its_worker_lives(tmp_path):
    cell = Cell("letters", "A", "O", 0)
    script = (
        "import sys, time\nfrom activecover.lab.grid import Cell, Grid\n"
        f"grid = Grid({str(tmp_path)!r}, create=True)\nprint(grid.claim(Cell('letters', 'A', 'O', 0)), flush=True)\n"
        "time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "True\n"
    with Grid(tmp_path) as grid:
        assert not grid.claim(cell)
        holder.kill()
        holder.wait()
        assert grid.claim(cell)
        grid.finish([Result(cell, (50.0, 100.0), None, 1.0, "here")])
        assert not grid.claim(cell)
        assert next(grid.results()).auc == 75.0


def test_failures_are_kept_with_their_reason(tmp_path, capsys):
    with Grid(tmp_path, create=True) as grid:
        cells = [Cell("letters", "A", method, 0) for method in ("EC", "A-RC")]
        grid.finish([Result(cells[0], (90.0, 100.0), None, 1.0, ""), Result(cells[1], None, "singular", 1.0, "")])
    assert main(["bench", "table", str(tmp_path)]) == 0
    assert "NA" in capsys.readouterr().out
    assert main(["bench", "table", str(tmp_path), "--json"]) == 0
    rows = {row["method"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["A-RC"] == {**rows["A-RC"], "auc": None, "reason": "singular", "runs": 0, "best": False}


def test_other_settings_need_another_folder(tmp_path, uninterrupted):
    with pytest.raises(InputError, match="made with seed 0, not 7"):
        run_plan(make_plan(["letters"], labels=["A"], methods=["O"], seed=7), uninterrupted)


def test_export_and_include(tmp_path, uninterrupted, capsys):
    first, second = tmp_path / "cells.csv.gz", tmp_path / "again.csv.gz"
    assert main(["bench", "export", str(uninterrupted), str(first)]) == 0
    assert main(["bench", "include", str(tmp_path / "copy"), str(first)]) == 0
    assert "36 new cells" in capsys.readouterr().out
    assert main(["bench", "include", str(tmp_path / "copy"), str(first)]) == 0
    assert "0 new cells" in capsys.readouterr().out
    assert main(["bench", "export", str(tmp_path / "copy"), str(second)]) == 0
    assert first.read_bytes() == second.read_bytes()
    assert curves(tmp_path / "copy") == curves(uninterrupted)


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv"])
def test_tables(uninterrupted, capsys, form):
    assert main(["bench", "table", str(uninterrupted), "--format", form]) == 0
    text = capsys.readouterr().out
    assert all(method in text for method in METHODS)
    if form == "csv":
        assert text.splitlines()[0] == "dataset,label,method,auc,band,runs,best"
        assert len(text.splitlines()) == 1 + len(LABELS) * len(METHODS)
        assert all(line.split(",")[5] == "3" for line in text.splitlines()[1:])
    marks = {"markdown": "**", "latex": r"\textbf{", "text": "*"}
    assert form == "csv" or marks[form] in text


def test_compare_and_plot(uninterrupted, capsys, tmp_path):
    assert main(["bench", "compare", str(uninterrupted), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["dataset"], found["tasks"], found["wins"], found["paper_wins"]) == ("letters", 4, 4, 4)
    assert found["difference"]["EC"]["mean_absolute"] < 3
    assert main(["bench", "compare", str(uninterrupted)]) == 0
    assert "letters" in capsys.readouterr().out
    picture = tmp_path / "figure.png"
    assert main(["bench", "plot", str(uninterrupted), "--out", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--datasets", "nope", "--out", "x"], "unknown data set"),
        (["run", "--labels", "AA", "--out", "x"], "letters has no label 'AA'"),
        (["run", "--methods", "XX", "--out", "x"], "unknown learner"),
        (["run", "--methods", "optimal", "--labels", "A", "--out", "x"], "optimal"),
        (["run", "--budget", "soon", "--out", "x"], "write a time such as 90s, 30m or 2h"),
        (["run", "--budget", "0h", "--out", "x"], "write a time such as 90s, 30m or 2h"),
        (["run", "--runs", "0", "--out", "x"], "runs"),
        (["run", "--jobs", "0", "--out", "x"], "jobs"),
        (["run", "--datasets", "mnist", "--data-dir", "nowhere", "--out", "x"], "missing"),
        (["table", "nowhere"], "no experiments here"),
        (["plot", "nowhere", "--out", "x.png"], "no experiments here"),
        (["include", "x", "nowhere.csv"], "no such file"),
    ],
)
def test_bad_input_is_refused_in_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *arguments]) == 2
    errors = capsys.readouterr().err
    assert len(errors.splitlines()) == 1
    assert message in errors
