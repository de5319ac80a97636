"""One batch of the active RBF SVM (fit and scores of the pool) against plain scikit-learn; and jobs.

70,000 x 100, standardised, 5,000 positives, nu 0.5, gamma 1/100, on one thread and on all. Then the same small grid with one and
with two jobs. Ratios of times measured in this run; exits with 1 if a bound does not hold.

    python benchmarks/one_class.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import sklearn
from scipy.stats import spearmanr
from sklearn.svm import OneClassSVM

from _rivals import threads_for_all, versions
from activecover.lab.grid import make_plan, run_plan
from activecover.learners._detectors import fit, score
from activecover.parallel import thread_count

ROWS, DIMENSIONS, POSITIVES = 70_000, 100, 5_000


def svm(rows: int = ROWS, positives: int = POSITIVES) -> bool:
    """One batch; libsvm has one thread whatever it is given, so the bound has to hold on one thread of ours."""
    random = np.random.default_rng(0)
    points = random.normal(size=(rows, DIMENSIONS))
    known, others = points[:positives], points[positives:]
    # Compiled code is loaded before the clock starts; scikit-learn's is compiled already.
    fit(OneClassSVM(), known[:10])
    started = time.perf_counter()
    theirs = OneClassSVM(nu=0.5, gamma=1 / DIMENSIONS).fit(known).score_samples(others)
    their_time = time.perf_counter() - started
    print(f"active RBF SVM, one batch, {rows:,} x {DIMENSIONS}, {positives:,} positives")
    print(f"{versions()}, scikit-learn {sklearn.__version__}")
    holds = True
    for threads in sorted({1, thread_count()}):
        with threads_for_all(threads):
            started = time.perf_counter()
            ours = score(fit(OneClassSVM(nu=0.5, gamma=1 / DIMENSIONS), known), others)
            our_time = time.perf_counter() - started
        agreement = float(spearmanr(ours, theirs).statistic)
        print(
            f"scikit-learn on one thread / activecover on {threads}: {their_time / our_time:.1f} times "
            f"({their_time:.2f} s / {our_time:.2f} s), rank correlation of the scores {agreement:.8f}"
        )
        holds &= agreement >= 0.9999 and their_time / our_time >= 3
    return holds


def jobs() -> bool:
    # Grids have hundreds of cells; with a few dozen what counts is not the start of the processes.
    plan = make_plan(["letters"], labels=list("ABCDEFGHIJKL"), methods=["A-IF", "A-RS"], runs=2)
    seconds = []
    for count in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            run_plan(plan, Path(folder), jobs=count)
            seconds.append(time.perf_counter() - started)
    print(
        f"grid of {len(plan)} cells, 1 job / 2 jobs: {seconds[0] / seconds[1]:.2f} times ({seconds[0]:.1f} s / {seconds[1]:.1f} s)"
    )
    return seconds[0] / seconds[1] >= 1.7


if __name__ == "__main__":
    results = [svm(), jobs()]
    sys.exit(0 if all(results) else 1)
