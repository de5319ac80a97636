"""Bad input: one clear line, exit code 2, nothing lost and nothing half-written."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import shlex
import subprocess
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
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

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


@pytest.fixture(scope="session")
def log() -> bytes:
    return made_log()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, content in GOOD.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


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

FILES = [
    of_csv("empty", b"", "empty"),
    of_csv("one newline", b"\n", "empty"),
    of_csv("header only", csv_of(), "no rows"),
    of_csv("header without newline", b"id,x,y,label", "no rows"),
    of_csv("no id column", csv_of(*ROWS, header="name,x,y,label"), "no column 'id'", "name, x, y, label"),
    of_csv("no label column", csv_of(*ROWS, header="id,x,y,class"), "no column 'label'"),
    of_csv("column twice", csv_of(*ROWS, header="id,x,x,label"), "'x' appears twice"),
    of_csv("short row", csv_with(2, "c,0,1"), "line 4", "3 values for 4 columns"),
    of_csv("long row", csv_with(2, "c,0,1,yes,more"), "line 4", "5 values for 4 columns"),
    of_csv("nan", csv_with(2, "c,nan,1,yes"), "line 4", "'x'", SPOILT, "drop the row"),
    of_csv("inf", csv_with(2, "c,0,-inf,yes"), "line 4", "'y'", SPOILT),
    of_csv("overflow", csv_with(2, "c,0,1e999,yes"), "line 4", "'y'", SPOILT),
    of_csv("huge", csv_with(2, "c,0,1e300,yes"), "'y'", "1e+300", "rescale"),
    of_csv("empty value", csv_with(2, "c,,1,yes"), "line 4", "'x'", "empty"),
    of_csv("blank value", csv_with(2, "c,  ,1,yes"), "line 4", "'x'", "empty"),
    of_csv("text in a numeric column", csv_with(2, "c,north,1,yes"), "line 4", "'x'", "'north'"),
    of_csv("hexadecimal", csv_with(2, "c,0x10,1,yes"), "line 4", "'0x10'"),
    of_csv("underscore", csv_with(2, "c,1_0,1,yes"), "line 4", "'1_0'"),
    of_csv("decimal comma", csv_with(2, 'c,"0,5",1,yes'), "line 4", "'0,5'"),
    of_csv("no numeric column", csv_of("a,p,q,yes", "b,r,s,no"), "no numeric columns"),
    of_csv("same id twice", csv_with(2, "a,0,1,yes"), "'a' appears twice"),
    of_csv("empty id", csv_with(2, ",0,1,yes"), "row 2", "id ''"),
    of_csv("NUL in an id", csv_with(2, "c\0,0,1,yes"), "row 2", r"'c\x00'"),
    of_csv("NUL in a number", csv_with(2, "c,0\0,1,yes"), "line 4", r"'0\x00'"),
    of_csv("NULs only", bytes(4096)),
    of_csv("UTF-16", CSV.decode().encode("utf-16"), "UTF-8"),
    of_csv("UTF-16 without a mark", CSV.decode().encode("utf-16-le"), "no column 'id'"),
    of_csv("UTF-32", CSV.decode().encode("utf-32"), "UTF-8"),
    of_csv("Latin-1", CSV.replace(b"c,", b"\xe9,"), "UTF-8"),
    of_csv("binary garbage", GARBAGE, "UTF-8"),
    of_csv("a Parquet file", PARQUET),
    of_csv("open quote", csv_with(2, '"c,0,1,yes'), "quotes"),
    of_csv("text after a quote", csv_with(2, '"c"x,0,1,yes'), "line 4", "quotes"),
    of_csv("endless field", csv_with(2, "c" * 200_000 + ",0,1,yes"), "line 4", "field"),
    of_csv(
        "no label is positive",
        CSV.replace(b"yes", b"no"),
    ),
    of_csv("label neither yes nor no", csv_with(2, "c,0,1,perhaps")),
    of_csv("empty label", csv_with(2, "c,0,1,")),
    of_npy("empty", b"", "numpy.save"),
    of_npy("binary garbage", GARBAGE, "numpy.save"),
    of_npy("a pickle", pickle.dumps(POINTS), "numpy.save"),
    of_npy("an npz", NPZ, "numpy.save"),
    of_npy("magic only", NPY[:6]),
    of_npy("half a header", NPY[:60]),
    of_npy("no data", NPY[:128]),
    of_npy("half the data", NPY[:-20]),
    of_npy("objects", npy_of(POINTS.astype(object)), "Python objects"),
    of_npy("no dimension", npy_of(np.float32(1)), "0 dimension"),
    of_npy("one dimension", npy_of(POINTS[:, 0]), "1 dimension"),
    of_npy("three dimensions", npy_of(POINTS[:, :, None]), "3 dimension"),
    of_npy("complex", npy_of(POINTS.astype(np.complex64)), "complex64", "float32"),
    of_npy("text", npy_of(POINTS.astype(str)), "not real numbers"),
    of_npy("dates", npy_of(POINTS.astype("datetime64[s]")), "not real numbers"),
    of_npy("records", npy_of(np.zeros((6, 2), [("x", "f4")])), "not real numbers"),
    of_npy("no rows", npy_of(POINTS[:0])),
    of_npy("no columns", npy_of(POINTS[:, :0])),
    of_npy("nan", npy_of(np.where(POINTS == 6, np.nan, POINTS)), "row 4, column 0", SPOILT),
    of_npy("inf", npy_of(np.where(POINTS == 6, np.inf, POINTS)), "row 4, column 0", SPOILT),
    of_npy("huge", npy_of(np.where(POINTS == 6, 1e300, POINTS.astype(float))), "row 4, column 0", "rescale"),
    of_npy("huge integers", npy_of(np.full((6, 2), 2**62)), "row 0, column 0", "rescale"),
    of_npy("beyond float64", npy_of(np.full((6, 2), np.longdouble("1e400"))), "row 0, column 0"),
    of_npy("endless shape", npy_headed("{'descr': '<f4', 'fortran_order': False, 'shape': (10**30, 2)}")),
    of_npy("wide shape", npy_headed(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({2**62}, 2)}}")),
    of_npy("negative shape", npy_headed("{'descr': '<f4', 'fortran_order': False, 'shape': (-6, 2)}", bytes(48))),
    of_npy("odd type", npy_headed("{'descr': 'f4,,', 'fortran_order': False, 'shape': (6, 2)}", bytes(48))),
    of_npy("no type", npy_headed("{'descr': None, 'fortran_order': False, 'shape': (6, 2)}", bytes(48))),
    of_npy("header no dictionary", npy_headed("[1, 2]", bytes(48))),
    of_npy("header no Python", npy_headed("{'descr':", bytes(48))),
    of_npy("unknown version", b"\x93NUMPY\x09\x00" + NPY[8:]),
    of_npz("empty", b"", "numpy.savez"),
    of_npz("binary garbage", GARBAGE, "numpy.savez"),
    of_npz("an npy", NPY, "numpy.savez"),
    of_npz("PK and garbage", b"PK" + GARBAGE),
    of_npz("truncated", NPZ[: len(NPZ) // 2]),
    of_npz("no directory", NPZ[:-22]),
    of_npz("other members", zipped(X=b"text", id=b"text", label=b"text")),
    of_npz("garbage members", zipped(**{"X.npy": GARBAGE, "id.npy": GARBAGE, "label.npy": GARBAGE})),
    of_npz("no members", zipped()),
    of_npz("no ids", npz_of(X=POINTS, label=np.array(LABELS)), "no array 'id'"),
    of_npz("no table", npz_of(x=POINTS[:, 0], id=np.array(IDS), label=np.array(LABELS)), "no array has two"),
    of_npz("two tables", npz_of(a=POINTS, b=POINTS, id=np.array(IDS), label=np.array(LABELS)), "several arrays"),
    of_npz("X of one dimension", npz_of(**arrays(X=POINTS[:, 0])), "1 dimension"),
    of_npz("X of objects", npz_of(**arrays(X=POINTS.astype(object)))),
    of_npz("X complex", npz_of(**arrays(X=POINTS * 1j)), "not real numbers"),
    of_npz("ids of objects", npz_of(**arrays(id=np.array(IDS, object)))),
    of_npz("ids in a table", npz_of(**arrays(id=np.array([IDS]))), "'id'", "2 dimensions"),
    of_npz("one id", npz_of(**arrays(id=np.array("a"))), "'id'", "0 dimensions"),
    of_npz("too few ids", npz_of(**arrays(id=np.array(IDS[:5]))), "5 ids for 6 rows"),
    of_npz("too many labels", npz_of(**arrays(label=np.array([*LABELS, "no"]))), "7 labels for 6 rows"),
    of_npz("surrogate in an id", npz_of(**arrays(id=np.array([*IDS[:5], "\ud800"]))), "row 5"),
    of_npz("nan", npz_of(**arrays(X=np.where(POINTS == 6, np.nan, POINTS))), "row 4, column 0", SPOILT),
    of_parquet("empty", b""),
    of_parquet("binary garbage", GARBAGE),
    of_parquet("magic only", b"PAR1PAR1"),
    of_parquet("truncated", PARQUET[:-10]),
    of_parquet("no beginning", PARQUET[100:]),
    of_parquet(
        "no rows",
        parquet_of(id=pa.array([], "string"), x=pa.array([], "float32"), label=pa.array([], "string")),
    ),
    of_parquet("no id column", parquet_of(name=IDS, x=POINTS[:, 0], label=LABELS), "no column 'id'"),
    of_parquet("null", parquet_of(**columns(x=[0.0, None, 1.0, 2.0, 3.0, 4.0])), "row 1, column 'x'", "empty"),
    of_parquet("all null", parquet_of(**columns(x=pa.nulls(6, "float32"))), "row 0, column 'x'", "empty"),
    of_parquet("nan", parquet_of(**columns(x=[0.0, np.nan, 1.0, 2.0, 3.0, 4.0])), "row 1, column 'x'", SPOILT),
    of_parquet("huge", parquet_of(**columns(x=[0.0, 1e300, 1.0, 2.0, 3.0, 4.0])), "row 1, column 'x'", "rescale"),
    of_parquet("text only", parquet_of(id=IDS, x=IDS, label=LABELS), "no numeric columns"),
    of_parquet("unequal lists", parquet_of(id=IDS, v=[[1.0, 2.0]] * 5 + [[1.0]], label=LABELS), "'v'", "lengths"),
    of_parquet(
        "unequal lists of even sum",
        parquet_of(id=IDS, v=[[1.0]] * 3 + [[1.0] * 3] * 3, label=LABELS),
        "lengths",
    ),
    of_parquet("empty lists", parquet_of(id=IDS, v=pa.array([[]] * 6, pa.list_(pa.float32())), label=LABELS), "empty"),
    of_parquet("lists of text", parquet_of(id=IDS, v=[["p"]] * 6, label=LABELS), "'v'", "not lists of numbers"),
    of_parquet("lists of lists", parquet_of(id=IDS, v=NESTED, label=LABELS), "'v'", "not lists of numbers"),
    of_parquet("null in a list", parquet_of(id=IDS, v=[[1.0, None]] * 6, label=LABELS), "row 0, column 'v[1]'"),
    of_parquet("null list", parquet_of(id=IDS, v=[[1.0]] * 5 + [None], label=LABELS), "row 5, column 'v'"),
    of_parquet("null id", parquet_of(**columns(id=[*IDS[:5], None])), "row 5", "id ''"),
    of_parquet("same id twice", parquet_of(**columns(id=[*IDS[:5], "a"])), "'a' appears twice"),
    of_parquet("null label", parquet_of(**columns(label=[*LABELS[:5], None]))),
    Case("pool: missing", "simulate --pool nowhere.csv --label-col label", ("nowhere.csv", "no such file")),
    Case("pool: a folder", "simulate --pool . --label-col label", ("not a file",)),
    Case("pool: a device", "simulate --pool /dev/null --label-col label", ("/dev/null", "not a file")),
    Case("pool: unknown kind", "simulate --pool p.xlsx", ("p.xlsx", ".parquet"), {"p.xlsx": b"PK"}),
    Case("pool: no suffix", "simulate --pool p", ("unknown kind",), {"p": CSV}),
    Case("pool: long name", f"simulate --pool {'n' * 300}.csv", ("too long",)),
    Case("pool: escapes in its name", "simulate --pool $'\x1b[31m.csv'", ("no such file",)),
    Case("find: empty pool", "find --pool p.csv", ("p.csv", "empty"), {"p.csv": b""}),
    Case("tsv: commas", SIMULATE["p.tsv"], ("p.tsv", "no column 'id'"), {"p.tsv": CSV}),
    Case(
        "cosine: zeros",
        f"{SIMULATE['p.csv']} --metric cosine",
        ("row 2", "zeros"),
        {"p.csv": csv_with(2, "c,0,0,yes")},
    ),
    Case(
        "cosine: zeros in npy",
        f"{SIMULATE['p.npy']} --metric cosine",
        ("row 0",),
        {"p.npy": npy_of(POINTS * 0)},
    ),
    Case(
        "vectors: too few",
        f"{SIMULATE['p.csv']} --vectors v.npy",
        ("v.npy", "6 ids for 5"),
        {"v.npy": npy_of(POINTS[:5])},
    ),
    Case(
        "vectors: nan",
        f"{SIMULATE['p.csv']} --vectors v.npy",
        ("v.npy", "row 0"),
        {"v.npy": npy_of(POINTS * np.nan)},
    ),
    Case("vectors: missing", f"{SIMULATE['p.csv']} --vectors v.npy", ("v.npy", "no such file")),
    Case("vectors: from text", f"{SIMULATE['p.csv']} --vectors p.csv", ("p.csv", ".npz")),
    Case("vectors: garbage", f"{SIMULATE['p.csv']} --vectors v.npz", ("v.npz",), {"v.npz": GARBAGE}),
    Case(
        "outside: width",
        f"{FIND} --known-vectors v.npy",
        ("outside", "3 columns"),
        {"v.npy": npy_of(np.ones((2, 3)))},
    ),
    Case(
        "outside: nan",
        f"{FIND} --known-vectors v.npy",
        ("outside", "row 0"),
        {"v.npy": npy_of(POINTS * np.nan)},
    ),
]

LABEL_FILES = [
    of_labels("empty", b"", "labels.txt", "0 labels for a pool of 6"),
    of_labels("too few", b"yes\nno\n", "labels.txt", "2 labels for a pool of 6"),
    of_labels("too many", b"yes\n" * 7, "labels.txt", "7 labels for a pool of 6"),
    of_labels("all negative", b"no\n" * 6, "no label is positive"),
    of_labels("neither", b"yes\nno\nperhaps\nno\nno\nno\n", "row 2", "'perhaps'"),
    of_labels("not UTF-8", b"\xff\xfe" * 6, "labels.txt", "UTF-8"),
    Case("labels: missing", f"{SIMULATE['p.npy']} --labels nowhere.txt", ("nowhere.txt", "no such file")),
    Case("labels: a folder", f"{SIMULATE['p.npy']} --labels .", ("no such file",)),
    *(
        Case(f"labels.npy: {what}", SIMULATE["labels.npy"], says, {"labels.npy": content})
        for what, content, says in [
            ("garbage", GARBAGE, ("labels.npy", "numpy.save")),
            ("an npz", NPZ, ("labels.npy", "numpy.save")),
            ("objects", npy_of(np.array(LABELS, object)), ("labels.npy", "Python objects")),
            ("truncated", GOOD["labels.npy"][:-4], ("labels.npy",)),
            ("wrong count", npy_of(np.ones(5)), ("labels.npy", "5 labels")),
            ("halves", npy_of(np.full(6, 0.5)), ("row 0", "'0.5'")),
            ("nan", npy_of(np.full(6, np.nan)), ("row 0", "'nan'")),
            ("complex", npy_of(np.full(6, 1j)), ("row 0",)),
            ("records", npy_of(np.zeros(6, [("x", "f4")])), ("row 0",)),
        ]
    ),
    of_options("--label maybe", "'maybe'", "no, yes"),
    Case("labels: of no one", "simulate --pool p.npy", ("--label-col", "--labels")),
    Case("labels: a column of an npy", "simulate --pool p.npy --label-col label", ("p.npy", "'label'")),
]

OPTIONS = [
    *(
        of_options(f"--batch={value}", f"'{value}'", "5%")
        for value in (
            "0",
            "-1",
            "abc",
            "0%",
            "500%",
            "-5%",
            "nan",
            "nan%",
            "inf%",
            "1.5",
            "%",
            "5%%",
            "5%5",
            "9" * 5000,
        )
    ),
    *(
        of_options(f"--{name}={value}", f"--{name}")
        for name, values in {
            "runs": ("0", "-1", "x", "1.5", ""),
            "explore": ("-1", "x", "nan", "1e3"),
            "budget": ("0", "-1", "x"),
            "seed": ("-1", "x", "1.5", str(2**64), "9" * 5000),
        }.items()
        for value in values
    ),
    *(
        of_options(f"--{name}={value}", f"--{name}", base=FIND)
        for name, values in {
            "budget": ("0", "-1", "x", "nan"),
            "target": ("0", "x"),
            "explore": ("-1", "x"),
            "seed": ("-1", str(2**200)),
        }.items()
        for value in values
    ),
    of_options("--learner nearest", "unknown learner 'nearest'", "explore-commit"),
    of_options("--learner explore-comit", "did you mean 'explore-commit'"),
    of_options("--learner explore-commit@99", "'explore-commit@99'"),
    of_options("--learner ''", "empty name"),
    of_options("--learner EC,,O", "empty name"),
    of_options("--learner nearest", "unknown learner 'nearest'", base=FIND),
    of_options("--learner optimal", "'optimal'", base=FIND),
    of_options("--metric manhattan", "unknown metric 'manhattan'", "cosine"),
    of_options("--metric ''", "unknown metric"),
    of_options("--metric manhattan", "unknown metric", base=FIND),
    of_options("--dataset numbers", "unknown data set 'numbers'", "letters", base="simulate"),
    of_options("--dataset letters --label Ä", "no label 'Ä'", base="simulate"),
    of_options("--dataset letters", "either --pool or --dataset"),
    of_options("--columns x,z", "no column 'z'", "p.csv"),
    of_options("--columns x,,y", "empty name"),
    of_options("--columns id", "p.csv line 2", "'a'"),
    of_options("--id-col z", "no column 'z'"),
    of_options("--content-cols z", "no column 'z'", base=FIND),
    of_options("--no-header", "no column 'id'"),
    of_options("--id-col id", "p.npy", "'id'", base=SIMULATE["p.npy"]),
    of_options("--columns x", "p.npy", "'x'", base=SIMULATE["p.npy"]),
    of_options("--known z", "'z' is not in the pool", base=FIND),
    of_options("--known ''", "'' is not in the pool", base=FIND),
    of_options("--frobnicate", "--frobnicate"),
    of_options("--batch", "--batch"),
    of_options("left over", "left"),
    Case("options: no pool", "simulate", ("--pool", "--dataset")),
    Case("options: find without a pool", "find", ("--pool",)),
    Case("options: unknown command", "fnid", ("fnid",)),
    Case("options: demo label", "demo --label AB --explore 2", ("'AB'",)),
    Case("options: demo batch", "demo --batch 0 --explore 2", ("'0'",)),
    Case("options: demo picture", "demo --plot demo.txt", ("demo.txt", ".png")),
]

OUTPUTS = [
    of_options("--out nowhere/t.csv", "nowhere", "create it"),
    of_options("--out folder.csv", "folder.csv", "is a folder"),
    of_options("--out t.txt", "t.txt", ".parquet"),
    of_options("--out t", ".jsonl"),
    of_options("--out ''", ".jsonl"),
    of_options("--out /proc/t.csv", "/proc", "cannot be written"),
    of_options("--out p.csv", "p.csv", "name another"),
    of_options("--out ./folder.csv/../p.csv", "name another"),
    of_options("--plot nowhere/t.png", "nowhere", "create it"),
    of_options("--plot folder.png", "folder.png", "is a folder"),
    of_options("--plot t.csv", "t.csv", ".svg"),
    of_options("--plot /proc/t.png", "/proc", "cannot be written"),
    of_options("--export nowhere/t.csv", "nowhere", "create it", base=FIND),
    of_options("--export folder.csv", "is a folder", base=FIND),
    of_options("--export labels.json", "labels.json", ".csv", base=FIND),
    of_options("--export /proc/t.csv", "/proc", "cannot be written", base=FIND),
    of_options("--export p.csv", "p.csv", "name another", base=FIND),
    of_options("--log e.csv --export e.csv", "e.csv", "name another", base=FIND),
    of_options("--log nowhere/l.jsonl", "nowhere", "create it", base=FIND),
    of_options("--log folder.csv", "is a folder", base=FIND),
    of_options("--log /dev/null", "/dev/null", "not a file", base=FIND),
    of_options("--log /proc/l.jsonl", "/proc/l.jsonl", "cannot be opened", base=FIND),
    of_options("--log p.csv", "p.csv line 1", "damaged", base=FIND),
    of_options("--log p.npy", "p.npy", "right file", base=FIND),
    Case(
        "options: --log over a text without a newline",
        f"{FIND} --log notes",
        ("notes", "right file"),
        {"notes": b"dear"},
    ),
    Case("options: --log over one JSON object", f"{FIND} --log j", ("j", "right file"), {"j": b'{"key": 1}'}),
]


def named(cases: list[Any]) -> dict[str, Any]:
    return {"argvalues": cases, "ids": [case.what[:60] for case in cases]}


@pytest.mark.parametrize("case", **named([*FILES, *LABEL_FILES, *OPTIONS, *OUTPUTS]))
def test_one_line_and_nothing_touched(folder: Path, case: Case) -> None:
    (folder / "folder.csv").mkdir()
    (folder / "folder.png").mkdir()
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    said = refused(case.command, folder)
    for part in case.says:
        assert part in said


@pytest.mark.parametrize("command", [*SIMULATE.values(), FIND, f"{SIMULATE['p.csv']} --batch 100 --explore 100"])
def test_the_good_input_is_good(folder: Path, command: str) -> None:
    """Or else the cases above would prove nothing."""
    code, said = call(command)
    assert code == 0, said


def test_text_that_a_terminal_would_act_on_is_spelled_out(folder: Path) -> None:
    said = refused(["simulate", "--pool", "p.csv", "--label-col", "\x1b[2J\n\udcff\0"], folder)
    assert r"\x1b[2J" in said


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "simulate" in capsys.readouterr().out


def test_answers_that_are_not_text(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe\n"), encoding="utf-8"))
    assert main(shlex.split(FIND)) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("activecover: standard input")


# -- damaged label logs ------------------------------------------------------------------------------


def changed(number: int, /, **changes: Any) -> Callable[[list[bytes]], list[bytes]]:
    def change(lines: list[bytes]) -> list[bytes]:
        event = {key: value for key, value in (json.loads(lines[number]) | changes).items() if value is not ...}
        return [*lines[:number], json.dumps(event).encode(), *lines[number + 1 :]]

    return change


def last_asked(lines: list[bytes]) -> int:
    return max(number for number, line in enumerate(lines) if json.loads(line)["event"] == "asked")


def replaced(number: int, line: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: [*lines[:number], line, *lines[number + 1 :]]


CREATED, KNOWN, ASKED, TOLD = 0, 1, 2, 3
LOGS: list[tuple[str, Callable[[list[bytes]], list[bytes]], str]] = [
    ("garbage in the middle", replaced(TOLD, b"\xff\x00garbage"), "line 4: damaged"),
    ("garbage at the end", lambda lines: [*lines, b"}{"], "damaged"),
    ("empty line", replaced(TOLD, b""), "line 4: damaged"),
    (
        "line cut short in the middle",
        lambda lines: [*lines[:3], lines[3][:20], *lines[4:]],
        "line 4: damaged",
    ),
    ("not an object", replaced(TOLD, b"[1, 2]"), "line 4: not event 3"),
    ("deep nesting", replaced(TOLD, b"[" * 100_000), "line 4: damaged"),
    ("endless number", replaced(TOLD, b'{"seq": ' + b"9" * 5000 + b"}"), "line 4: damaged"),
    ("line missing", lambda lines: lines[:3] + lines[4:], "line 4: not event 3"),
    ("line twice", lambda lines: lines[:3] + lines[2:], "line 4: not event 3"),
    ("lines swapped", lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "line 2: not event 1"),
    ("no beginning", lambda lines: [], "no beginning"),
    ("no kind", changed(TOLD, event=...), "line 4"),
    ("kind a number", changed(TOLD, event=7), "line 4"),
    ("unknown kind", changed(TOLD, event="sold"), "unknown kind 'sold'"),
    ("kind with a method's name", changed(TOLD, event="_apply"), "unknown kind"),
    (
        "created twice",
        lambda lines: changed(KNOWN, **json.loads(lines[0]) | {"seq": 1})(lines),
        "created once",
    ),
    ("newer format", changed(CREATED, format=2), "format 2"),
    ("no format", changed(CREATED, format=...), "format None"),
    ("another pool's vectors", changed(CREATED, pool={"ids": "0", "vectors": "0"}), "another pool"),
    ("pool of wrong type", changed(CREATED, pool=[]), "pool [] is damaged"),
    ("pool without parts", changed(CREATED, pool={}), "pool {} is damaged"),
    ("rows text", changed(CREATED, rows="6"), "rows '6' is damaged"),
    ("rows too many", changed(CREATED, rows=7), "7 rows"),
    ("rows too few", changed(CREATED, rows=5), "another pool"),
    ("rows negative", changed(CREATED, rows=-1), "rows -1 is damaged"),
    ("seed text", changed(CREATED, seed="x"), "seed 'x' is damaged"),
    ("seed missing", changed(CREATED, seed=...), "seed None is damaged"),
    ("seed beyond measure", changed(CREATED, seed=10**60), "seed 1000"),
    ("learner a list", changed(CREATED, learner=[]), "learner [] is damaged"),
    ("learner of one's own", changed(CREATED, learner="Mine(explore=3)"), "Mine(explore=3)"),
    ("explore text", changed(CREATED, explore="x"), "explore 'x' is damaged"),
    ("explore texts", changed(CREATED, explore=["x"]), "explore ['x'] is damaged"),
    ("explore rows twice", changed(CREATED, explore=[1, 1]), "different rows"),
    ("explore rows elsewhere", changed(CREATED, explore=[99]), "different rows"),
    ("outside of wrong type", changed(CREATED, outside=1), "outside 1 is damaged"),
    ("outside of another run", changed(CREATED, outside="00"), "from outside"),
    ("known unknown", changed(KNOWN, id="zz"), "'zz' is not in the pool"),
    ("known without id", changed(KNOWN, id=...), "id None is damaged"),
    ("asked number text", changed(ASKED, number="x"), "number 'x' is damaged"),
    ("asked number missing", changed(ASKED, number=...), "number None is damaged"),
    ("asked number a half", changed(ASKED, number=0.5), "number 0.5 is damaged"),
    ("asked number true", changed(ASKED, number=True), "number True is damaged"),
    ("asked number endless", changed(ASKED, number=10**30), "number 1000"),
    ("asked number negative", changed(ASKED, number=-1), "number -1 is damaged"),
    ("asked id a list", changed(ASKED, id=["a"]), "id ['a'] is damaged"),
    ("asked id unknown", changed(ASKED, id="zz"), "'c' was never asked for"),
    ("last id unknown", lambda lines: changed(last_asked(lines), id="zz")(lines), "'zz' is not in the pool"),
    ("asked batch text", changed(ASKED, batch="x"), "batch 'x' is damaged"),
    ("asked source missing", changed(ASKED, source=...), "source None is damaged"),
    ("asked by number", changed(ASKED, by=1), "by 1 is damaged"),
    ("asked expires text", changed(ASKED, expires="soon"), "expires 'soon' is damaged"),
    ("told label text", changed(TOLD, label="x"), "label 'x' is damaged"),
    ("told label missing", changed(TOLD, label=...), "label None is damaged"),
    ("told label 2", changed(TOLD, label=2), "label 2 is damaged"),
    ("told id missing", changed(TOLD, id=...), "id None is damaged"),
    ("told id not asked", changed(TOLD, id="zz"), "'zz' was never asked for"),
    ("told by nobody", changed(TOLD, by=...), "by None is damaged"),
    ("told of a known positive", changed(ASKED, id="a"), "log.jsonl"),
]


def unchained(line: bytes) -> bytes:
    """A line without the hash of its event, unless it is too damaged to have one."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(event, dict):
        return line
    event.pop("chain", None)
    # The blank at the end says that events were written together.
    return json.dumps(event).encode() + (b" " if line.endswith(b" ") else b"")


