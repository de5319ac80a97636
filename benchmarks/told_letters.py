"""What a learner would reach on Letters that is told more than any may know: which letter each row of the sample is.

A yardstick for the gain that can be hoped for. Its first batch is ranked by a network that trains itself on its own
surest rows, with all 26 letters of the hundred labelled rows as classes, and by scores spread over the neighbour graph;
later batches by spread-posterior. Some places of every batch are for looking around, as in auto, and are chosen with what the
network says, too. Needs torch. What is finished is kept; lines go to results/told-letters.csv.gz.

    python benchmarks/told_letters.py [--runs 20] [--first 0] [--out FILE]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from _packed import read_lines, write_lines
from activecover.graph import averages, shared_graph
from activecover.lab.datasets import load_dataset
from activecover.lab.grid import prepare_trial
from activecover.learners import Labels, SpreadPosterior, local_contrast
from activecover.learners._auto5._ground import balanced_ground
from activecover.learners._auto5._survey import Survey
from activecover.pool import Pool, dense_vectors

OUT = Path(__file__).resolve().parents[1] / "results" / "told-letters.csv.gz"
COLUMNS = ("letter", "run", "auc")
BATCHES, SURE_BATCHES = 20, 6
#: Which share of the first batch, and of the later ones, goes to the ranking; the best of several that were tried.
RANKED, RANKED_LATER = 0.75, 0.9
ROUNDS, EPOCHS, HIDDEN, NOISE = 4, 12, 256, 0.15

Matrix = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


@dataclass
class Run:
    """A pool in the balanced space, its sample, and what is told of it."""

    pool: Pool
    sample: Rows
    letters: npt.NDArray[np.str_]
    number: int

    def __post_init__(self) -> None:
        self.graph = shared_graph(self.pool)
        spread = SpreadPosterior()
        self.averages: Any = averages(self.graph, spread.n_neighbors, spread.n_in_common).astype(np.float32)
        told = self.letters[self.sample]
        self.classes = sorted(set(told.tolist()))
        self.truth: Matrix = (told[:, None] == np.array(self.classes)[None]).astype(np.float32)
        self.first, self.network = self._told()

    def _spread(self, scores: Matrix, sweeps: int) -> Matrix:
        scores = scores.astype(np.float32)
        for _ in range(sweeps):
            scores[self.sample] = self.truth
            scores = np.asarray(self.averages @ scores)
        scores[self.sample] = self.truth
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def _told(self) -> tuple[Matrix, Matrix]:
        """Scores of every letter for the first batch, and what the networks alone say."""
        vectors = self.pool.vectors
        apart = np.stack([np.linalg.norm(vectors - vectors[seed], axis=1) for seed in self.sample.tolist()], axis=1)
        near = 1.0 / np.maximum(apart, 1e-6) ** 2
        begun = self._spread((near / near.sum(axis=1, keepdims=True)) @ self.truth, 80)
        said, found = begun, []
        for round_number in range(ROUNDS):
            said = self._spread(self._trained(said, 0.15 + 0.12 * round_number, round_number), 20)
            found.append(said)
        network = np.mean(found, axis=0)
        return np.log(begun + 1e-6) + np.log(network + 1e-6), network

    def _trained(self, said: Matrix, share: float, seed: int) -> Matrix:
        """What a network says that was trained on the surest rows of every letter."""
        even = said / np.maximum(said.sum(axis=0, keepdims=True), 1e-9)
        even /= even.sum(axis=1, keepdims=True)
        sure, letter = even.max(axis=1), even.argmax(axis=1)
        letter[self.sample], sure[self.sample] = self.truth.argmax(axis=1), 2.0
        most = int(share * len(letter) / len(self.classes))
        rows = np.concatenate([by[np.argsort(-sure[by])[:most]] for by in self._by_letter(letter)])
        torch.manual_seed(1000 * self.number + seed)
        vectors = dense_vectors(self.pool.vectors)
        inputs = torch.tensor((vectors - vectors.mean(axis=0)) / vectors.std())
        net = torch.nn.Sequential(
            torch.nn.Linear(inputs.shape[1], HIDDEN), torch.nn.ReLU(), torch.nn.Dropout(0.3),
            torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.ReLU(), torch.nn.Dropout(0.3),
            torch.nn.Linear(HIDDEN, len(self.classes)),
        )  # fmt: skip
        taught, wanted = inputs[rows], torch.tensor(letter[rows])
        optimizer = torch.optim.AdamW(net.parameters(), 1e-3, weight_decay=1e-2)
        for _ in range(EPOCHS):
            for part in torch.randperm(len(rows)).split(128):
                blurred = taught[part] + NOISE * torch.randn_like(taught[part])
                loss = torch.nn.functional.cross_entropy(net(blurred), wanted[part], label_smoothing=0.1)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            return np.asarray(torch.softmax(net.eval()(inputs), 1).numpy())

    def _by_letter(self, letter: Rows) -> list[Rows]:
        return [np.flatnonzero(letter == place) for place in range(len(self.classes))]

    def auc(self, letter: str) -> float:
        """The paper's AUC of this yardstick on one letter."""
        truth, place = self.letters == letter, self.classes.index(letter)
        learner = SpreadPosterior(explore=self.sample.tolist()).begin(self.pool, seed=self.number)
        learner.tell(Labels.of(np.arange(len(self.sample)), self.sample, truth[self.sample], True))
        batch, asked = round(0.05 * (len(truth) - len(self.sample))), len(self.sample)
        total, found, curve = int(truth.sum() - truth[self.sample].sum()), 0, []
        for number in range(SURE_BATCHES):
            free = np.flatnonzero(~learner.closed_)
            scores = self.first[free, place] if number == 0 else learner.all_scores(learner.state_)[free]
            ranked = free[np.argsort(-scores, kind="stable")[: int((RANKED_LATER if number else RANKED) * batch)]]
            rows = np.concatenate(
                [ranked, self._around(learner, ranked, batch - len(ranked), None if number else place)]
            )
            learner.tell(Labels.of(asked + np.arange(len(rows)), rows, truth[rows], False))
            asked, found = asked + len(rows), found + int(truth[rows].sum())
            curve.append(100.0 * found / total)
        # The few that are left count as found in the batch after these: the yardstick may only be too good.
        return float(np.mean(curve + [100.0] * (BATCHES - len(curve))))

    def _around(self, learner: SpreadPosterior, ranked: Rows, count: int, place: int | None) -> Rows:
        """Rows for looking around, where the ranking does not look."""
        free = np.setdiff1d(np.flatnonzero(~learner.closed_), ranked)
        worth = (1.0 - local_contrast(learner.state_, free)) ** 3
        if place is not None:
            worth *= np.sqrt(self.network[free, place] + 0.02)
        looked_at = np.concatenate([np.flatnonzero(learner.closed_), ranked])
        survey = Survey(self.graph, looked_at, free, worth)
        return np.array([survey.next() for _ in range(count)], np.int64)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    data = load_dataset("letters")
    letters = np.asarray(data.targets(data.classes[0])).astype(str)
    for number in range(given.first, given.runs):
        lines = {(line["letter"], int(line["run"])): float(line["auc"]) for line in read_lines(given.out)}
        if any(run == number for _, run in lines):
            continue
        trial = prepare_trial(data, data.classes[0], number)
        ground = balanced_ground(trial.pool)
        assert ground is not None
        run = Run(ground.pool, trial.sample, letters, number)
        found = {(letter, number): round(run.auc(letter), 4) for letter in run.classes}
        lines = {(line["letter"], int(line["run"])): float(line["auc"]) for line in read_lines(given.out)} | found
        write_lines(given.out, COLUMNS, ((*key, value) for key, value in sorted(lines.items())))
        print(f"run {number}: {len(found)} letters, mean AUC {np.mean([*found.values()]):.2f}", flush=True)
    values = [float(line["auc"]) for line in read_lines(given.out)]
    print(f"mean AUC of {len(values)} letters and runs in {given.out.name}: {np.mean(values):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
