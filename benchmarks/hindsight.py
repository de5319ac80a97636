"""How many rows would have to be read if the labels of all others were known: what a learner can hope for on text.

Every row is scored by a model that was fitted to the true labels of the others (ten folds), the pool is ranked by these
scores, and what counts is how far down the ranking 95 % and all of the positives lie. The learners' own figures, next to
it, come from results/pools.csv.gz. It is a yardstick and no strict bound: a learner begins with two labels, but each
answer changes what it asks next, and on the review `blend` needs a tenth fewer asking than in hindsight. Writes
results/hindsight.csv.

    python benchmarks/hindsight.py [FOLDER] [--pools sms_spam] [--repeats 5] [--out FILE]
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC, LinearSVC

from activecover.errors import ActiveCoverError
from activecover.files import replacing
from activecover.intake import read_table
from activecover.learners import Blend, Labels, Linear
from activecover.learners._topics import DEPTHS, shared_topics
from activecover.parallel import one_blas_thread
from activecover.pool import Pool
from learners_page import geometric_mean, labels_to, read_places
from pools import SOURCES, read_pool, sampled_rows, with_folder

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "results" / "hindsight.csv"
PLACES = ROOT / "results" / "pools.csv.gz"
COLUMNS = ("pool", "rows", "positives", "model", "repeat", "to_95", "to_100")
TEXTS = ("systematic_review", "sms_spam", "hate_speech")
SHARES = (0.95, 1.0)
FOLDS = 10
LEARNERS = ("asreview", "auto")

Rows = npt.NDArray[np.int64]
Truth = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float64]
#: Scores of some rows by a model that was fitted to others.
Model = Callable[[Rows, Rows], Scores]
Line = tuple[str, int, int, str, int, int, int]


def texts(folder: Path, name: str) -> list[str]:
    """The texts of a pool's rows."""
    source = SOURCES[name]
    table = read_table(folder / source.file, header=source.header)
    columns = [table.texts(column) for column in source.embed.removeprefix("tfidf:").split(",")]
    rows = sampled_rows(len(table), whole=False)
    return ["\n".join(column[row] for column in columns) for row in rows.tolist()]


def fitted(estimator: BaseEstimator, values: Any, truth: Truth) -> Model:
    """The scores of a scikit-learn classifier."""

    def scores(known: Rows, asked: Rows) -> Scores:
        model: Any = estimator
        return np.asarray(model.fit(values[known], truth[known]).decision_function(values[asked]), np.float64)

    return scores


def blended(pool: Pool, truth: Truth) -> Model:
    """The scores of ``blend``, which auto asks most in sparse pools."""

    def scores(known: Rows, asked: Rows) -> Scores:
        rule = Blend(explore=0).begin(pool)
        rule.tell(Labels.of(np.arange(len(known)), known, truth[known], False))
        return rule._scores(asked)

    return scores


def models(pool: Pool, truth: Truth, written: list[str]) -> dict[str, Model]:
    """The kinds of models that are tried."""
    topics = shared_topics(pool)
    assert topics is not None
    leading = topics.of(np.arange(len(pool)), max(DEPTHS))
    pieces = TfidfVectorizer(sublinear_tf=True, analyzer="char_wb", ngram_range=(3, 5), min_df=2).fit_transform(written)
    svm = LinearSVC(C=Linear().C, class_weight="balanced")
    logistic = LogisticRegression(C=10.0, class_weight="balanced", max_iter=1000)
    return {
        "words, linear SVM": fitted(svm, pool.vectors, truth),
        "words, logistic": fitted(logistic, pool.vectors, truth),
        "topics, kernel SVM": fitted(SVC(class_weight="balanced"), leading, truth),
        "pieces of words, linear SVM": fitted(svm, pieces, truth),
        "blend": blended(pool, truth),
    }


def crossed(model: Model, truth: Truth, repeat: int) -> Scores:
    """A score for every row by a model that knows the others' labels."""
    scores = np.zeros(len(truth))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=repeat)
    for known, asked in folds.split(np.zeros((len(truth), 1)), truth):
        scores[asked] = model(known, asked)
    return scores


def read_until(scores: Scores, truth: Truth) -> list[int]:
    """How many rows are read from the top until each share of the positives is found."""
    places = 1 + np.flatnonzero(truth[np.argsort(-scores, kind="stable")])
    return [int(places[int(np.ceil(share * len(places))) - 1]) for share in SHARES]


def measured(folder: Path, name: str, repeats: int) -> list[Line]:
    """What each model needs on a pool, and what their sum does."""
    pool, truth = read_pool(folder, name, whole=False)
    lines: list[Line] = []
    kinds = models(pool, truth, texts(folder, name))
    for repeat in range(repeats):
        scores = {kind: crossed(model, truth, repeat) for kind, model in kinds.items()}
        scores["all five added up"] = np.sum([(one - one.mean()) / one.std() for one in scores.values()], axis=0)
        for kind, one in scores.items():
            to_95, to_100 = read_until(one, truth)
            lines.append((name, len(pool), int(truth.sum()), kind, repeat, to_95, to_100))
    return lines


def learners_need(name: str, rows: int) -> dict[str, list[float]]:
    """The mean labels of the learners to each share, over all of their starts."""
    by_learner = read_places(PLACES)[f"{name} ({rows:,})"]
    return {
        learner: [float(np.mean([labels_to(found, share) for found in starts.values()])) for share in SHARES]
        for learner, starts in by_learner.items()
        if learner in LEARNERS
    }


def show(lines: list[Line]) -> None:
    """A table, and what the best model in hindsight would need of ASReview's labels."""
    best: dict[str, list[float]] = {}
    for name in dict.fromkeys(line[0] for line in lines):
        here = [line for line in lines if line[0] == name]
        _, rows, positives, *_ = here[0]
        print(f"\n{name} ({rows:,} rows, {positives} positives){'95 %':>16}{'100 %':>8}")
        needed = {f"{learner}, asking": means for learner, means in learners_need(name, rows).items()}
        reference = needed[f"{LEARNERS[0]}, asking"]
        for kind in dict.fromkeys(line[3] for line in here):
            means = np.mean([line[5:] for line in here if line[3] == kind], axis=0).tolist()
            needed[kind] = means
            ratios = [mean / other for mean, other in zip(means, reference, strict=True)]
            best[name] = [min(pair) for pair in zip(best.get(name, ratios), ratios, strict=True)]
        for kind, means in needed.items():
            print(f"  {kind:<48}{means[0]:>8,.0f}{means[1]:>8,.0f}")
    least = [geometric_mean(ratios) for ratios in zip(*best.values(), strict=True)]
    print(f"\nbest model / {LEARNERS[0]}, 95 % and 100 %:")
    for name, ratios in [*best.items(), ("geometric mean", least)]:
        print(f"  {name:<48}{ratios[0]:>8.2f}{ratios[1]:>8.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", default=",".join(TEXTS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    given = with_folder(parser)
    warnings.simplefilter("ignore", ConvergenceWarning)
    lines: list[Line] = []
    try:
        with one_blas_thread():
            for name in given.pools.split(","):
                lines += measured(given.folder, name, given.repeats)
    except ActiveCoverError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    with replacing(given.out) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(lines)
    show(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