@pytest.mark.parametrize(("change", "says"), [case[1:] for case in LOGS], ids=[case[0] for case in LOGS])
def test_a_damaged_log_is_refused_and_kept(
    folder: Path, log: bytes, change: Callable[[list[bytes]], list[bytes]], says: str
) -> None:
    lines = change(log.split(b"\n")[:-1]) or [
        b'{"seq": 0, "event": "known", "id": "a"}',
    ]
    # As a log is from before there were hashes, which would give all of this away at once: that is seen next.
    (folder / "log.jsonl").write_bytes(b"\n".join(map(unchained, lines)) + b"\n")
    said = refused(FIND, folder)
    assert "log.jsonl" in said
    assert says in said
    (folder / "log.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    assert "log.jsonl" in refused(FIND, folder)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--seed 6", "seed 5, not 6"),
        ("--explore 4", "explore 3, not 4"),
        ("--learner offline", "learner 'auto@"),
        ("--known b", "other known positives"),
        ("--metric cosine", "another pool"),
        ("--columns x", "another pool"),
        ("--known-vectors p.npy", "outside"),
    ],
)
def test_a_log_of_other_settings(folder: Path, log: bytes, options: str, says: str) -> None:
    (folder / "log.jsonl").write_bytes(log)
    said = refused(f"{FIND} {options}", folder)
    assert "log.jsonl" in said
    assert says in said


