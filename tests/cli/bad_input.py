"""Good and bad input files, and calls of the command line that must refuse them."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from activecover.cli import main

IDS = ["a", "b", "c", "d", "e", "f"]
POINTS = np.array([[0.5, 0.25], [1, 0], [0, 1], [5, 5], [6, 5], [5, 6]], np.float32)
LABELS = ["yes", "no", "yes", "no", "no", "no"]
ROWS = [f"{name},{x:g},{y:g},{label}" for name, (x, y), label in zip(IDS, POINTS, LABELS, strict=True)]


def csv_of(*rows: str, header: str = "id,x,y,label", end: str = "\n") -> bytes:
    return end.join([header, *rows, ""]).encode()


def npy_of(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npz_of(save: Callable[..., None] = np.savez, **arrays: Any) -> bytes:
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def parquet_of(**columns: Any) -> bytes:
    file = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def arrays(**changes: Any) -> dict[str, Any]:
    return {"X": POINTS, "id": np.array(IDS), "label": np.array(LABELS)} | changes


def columns(**changes: Any) -> dict[str, Any]:
    return {"id": IDS, "x": POINTS[:, 0], "y": POINTS[:, 1], "label": LABELS} | changes


CSV, NPY = csv_of(*ROWS), npy_of(POINTS)
NPZ, PARQUET = npz_of(**arrays()), parquet_of(**columns())

GOOD = {
    "p.csv": CSV,
    "p.tsv": CSV.replace(b",", b"\t"),
    "p.npy": NPY,
    "p.npz": NPZ,
    "packed.npz": npz_of(np.savez_compressed, **arrays()),
    "p.parquet": PARQUET,
    "lists.parquet": parquet_of(id=IDS, v=POINTS.tolist(), label=LABELS),
    "labels.txt": ("\n".join(LABELS) + "\n").encode(),
    "labels.npy": npy_of(np.array([1, 0, 1, 0, 0, 0])),
}
NAMED = "--id-col id --label-col label --explore 2 --batch 1"
SIMULATE = {
    **{name: f"simulate --pool {name} {NAMED}" for name in GOOD if name.split(".")[1] != "npy"},
    "p.npy": "simulate --pool p.npy --labels labels.txt --explore 2 --batch 1",
    "labels.txt": "simulate --pool p.npy --labels labels.txt --explore 2 --batch 1",
    "labels.npy": "simulate --pool p.npy --labels labels.npy --explore 2 --batch 1",
}
FIND = "find --pool p.csv --id-col id --columns x,y --log log.jsonl"


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def call(command: str | list[str], answers: str = "q\n") -> tuple[int, str]:
    """Run a command in this process; its exit code and what it said on standard error."""
    said = io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO(answers)
    try:
        with (
            contextlib.redirect_stderr(said),
            contextlib.redirect_stdout(io.StringIO()),
            warnings.catch_warnings(),
        ):
            # A warning is one more line than was promised.
            warnings.simplefilter("error")
            code = main(shlex.split(command) if isinstance(command, str) else command)
    finally:
        sys.stdin = stdin
    return code, said.getvalue()


def refused(command: str | list[str], folder: Path, answers: str = "q\n", *, valid_too: bool = False) -> str:
    """Check the promise for one command in the current folder; what it said."""
    before = snapshot(folder)
    code, said = call(command, answers)
    if valid_too and code == 0:
        return ""
    assert code == 2, said
    assert said.startswith("activecover: ")
    assert said.endswith("\n")
    assert said.count("\n") == 1
    assert "Traceback" not in said
    assert said.strip().isprintable()
    assert snapshot(folder) == before
    return said


@contextlib.contextmanager
def workplace(**files: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for path, content in files.items():
            Path(path).write_bytes(content)
        yield Path(name)


def made_log() -> bytes:
    with workplace(**GOOD) as folder:
        assert call(f"{FIND} --known a --explore 3 --seed 5", "y\nn\ns\n?\nu\nn\nq\n")[0] == 0
        return (folder / "log.jsonl").read_bytes()


@dataclass
class Case:
    what: str
    command: str
    says: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)


def of_csv(what: str, content: bytes, *says: str) -> Case:
    return Case(f"csv: {what}", SIMULATE["p.csv"], ("p.csv", *says), {"p.csv": content})


def of_npy(what: str, content: bytes, *says: str) -> Case:
    return Case(f"npy: {what}", SIMULATE["p.npy"], ("p.npy", *says), {"p.npy": content})


def of_npz(what: str, content: bytes, *says: str) -> Case:
    return Case(f"npz: {what}", SIMULATE["p.npz"], ("p.npz", *says), {"p.npz": content})


def of_parquet(what: str, content: bytes, *says: str) -> Case:
    return Case(f"parquet: {what}", SIMULATE["p.parquet"], ("p.parquet", *says), {"p.parquet": content})


def of_labels(what: str, content: bytes, *says: str) -> Case:
    return Case(f"labels: {what}", SIMULATE["labels.txt"], says, {"labels.txt": content})


def of_options(options: str, *says: str, base: str = SIMULATE["p.csv"]) -> Case:
    return Case(f"options: {options}", f"{base} {options}", says)


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def npy_headed(header: str, body: bytes = b"") -> bytes:
    text = header.encode("latin1").ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


def csv_with(row: int, text: str) -> bytes:
    rows = list(ROWS)
    rows[row] = text
    return csv_of(*rows)


GARBAGE = bytes(range(256)) * 8
NESTED = pa.array([[[1.0]]] * 6)
SPOILT = "not a finite number"
