"""The commands that list, fetch and check data sets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from file_server import BODY, Server, names

from activecover.cli import main
from activecover.errors import InputError
from activecover.lab.datasets import DATASETS, Dataset, DatasetSpec, Experiment, fetch
from activecover.registry import Entry


@pytest.fixture
def own(server: Server, monkeypatch: pytest.MonkeyPatch) -> DatasetSpec:
    """A data set of two files on the loopback server."""

    def read(folder: Path, watch: Callable[[str, int, int], None] | None = None) -> Dataset:
        parts = [(folder / name).read_bytes() for name in ("a.bin", "b.bin")]
        return Dataset("own", np.frombuffer(b"".join(parts), np.uint8)[:, None], np.array(["x"] * sum(map(len, parts))))

    downloads = (server.download("a.bin", BODY), server.download("b.bin", b"bb"))
    source = DatasetSpec(
        "own", "two files", read, Experiment(), terms="free", counts={"x": 700_002}, downloads=downloads
    )
    monkeypatch.setattr(DATASETS, "_entries", dict(DATASETS._entries))
    DATASETS.add(Entry("own", lambda: source, source.summary))
    return source


def here(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, bool]:
    assert main(["data", "list", "--data-dir", str(folder), "--json"]) == 0
    return {row["name"]: row["here"] for row in json.loads(capsys.readouterr().out)}


def test_fetch_and_check(own: DatasetSpec, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Longer than the widest line of a table: what is said of it stays one line.
    folder = tmp_path / ("long" * 40)
    place = ["--data-dir", str(folder)]
    server.cut_after = 300_000
    assert main(["data", "fetch", "own", *place]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith(f"activecover: {server.url}/a.bin: cut short after 300,000 of 700,000")
    assert not here(folder, capsys)["own"]
    server.cut_after = None
    server.files.pop("/b.bin")
    assert main(["data", "fetch", "own", *place, "--json"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert names(folder / "own") == ["a.bin"]
    assert not here(folder, capsys)["own"]
    server.files["/b.bin"] = b"bb"
    assert main(["data", "fetch", "own", *place]) == 0
    assert capsys.readouterr().out == f"own: ready in {folder / 'own'}; check it with: activecover data check own\n"
    assert here(folder, capsys)["own"]
    assert main(["data", "fetch", "own@1", *place, "--json"]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == ({"name": "own", "folder": str(folder / "own")}, "")
    assert main(["data", "check", "own", *place]) == 0
    assert capsys.readouterr().out == "own: 700,002 items, 1 labels, as published\n"
    assert main(["data", "check", "own", *place, "--json"]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == ({"name": "own", "items": 700_002, "labels": {"x": 700_002}}, "")
    assert main(["data", "list", *place]) == 0
    out = capsys.readouterr().out
    assert f"data folder: {folder}\n" in out
    assert [line.split()[:2] for line in out.splitlines() if line.startswith("own")] == [["own", "yes"]]
    (folder / "own/b.bin").write_bytes(b"")
    assert main(["data", "check", "own", *place]) == 2
    assert "700,000 items of 'x' instead of the published 700,002; delete it and run" in capsys.readouterr().err


def test_the_list_of_an_empty_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = here(tmp_path / "nothing", capsys)
    assert [name for name, there in found.items() if there] == ["letters"]
    assert {"letters", "mnist", "fashion_mnist", "cifar10", "svhn", "celeba"} <= found.keys()
    assert not (tmp_path / "nothing").exists()


def test_the_list_of_files_put_there_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("celeba/img_align_celeba", "cifar10/cifar-10-batches-py", "svhn"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "svhn/train_32x32.mat").touch()
    found = here(tmp_path, capsys)
    assert (found["celeba"], found["cifar10"], found["svhn"]) == (True, True, False)


def test_faces_are_fetched_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="cannot be downloaded automatically"):
        fetch("celeba", tmp_path)
    assert main(["data", "fetch", "celeba", "--data-dir", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    for part in ("img_align_celeba.zip", "list_attr_celeba.txt", "list_eval_partition.txt", str(tmp_path / "celeba")):
        assert part in err
    assert names(tmp_path) == []


def test_the_folder_comes_from_the_environment(
    own: DatasetSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACTIVECOVER_DATA", str(tmp_path / "given"))
    assert fetch("own") == tmp_path / "given/own"
    monkeypatch.delenv("ACTIVECOVER_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert fetch("own") == tmp_path / "cache/activecover/data/own"
    assert names(tmp_path / "cache/activecover/data/own") == ["a.bin", "b.bin"]


def test_an_unknown_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("fetch", "check"):
        assert main(["data", command, "mnits", "--data-dir", str(tmp_path)]) == 2
        assert "unknown data set 'mnits': did you mean 'mnist'?" in capsys.readouterr().err
    assert names(tmp_path) == []