def test_a_log_of_another_pool(folder: Path, log: bytes) -> None:
    (folder / "log.jsonl").write_bytes(log)
    (folder / "p.csv").write_bytes(csv_with(2, "c,0,1.5,yes"))
    assert "another pool" in refused(FIND, folder)


def test_a_log_that_another_process_has_open(folder: Path, log: bytes) -> None:
    (folder / "log.jsonl").write_bytes(log)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from activecover.store import JsonlLog; log = JsonlLog('log.jsonl'); print(flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        holder.stdout.readline()
        assert "another process" in refused(FIND, folder)
    finally:
        holder.communicate(b"\n")


def test_a_torn_end_is_no_damage_and_looking_changes_nothing(folder: Path, log: bytes) -> None:
    # The log ends with an item on the table, so that there is nothing to write before the first answer.
    for torn in (b"", b"{", b'{"seq": 13, "event": "to', b"\0" * 100):
        (folder / "log.jsonl").write_bytes(log + torn)
        before = snapshot(folder)
        assert call(FIND)[0] == 0
        assert snapshot(folder) == before


# -- a full disk and missing parts -------------------------------------------------------------------

LIMITED = """
import os
os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiled code is kept in files too
import resource, signal, sys
from activecover.cli import main
import pyarrow.parquet
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_a_disk_too_full_for_the_result_keeps_the_old_one(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"the old result")
    before = snapshot(folder)
    command = [sys.executable, "-B", "-c", LIMITED, *shlex.split(SIMULATE["p.csv"]), "--json", "--out", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"activecover: {name}: cannot be written")
    assert done.stderr.count("\n") == 1
    assert snapshot(folder) == before


def test_a_disk_too_full_for_the_first_label_leaves_no_log(folder: Path) -> None:
    before = snapshot(folder)
    command = [sys.executable, "-B", "-c", LIMITED, *shlex.split(FIND)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("activecover: log.jsonl: ")
    assert done.stderr.count("\n") == 1
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    ("missing", "command", "extra"),
    [
        ("pyarrow", SIMULATE["p.parquet"], "parquet"),
        ("pyarrow", "find --pool p.parquet", "parquet"),
        ("pyarrow", f"{SIMULATE['p.csv']} --out t.parquet", "parquet"),
        ("matplotlib", f"{SIMULATE['p.csv']} --plot t.png", "plot"),
    ],
)
def test_a_missing_extra(folder: Path, monkeypatch: pytest.MonkeyPatch, missing: str, command: str, extra: str) -> None:
    for module in [missing, *(name for name in sys.modules if name.startswith(f"{missing}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    said = refused(command, folder)
    assert f"pip install 'activecover[{extra}]'" in said


# -- damage at random --------------------------------------------------------------------------------


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        how = draw(st.sampled_from(["flip", "set", "insert", "delete", "repeat", "truncate"]))
        at = draw(st.integers(0, max(0, len(data) - 1)))
        length = draw(st.integers(1, 12))
        if how == "flip" and data:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "set" and data:
            data[at] = draw(st.sampled_from(b'\0\n\r",;{}[]()0919-.eENaninf\xff\x80 '))
        elif how == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=8))
        elif how == "delete":
            del data[at : at + length]
        elif how == "repeat":
            data[at:at] = data[at : at + length]
        elif how == "truncate":
            del data[at:]
    return bytes(data)


def examples(count: int) -> settings:
    return settings(
        max_examples=max(count, settings.default.max_examples),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


@pytest.mark.parametrize("name", SIMULATE)
@examples(150)
@given(data=st.data())
def test_damaged_files(name: str, data: st.DataObject) -> None:
    content = data.draw(damaged(GOOD[name]))
    with workplace(**GOOD | {name: content}) as folder:
        refused(SIMULATE[name], folder, valid_too=True)


@examples(200)
@given(data=st.data())
def test_damaged_logs(log: bytes, data: st.DataObject) -> None:
    content = data.draw(damaged(log))
    with workplace(**{"p.csv": CSV, "log.jsonl": content}) as folder:
        refused(FIND, folder, valid_too=True)


ODD = st.one_of(
    st.sampled_from(
        [
            "",
            "0",
            "-1",
            "1",
            "3",
            "nan",
            "inf",
            "-inf",
            "1e9",
            "1.5",
            "0x1",
            "%",
            "5%",
            "1e400%",
            "None",
            "\0",
        ]
    ),
    st.integers(-(2**70), -1).map(str),
    st.floats(allow_nan=True).map(str),
    st.text(max_size=6).filter(lambda text: not text.strip().isdecimal()),
)


@examples(200)
@given(
    option=st.sampled_from(
        [
            "batch",
            "runs",
            "explore",
            "budget",
            "seed",
            "metric",
            "learner",
            "columns",
            "id-col",
            "label-col",
            "label",
            "labels",
            "vectors",
            "dataset",
            "out",
            "plot",
            "pool",
        ]
    ),
    value=ODD,
)
def test_odd_options_of_simulate(option: str, value: str) -> None:
    # A great number of runs is no bad input, only a long wait.
    assume(option != "runs" or len(value) < 4 or value.startswith("-") or value.isalpha())
    with workplace(**{"p.csv": CSV}) as folder:
        refused([*shlex.split(SIMULATE["p.csv"]), f"--{option}={value}"], folder, valid_too=True)


@examples(200)
@given(
    option=st.sampled_from(
        [
            "explore",
            "budget",
            "target",
            "seed",
            "metric",
            "learner",
            "columns",
            "id-col",
            "content-cols",
            "known",
            "known-vectors",
            "vectors",
            "export",
            "pool",
        ]
    ),
    value=ODD,
)
def test_odd_options_of_find(option: str, value: str) -> None:
    with workplace(**{"p.csv": CSV}) as folder:
        refused([*shlex.split(FIND), f"--{option}={value}"], folder, valid_too=True)
