"""Labels needed on real pools: one question at a time, from one known positive and one known negative.

Every learner has the same starts. Pools above 5,000 rows are taken as a fixed sample of 5,000 (``--whole``: as they
are). What is finished is kept, so that the command goes on where it was ended; the result is one line per pool,
learner and start: after how many labels each positive was found.

    python benchmarks/pools.py [FOLDER] [--learners auto,rocchio] [--pools sms_spam] [--starts 10] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from _packed import read_lines, write_lines
from activecover.errors import ActiveCoverError
from activecover.intake import make_pool, read_table
from activecover.learners import LEARNERS, make_learner
from activecover.parallel import one_blas_thread
from activecover.pool import Pool, as_positive
from activecover.simulate import simulate_one

OUT = Path(__file__).resolve().parents[1] / "results" / "pools.csv.gz"
COLUMNS = ("pool", "rows", "learner", "start", "found_after", "seconds")
SAMPLE = 5000
#: The rules that auto is compared with in hindsight, and auto itself.
COMPARED = ("auto", "explore-commit", "density-commit", "contrast", "knn-posterior", "rocchio", "linear")

Key = tuple[str, int, str, int]


@dataclass(frozen=True)
class Source:
    """A file, how vectors are made of it, and which label counts as positive."""

    file: str
    embed: str
    label_column: str
    positive: str
    header: bool = True
    id_column: str | None = None


SOURCES = {
    "systematic_review": Source(
        "systematic_review.csv", "tfidf:title,abstract", "label_included", "1", id_column="record_id"
    ),
    "sms_spam": Source("sms_spam.tsv", "tfidf:2", "1", "spam", header=False),
    "german_credit": Source("german_credit.data", "columns", "21", "2", header=False),
    "mammography": Source("mammography.npz", "vectors", "y", "1"),
    "hate_speech": Source("hate_speech.csv", "tfidf:tweet", "class", "0"),
    "hiv": Source("hiv.csv", "smiles", "HIV_active", "1"),
}


def with_folder(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """What was given on the command line, and where the pools are: named first, or beside the data sets."""
    data = os.environ.get("ACTIVECOVER_DATA")
    parser.add_argument("folder", type=Path, nargs="?", default=Path(data) / "pools" if data else None)
    given = parser.parse_args()
    if given.folder is None:
        parser.error("name the folder with the pools, or set ACTIVECOVER_DATA, with a folder pools in it")
    return given


def read_pool(folder: Path, name: str, *, whole: bool) -> tuple[Pool, npt.NDArray[np.bool_]]:
    """A pool and its truth; of a large one the same sample every time, unless it is wanted whole."""
    source = SOURCES[name]
    table = read_table(folder / source.file, header=source.header)
    made = make_pool(table, embed=source.embed, id_column=source.id_column, label_column=source.label_column)
    assert made.labels is not None
    truth = as_positive([str(label) for label in made.labels], source.positive)
    rows = sampled_rows(len(truth), whole=whole)
    if len(rows) == len(truth):
        return made.pool, truth
    if made.pool.kind == "bits":
        return _bits(made.pool, rows), truth[rows]
    return Pool(made.pool.vectors[rows], metric=made.pool.metric), truth[rows]


def sampled_rows(count: int, *, whole: bool) -> npt.NDArray[np.int64]:
    """The rows that are taken of so many, ascending."""
    if whole or count <= SAMPLE:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).permutation(count)[:SAMPLE])


def _bits(pool: Pool, rows: npt.NDArray[np.int64]) -> Pool:
    from activecover.pool import unpacked

    return Pool(unpacked(pool, rows).astype(np.uint8), metric="jaccard")


def start(truth: npt.NDArray[np.bool_], number: int) -> list[int]:
    """One positive and one negative, by the number of the start."""
    random = np.random.default_rng([7, number])
    return [int(random.choice(np.flatnonzero(truth))), int(random.choice(np.flatnonzero(~truth)))]


def found_after(pool: Pool, truth: npt.NDArray[np.bool_], learner: str, number: int) -> list[int]:
    """After how many labels each positive was found, the two of the start not counted."""
    ready = make_learner(learner, explore=start(truth, number))
    trace = simulate_one(pool, truth, ready, batch=1, seed=number, run=number, name=learner)
    return [int(place) - 1 for place in np.flatnonzero(trace.positive)[1:]]


class Results:
    """The finished lines of a file, written anew as a whole whenever one is added."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Key, tuple[list[int], float]] = {}
        for line in read_lines(path):
            key = (line["pool"], int(line["rows"]), line["learner"], int(line["start"]))
            self.lines[key] = (json.loads(line["found_after"]), float(line["seconds"]))

    def add(self, key: Key, found: list[int], seconds: float) -> None:
        self.lines[key] = (found, round(seconds, 2))
        lines = ((*one, json.dumps(places), took) for one, (places, took) in sorted(self.lines.items()))
        write_lines(self.path, COLUMNS, lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learners", default=",".join(COMPARED))
    parser.add_argument("--pools", default=",".join(SOURCES))
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--out", type=Path, default=OUT)
    given = with_folder(parser)
    results = Results(given.out)
    learners = [LEARNERS[name].name for name in given.learners.split(",")]
    try:
        for pool_name in given.pools.split(","):
            pool, truth = read_pool(given.folder, pool_name, whole=given.whole)
            for number in range(given.starts):
                for learner in learners:
                    key = (pool_name, len(pool), learner, number)
                    if key in results.lines:
                        continue
                    began = time.perf_counter()
                    with one_blas_thread():
                        found = found_after(pool, truth, learner, number)
                    # Read anew: another command may have added lines since.
                    results = Results(given.out)
                    results.add(key, found, time.perf_counter() - began)
                    to_95 = found[int(np.ceil(0.95 * (len(found) + 1))) - 2]
                    print(
                        f"{pool_name} {len(pool)} {learner} {number}: 95 % after {to_95}, all after {found[-1]}",
                        flush=True,
                    )
    except ActiveCoverError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    print(f"{len(results.lines):,} runs are in {given.out.name}; benchmarks/learners_page.py makes tables of them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
