"""ASReview's default model on the text pools, by its own simulation command, from the same starts.

ASReview lives in an environment of its own (``python -m venv peers && peers/bin/pip install asreview``). Every start is
one call of ``asreview simulate`` on a file with the pool's texts; lines go to the file that benchmarks/pools.py
writes, as learner ``asreview``.

    python benchmarks/peers/asreview.py [FOLDER] --command peers/bin/asreview [--pools sms_spam] [--starts 10]
"""

from __future__ import annotations

import argparse
import csv
import sqlite3
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import pools
from activecover.intake import read_table
from activecover.pool import as_positive

TEXTS = {"systematic_review": ("title", "abstract"), "sms_spam": ("2",), "hate_speech": ("tweet",)}


def write_texts(folder: Path, name: str, target: Path) -> list[bool]:
    """The pool as a file that ASReview reads; the truth."""
    source = pools.SOURCES[name]
    table = read_table(folder / source.file, header=source.header)
    rows = pools.sampled_rows(len(table), whole=False)
    labels = as_positive(table.texts(source.label_column), source.positive)[rows]
    truth = [bool(label) for label in labels]
    columns = [table.texts(column) for column in TEXTS[name]]
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "abstract", "included"])
        for row, positive in zip(rows.tolist(), truth, strict=True):
            title, abstract = (columns[0][row], columns[1][row]) if len(columns) > 1 else ("", columns[0][row])
            writer.writerow([title, abstract, int(positive)])
    return truth


def simulated(command: str, texts: Path, prior: list[int], seed: int) -> list[int]:
    """After how many labels each positive was found, the two of the start not counted."""
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "run.asreview"
        order = [
            command,
            "simulate",
            str(texts),
            "-o",
            str(project),
            "--seed",
            str(seed),
            "--prior-idx",
            *map(str, prior),
        ]
        # It leaves files of its own where it is called.
        subprocess.run(order, check=True, capture_output=True, text=True, cwd=scratch)
        with zipfile.ZipFile(project) as packed:
            name = next(name for name in packed.namelist() if name.endswith("results.db"))
            packed.extract(name, scratch)
        connection = sqlite3.connect(Path(scratch) / name)
        # Records of the start have no querier.
        labels = [label for (label,) in connection.execute("SELECT label FROM results WHERE querier IS NOT NULL")]
        connection.close()
    return [place + 1 for place, label in enumerate(labels) if label]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="asreview")
    parser.add_argument("--pools", default=",".join(TEXTS))
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--out", type=Path, default=pools.OUT)
    given = pools.with_folder(parser)
    for name in given.pools.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            texts = Path(scratch) / "texts.csv"
            truth = write_texts(given.folder, name, texts)
            for number in range(given.starts):
                key = (name, len(truth), "asreview", number)
                if key in pools.Results(given.out).lines:
                    continue
                began = time.perf_counter()
                found = simulated(given.command, texts, pools.start(np.array(truth), number), number)
                if len(found) != sum(truth) - 1:
                    print(f"{name}, start {number}: {len(found) + 1} of {sum(truth)} positives", file=sys.stderr)
                    return 1
                # Read anew: another process may have added lines since.
                pools.Results(given.out).add(key, found, time.perf_counter() - began)
                print(f"{name} {len(truth)} asreview {number}: all after {found[-1]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
