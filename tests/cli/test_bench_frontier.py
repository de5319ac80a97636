"""``bench frontier``: figures of every backend on a pool, and one line where something is wrong."""

import importlib.util
import json

import numpy as np
import pytest

from activecover.cli import main
from activecover.errors import InputError
from activecover.lab.grid import measure_frontiers
from activecover.pool import Pool


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    points = random.normal(size=(400, 5)).astype(np.float32)
    np.save("p.npy", points)
    lines = ["name,a,b,kind"]
    lines += [f"n{row},{x:.4f},{y:.4f},{'yes' if row % 9 == 0 else 'no'}" for row, (x, y) in enumerate(points[:, :2])]
    (tmp_path / "p.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def run(capsys, *arguments):
    code = main(["bench", "frontier", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_all_backends_that_fit(capsys, folder):
    code, text, said = run(capsys, "p.npy", "--steps", 30, "--batch", 20)
    assert code == 0
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert {"exact", "pruned", "tree"} <= set(lines)
    assert all(lines[name].rstrip().endswith("exact") for name in ("exact", "pruned", "tree"))
    assert "sparse" not in lines
    assert "p.npy: 400 rows x 5, euclidean" in text
    assert "exact: 30 of 30" in said


def test_for_programs(capsys, folder):
    if importlib.util.find_spec("faiss") is None:
        pytest.skip("FAISS is not installed: pip install 'activecover[faiss]'")
    code, text, said = run(
        capsys, "p.csv", "--id-col", "name", "--label-col", "kind", "--backends", "faiss-hnsw",
        "--steps", 25, "--metric", "cosine", "--json",
    )  # fmt: skip
    assert (code, said) == (0, "")
    told = json.loads(text)
    assert told["pool"] == {"rows": 400, "dimensions": 2, "kind": "dense", "metric": "cosine"}
    (only,) = told["backends"]
    assert (only["backend"], only["exact"], only["steps"]) == ("faiss-hnsw", False, 25)
    assert only["step_p99"] >= only["step_p50"] > 0
    assert only["memory"] >= 0
    assert only["batch_rows_per_second"] > 0
    # It is compared with an exact run, though nobody asked for that backend.
    assert isinstance(only["same_order"], bool)
    assert 0.5 < only["recall"] <= 1
    assert 0.5 < only["overlap"] <= 1


def test_pools_of_other_kinds_and_with_erased_rows(folder):
    random = np.random.default_rng(0)
    bits = Pool(random.random((60, 20)) < 0.3, metric="jaccard")
    (one,) = measure_frontiers(bits, steps=10, batch=5)
    assert (one.backend, one.same_order) == ("bits", True)
    erased = Pool(np.load("p.npy")).without([0, 7])
    (one,) = measure_frontiers(erased, ["exact"], steps=10, batch=5, positives=[1])
    assert one.same_order


def test_a_backend_that_takes_too_long_is_stopped(capsys, folder):
    code, text, said = run(capsys, "p.npy", "--backends", "exact", "--limit", "0.01")
    assert code == 0
    assert "not measured (not finished within 0.01 s)" in said
    assert text == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("missing.npy", "missing.npy"),
        ("p.npy --backends exat", "unknown frontier 'exat': did you mean 'exact'?"),
        ("p.npy --backends exact,", "an empty name"),
        ("p.npy --backends bits", "bits"),
        ("p.npy --metric far", "unknown metric 'far'"),
        ("p.npy --steps 0", "--steps"),
        ("p.npy --batch -1", "--batch"),
        ("p.npy --limit 0", "limit 0: give a number of seconds above 0"),
        ("p.npy --limit nan", "limit nan"),
        ("p.npy --positives 3,zz", "'zz'"),
        ("p.npy --positives 3,3", "twice"),
        ("p.csv --label-col kind --label maybe --id-col name", "maybe"),
        ("p.csv --label-col sort", "sort"),
    ],
)
def test_bad_input_is_one_line(capsys, folder, arguments, says):
    code, text, said = run(capsys, *arguments.split())
    assert code == 2
    assert text == ""
    assert said.splitlines()[-1].startswith("activecover: ")
    assert says in said
    assert "Traceback" not in said


def test_a_missing_extra(capsys, folder, monkeypatch):
    # The backend is built in another process: there it is hidden by a folder of that name without contents.
    (folder / "hidden").mkdir()
    (folder / "hidden" / "faiss.py").write_text("raise ModuleNotFoundError('hidden', name='faiss')\n")
    monkeypatch.setenv("PYTHONPATH", str(folder / "hidden"))
    code, _, said = run(capsys, "p.npy", "--backends", "faiss-hnsw", "--json")
    assert code == 2
    assert said == "activecover: faiss-hnsw: approximate frontiers need faiss: pip install 'activecover[faiss]'\n"
    # Where all that fit are measured it is left out, with the reason.
    monkeypatch.setattr("activecover.lab.grid._frontier.fitting", lambda pool: ["faiss-ivf"])
    code, text, _ = run(capsys, "p.npy", "--json")
    assert code == 0
    assert "pip install" in json.loads(text)["backends"][0]["reason"]


def test_there_must_be_something_to_measure():
    with pytest.raises(InputError, match="nothing to measure"):
        measure_frontiers(Pool([[1.0]]))
