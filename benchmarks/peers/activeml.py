"""A scikit-activeml loop on the dense pools, from the same starts.

Two loops, as its users write them: the row of which the classifier is least sure (its ``UncertaintySampling``, made for
training classifiers), and the row most likely positive by the same classifier. The classifier is scikit-learn's
logistic regression on standardised columns, refit at every label. scikit-activeml takes dense arrays only.

It lives in an environment of its own (``python -m venv peers && peers/bin/pip install . scikit-activeml``), whose
Python runs this; lines go to the file that benchmarks/pools.py writes.

    peers/bin/python benchmarks/peers/activeml.py [FOLDER] [--pools german_credit] [--starts 10] [--out FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import pools

DENSE = ("german_credit", "mammography")
LOOPS = ("activeml-uncertain", "activeml-likely")


def run(vectors: npt.NDArray[np.float64], truth: npt.NDArray[np.bool_], loop: str, first: list[int], seed: int) -> Any:
    """After how many labels each positive was found, the two of the start not counted."""
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import UncertaintySampling
    from skactiveml.utils import MISSING_LABEL, unlabeled_indices

    labels = np.full(len(truth), MISSING_LABEL)
    labels[first] = truth[first]
    classifier = SklearnClassifier(LogisticRegression(class_weight="balanced"), classes=[0, 1], random_state=seed)
    uncertain = UncertaintySampling(method="least_confident", random_state=seed)
    found: list[int] = []
    asked, left = 0, int(truth.sum()) - int(truth[first].sum())
    while len(found) < left:
        if loop == "activeml-uncertain":
            row = int(uncertain.query(X=vectors, y=labels, clf=classifier)[0])
        else:
            open_rows = unlabeled_indices(labels)
            likely = classifier.fit(vectors, labels).predict_proba(vectors[open_rows])[:, 1]
            row = int(open_rows[likely.argmax()])
        labels[row] = truth[row]
        asked += 1
        if truth[row]:
            found.append(asked)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", default=",".join(DENSE))
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--out", type=Path, default=pools.OUT)
    given = pools.with_folder(parser)
    warnings.simplefilter("ignore")
    for name in given.pools.split(","):
        pool, truth = pools.read_pool(given.folder, name, whole=False)
        vectors = StandardScaler().fit_transform(pool.vectors.astype(np.float64))
        for number in range(given.starts):
            for loop in LOOPS:
                key = (name, len(truth), loop, number)
                if key in pools.Results(given.out).lines:
                    continue
                began = time.perf_counter()
                found = run(vectors, truth, loop, pools.start(truth, number), number)
                # Read anew: another process may have added lines since.
                pools.Results(given.out).add(key, found, time.perf_counter() - began)
                print(f"{name} {len(truth)} {loop} {number}: all after {found[-1]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
