"""The commands do their job, for people and for programs."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from activecover.cli import main
from interrupts import interruptible


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    positive = random.random(80) < 0.25
    points = random.normal(size=(80, 3)) + 2.5 * positive[:, None]
    lines = ["name,x,y,z,kind,text"]
    lines += [
        f'n{row},{a:.4f},{b:.4f},{c:.4f},{"yes" if positive[row] else "no"},"text, [b]{row}[/b]"'
        for row, (a, b, c) in enumerate(points)
    ]
    (tmp_path / "pool.csv").write_text("\n".join(lines) + "\n")
    np.save(tmp_path / "points.npy", points.astype(np.float32))
    np.save(tmp_path / "labels.npy", positive)
    return tmp_path


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_learners(capsys):
    code, text, _ = run(capsys, "learners")
    assert code == 0
    lines = text.splitlines()
    assert any(line.split()[:3] == ["explore-commit", "EC", "none"] for line in lines)
    assert sum("svm" in line.split()[0] for line in lines if line.split()) == 4
    _, text, _ = run(capsys, "learners", "--json")
    assert {entry["name"] for entry in json.loads(text)} >= {"passive", "active-robust-covariance"}


def test_simulate_a_csv(capsys, folder):
    code, text, _ = run(
        capsys, "simulate", "--pool", "pool.csv", "--label-col", "kind", "--id-col", "name", "--columns", "x,y,z",
        "--learner", "EC,passive", "--learner", "O", "--batch", "1", "--runs", "3", "--explore", "10",
        "--out", "trace.parquet", "--plot", "curve.png",
    )  # fmt: skip
    assert code == 0
    table = [line.split() for line in text.splitlines()]
    assert [row[0] for row in table[2:5]] == ["explore-commit", "passive", "offline"]
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    import pyarrow.parquet as parquet

    records = parquet.read_table(folder / "trace.parquet").to_pylist()
    assert {record["run"] for record in records} == {0, 1, 2}
    assert {record["learner"] for record in records} == {"explore-commit", "passive", "offline"}
    assert records[0]["id"].startswith("n")


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_simulate_a_matrix_with_labels_of_its_own(capsys, folder, suffix):
    code, text, _ = run(
        capsys, "simulate", "--pool", "points.npy", "--labels", "labels.npy", "--explore", "10", "--json",
        "--out", f"trace.{suffix}", "--metric", "cosine", "--stratify", "--budget", "20",
    )  # fmt: skip
    assert code == 0
    assert json.loads(text)["results"][0]["learner"] == "explore-commit"
    assert len((folder / f"trace.{suffix}").read_text().splitlines()) in (20, 21)


def test_the_same_seed_gives_the_same_json(capsys, folder):
    def figures(seed):
        _, text, _ = run(capsys, "simulate", "--dataset", "letters", "--label", "Q", "--seed", seed, "--json")
        result = json.loads(text)["results"][0]
        result.pop("seconds")
        return result

    assert figures(1) == figures(1) != figures(2)


def test_demo(capsys, folder):
    code, text, _ = run(capsys, "demo", "--label", "z", "--batch", "5%")
    assert code == 0
    rows = {line.split()[0]: line.split() for line in text.splitlines()}
    assert {"explore-commit", "offline", "active-rbf-svm", "passive"} <= set(rows)
    assert (folder / "demo.png").exists()
    assert "picture: demo.png" in text


def find(folder, answers, *more):
    command = [sys.executable, "-m", "activecover", "find", "--pool", "pool.csv", "--id-col", "name", *more]
    return subprocess.run(command, cwd=folder, input=answers, capture_output=True, text=True, timeout=120)


def test_find_saves_as_it_goes_and_resumes(folder):
    options = ["--columns", "x,y,z", "--explore", "3", "--seed", "1"]
    first = find(folder, "y\nn\ns\n?\nn\nu\ny\nhello\nq\n", *options)
    assert first.returncode == 0
    assert "text, [b]" in first.stderr
    assert "3 labelled: 2 yes, 1 no, 2 set aside" in first.stdout
    second = find(folder, "n\n", *options, "--json")
    status = json.loads(second.stdout)
    assert (status["labelled"], status["positives"], status["skipped"], status["unsure"]) == (4, 2, 1, 1)
    third = find(folder, "", *options, "--export", "labels.csv")
    assert third.returncode == 0
    exported = (folder / "labels.csv").read_text().splitlines()
    assert exported[0] == "id,label"
    assert len(exported) == 5


def test_find_stops_at_its_target_and_budget(folder):
    done = find(folder, "y\n" * 80, "--columns", "x,y,z", "--target", "2")
    assert "target reached: 2 positives found" in done.stdout
    (folder / "pool.csv.labels.jsonl").unlink()
    done = find(folder, "n\n" * 80, "--columns", "x,y,z", "--budget", "5")
    assert "budget spent: 5 labels" in done.stdout


def test_find_with_contents_here_and_vectors_there(folder):
    done = find(folder, "y\nn\n", "--vectors", "points.npy", "--content-cols", "text", "--log", "my.jsonl")
    assert done.returncode == 0
    assert "text, [b]" in done.stderr
    assert (folder / "my.jsonl").exists()


def test_find_in_a_real_terminal_by_single_keys(folder):
    main_end, terminal = pty.openpty()
    command = [sys.executable, "-m", "activecover", "find", "--pool", "pool.csv", "--columns", "x,y,z"]
    process = subprocess.Popen(
        command, cwd=folder, stdin=terminal, stdout=terminal, stderr=terminal, close_fds=True, start_new_session=True
    )
    os.close(terminal)
    seen = b""

    def wait_for(text, count):
        nonlocal seen
        end = time.monotonic() + 60
        while seen.count(text) < count:
            assert time.monotonic() < end, seen.decode(errors="replace")
            if select.select([main_end], [], [], 1)[0]:
                seen += os.read(main_end, 65536)

    for turn, key in enumerate(b"ynuq"):
        wait_for(b"undo", turn + 1)
        os.write(main_end, bytes([key]))
    wait_for(b"the same command resumes", 1)
    assert process.wait(30) == 0
    os.close(main_end)
    assert b"1 labelled: 1 yes, 0 no" in seen


def test_an_interrupted_simulation_keeps_the_runs_it_finished(folder):
    command = [
        sys.executable, "-m", "activecover", "simulate", "--dataset", "letters", "--label", "A", "--runs", "500",
        "--batch", "1%", "--out", "trace.csv",
    ]  # fmt: skip
    process = interruptible(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = [process.stderr.readline() for _ in range(3)]
    assert "explore-commit 1/500" in lines[0]
    process.send_signal(signal.SIGINT)
    text, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert "explore-commit" in text
    assert (folder / "trace.csv").exists()


def test_version_and_help(capsys):
    assert run(capsys, "--version")[1].startswith("activecover ")
    code, text, _ = run(capsys, "simulate", "--help")
    assert code == 0
    assert "--label-col" in text
    assert main([]) == 2
