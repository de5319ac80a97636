"""The portfolio: every question goes to one of several rules, by what their questions have brought lately."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from activecover.errors import InputError, ModelUnavailableError
from activecover.frontier import NO_KEY
from activecover.graph import graph_fits, shared_graph
from activecover.learners._auto5._base import Labels, Learner, Negatives, Proposal, Rows
from activecover.learners._auto5._blend import Blend
from activecover.learners._auto5._by_score import NearScore, Scan
from activecover.learners._auto5._classifier import Linear
from activecover.learners._auto5._contrast import Contrast, LocalContrast
from activecover.learners._auto5._density import DensityCommit
from activecover.learners._auto5._ground import BalancedGround, balanced_ground
from activecover.learners._auto5._nearest import ExploreCommit
from activecover.learners._auto5._posterior import KnnPosterior
from activecover.learners._auto5._rocchio import Rocchio
from activecover.learners._auto5._spread import SpreadPosterior
from activecover.learners._auto5._spread_commit import SpreadCommit
from activecover.learners._auto5._survey import Survey
from activecover.learners._explore import FreeRows
from activecover.pool import blocks, dense_vectors

Credits = npt.NDArray[np.bool_]
Yields = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

#: What a portfolio can consist of.
RULES: Mapping[str, Callable[..., Learner]] = {
    "explore-commit": ExploreCommit,
    "density-commit": DensityCommit,
    "spread-commit": SpreadCommit,
    "contrast": Contrast,
    "local-contrast": LocalContrast,
    "knn-posterior": KnnPosterior,
    "spread-posterior": SpreadPosterior,
    "rocchio": Rocchio,
    "linear": Linear,
    "blend": Blend,
}
#: What it consists of, with the yield that is expected of each before it has been tried; that decides the first
#: batch, and little else. Neighbours tell most in dense vectors, a direction in sparse rows and bits.
DENSE: Mapping[str, float] = {
    "explore-commit": 0.2,
    "density-commit": 0.2,
    "local-contrast": 0.3,
    "knn-posterior": 0.3,
    "spread-posterior": 0.6,
    "rocchio": 0.2,
    "linear": 0.2,
}
SPARSE: Mapping[str, float] = {
    "explore-commit": 0.2,
    "density-commit": 0.2,
    "local-contrast": 0.2,
    "knn-posterior": 0.2,
    "spread-posterior": 0.2,
    "rocchio": 0.2,
    "linear": 0.2,
    "blend": 0.8,
}
POSITIVES_ONLY: Mapping[str, float] = {"explore-commit": 0.35, "density-commit": 0.5}
DENSE_POSITIVES_ONLY: Mapping[str, float] = {"explore-commit": 0.2, "density-commit": 0.2, "spread-commit": 0.6}
UNTRIED = 0.35
#: Those that a pool too large for a neighbour graph has to do without.
ON_A_GRAPH = {"local-contrast", "knn-posterior", "spread-posterior", "spread-commit"}

#: The share of questions that goes to any rule, or to looking around, by lot: nothing is ever given up for good.
#: Less in sparse rows and bits, where one rule knows what several others do and few rows are worth a try.
EXPLORATION, SPARSE_EXPLORATION = 0.1, 0.03
#: As if yields rested on so many times the labels in sparse rows and bits: when one question in thirty finds
#: something, chance would else hand most questions to whichever of the weaker rules drew best.
SPARSE_DECISIVENESS = 49.0
#: By how many labels' worth the expected yields gain in sparse rows with every question that finds nothing, until one
#: does. In a dry spell credits are old: they say who shared in what was easy to find, not who will find the rest.
SPARSE_DRYNESS = 4.0
#: Past this share of the positives that can be expected to be left, a batch has places for looking around.
CERTAIN = 0.8
#: How many labels the expected yield is worth: more with all labels, where it was found by trial.
PRIOR_LABELS, TRIED_PRIOR_LABELS = 16.0, 40.0
#: And in dense pools it is worth so many labels more per place of a batch. Credits say what the first rows of a ranking
#: bring, and where rules agree all have the credit; far down, what was expected is the better guess.
DOUBT = 0.2
#: Yields are counted over about the last quarter of the learner's questions, and these at least.
MEMORY, LEAST_MEMORY = 0.25, 20.0
#: Rules are ranked anew when half as many labels again have come, and at least this share of the pool.
RENEWAL, POOL_SHARE = 2, 200
#: To which power of its contrast a row is worth looking at: other rows, and dense ones, where it was found by trial.
WORTH, DENSE_WORTH = 2, 3
LOOKING_AROUND = "looking around: little is known of its neighbours"
_LOTS = 16
_LENDING = {"dense": "exact", "sparse": "sparse", "bits": "bits"}


class Auto(Learner):
    """A portfolio of rules, each with a share of the questions that follows from its yield.

    For every question each rule draws a plausible yield, given what its questions have brought lately
    (Thompson sampling), and the highest draw decides which rule's best row is asked. One question in
    ten (three in a hundred in sparse pools) goes to a rule, or to a random row, by lot. The draws are
    keyed by the seed and the number of the question, so that a proposal is a function of the labels.

    In dense pools, and with all labels, the rules measure in a space of their own, in which no few
    directions outweigh the others (:func:`~activecover.learners._auto5._ground.balanced_ground`).

    *Who gets the credit.* The log does not say which rule a row came from. With all labels, the rules
    are ranked at fixed numbers of labels, and a row counts for every rule that had it near its top
    then: rules that agree share the credit, and a rule is judged by rows that others chose, too. With
    ``positives_only`` that would need the vectors of negatives; there the row counts for the rule that
    the draws give to its number (in batches these may differ a little from those at the time of asking,
    as the labels before it are known by then).

    Parameters
    ----------
    explore : int or sequence of int
        How many rows to label at random first, or which.
    positives_only : bool
        Use rules that learn from positives alone. That a question brought no positive is counted; the
        row's vector is not used.
    rules : sequence of str, optional
        The rules to choose from, of :data:`RULES`.

    References
    ----------
    Chapelle, O. and Li, L. (2011). An empirical evaluation of Thompson sampling. NeurIPS.
    Baram, Y., El-Yaniv, R. and Luz, K. (2004). Online choice of active learning algorithms. JMLR 5.

    Examples
    --------
    >>> from activecover.pool import Pool
    >>> learner = Auto(explore=[0, 1], positives_only=True).begin(Pool([[0.0], [5.0], [1.0], [5.5]]))
    >>> learner.tell(Labels.of([0, 1], [0, 1], [True, False], True))
    >>> proposal = learner.propose(1)
    >>> proposal.rows, proposal.reasons
    (array([2]), ('spread-commit, rank 1; its yield lately 60 %',))
    """

    ordered: ClassVar[bool] = True

    def __init__(
        self,
        explore: int | Sequence[int] = 100,
        positives_only: bool = False,
        rules: Sequence[str] | None = None,
    ) -> None:
        self.explore = explore
        self.positives_only = positives_only
        self.rules = rules

    @property
    def negatives(self) -> Negatives:  # type: ignore[override]
        """What the portfolio learns from."""
        return "none" if self.positives_only else "all"

    def _reset(self) -> None:
        expected = self._portfolio()
        self.names_ = list(expected)
        self._expected = np.array(list(expected.values()))
        self._prior = PRIOR_LABELS if self.positives_only else TRIED_PRIOR_LABELS
        self._doubt = DOUBT if self.pool_.kind == "dense" and not self.positives_only else 0.0
        directed = self.pool_.kind in ("sparse", "bits") and not self.positives_only
        self._exploration = SPARSE_EXPLORATION if directed else EXPLORATION
        self._decisiveness = SPARSE_DECISIVENESS if directed else 1.0
        self._dryness = SPARSE_DRYNESS if directed and self.pool_.kind == "sparse" else 0.0
        # Without negatives there is nothing to tell directions that matter from those that do not.
        self._balanced: BalancedGround | None = None if self.positives_only else balanced_ground(self.pool_)
        self.rules_: list[Learner] = []
        for name in self.names_:
            self.rules_.append(self._begun(name))
        self._history = _History(len(self.names_))
        self._asked = self._numbered = 0
        self._sampled = self._sampled_found = self._found = 0
        self._tops: list[Rows] | None = None
        self._renewal = 0
        self._standing: Yields | None = None
        self._since: dict[int, None] = {}

    def _begun(self, name: str) -> Learner:
        rule = RULES[name](explore=0)
        before = dict(zip(self.names_, self.rules_, strict=False))
        if isinstance(rule, ExploreCommit):
            # The backend that knows a distance for every row, which others can borrow.
            rule.frontier = _LENDING.get(self.pool_.kind, "auto")
        # Who lends is told before who borrows, so that what is lent is up to date.
        if isinstance(rule, NearScore) and "explore-commit" in before:
            rule.lent = cast("Scan", cast("ExploreCommit", before["explore-commit"]).frontier_)
        if isinstance(rule, LocalContrast) and "local-contrast" in before:
            rule.lent_far = cast("LocalContrast", before["local-contrast"]).far_
        if self._balanced is None:
            return rule.begin(self.pool_, seed=self.seed_, outside=self.outside_)
        return rule.begin(self._balanced.pool, seed=self.seed_, outside=self._balanced.encode(self.outside_))

    def _portfolio(self) -> Mapping[str, float]:
        of_kind = {"dense": (DENSE, DENSE_POSITIVES_ONLY)}.get(self.pool_.kind, (SPARSE, POSITIVES_ONLY))
        known = of_kind[self.positives_only]
        if self.rules is None:
            return known if graph_fits(self.pool_) else {name: known[name] for name in known if name not in ON_A_GRAPH}
        wrong = [name for name in self.rules if name not in RULES]
        if wrong or not self.rules or len(set(self.rules)) != len(self.rules):
            names = ", ".join(RULES)
            raise InputError(f"rules {list(self.rules)!r}: give some of {names}, each once")
        if self.positives_only and any(RULES[name].negatives != "none" for name in self.rules):  # type: ignore[attr-defined]
            raise InputError(f"rules {list(self.rules)!r}: not all of them learn from positives only")
        return {name: known.get(name, UNTRIED) for name in self.rules}

    def _ready(self) -> bool:
        return any(rule._ready() for rule in self.rules_)

    def _grow(self) -> None:
        if not self.positives_only or list(self._portfolio()) != self.names_:
            self._refold()
            return
        # By number, credit does not depend on the rows.
        for rule in self.rules_:
            rule.extend()

    @property
    def near_(self) -> Scan | None:
        """What knows the positive nearest to any row, if one of the rules does."""
        for rule in self.rules_:
            if isinstance(rule, ExploreCommit) and rule._ready() and self.pool_.kind in _LENDING:
                return cast("Scan", rule.frontier_)
        return None

    def _apart(self, rows: Rows, keys: Rows, far: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """How far rows are from positives in the pool, given how far they are where the rules measure."""
        if self._balanced is None:
            return far
        known = np.flatnonzero(keys != NO_KEY)
        for block in blocks(len(known), 16 * self.pool_.dimensions):
            part = known[block]
            ends = self.pool_.take(np.maximum(keys[part], 0)).astype(np.float64)
            outside = keys[part] < 0
            ends[outside] = dense_vectors(self.outside_)[-1 - keys[part][outside]]
            far[part] = np.linalg.norm(dense_vectors(self.pool_.take(rows[part])).astype(np.float64) - ends, axis=1)
        return far

    # Folding.

    def _follow(self) -> None:
        """What was erased from the pool is erased where the rules measure, too."""
        if self._balanced is not None:
            self._balanced.follow(self.pool_)

    def _fold(self, labels: Labels) -> None:
        self._follow()
        at = 0
        while at < len(labels):
            sampled = bool(labels.sampled[at])
            change = np.flatnonzero(labels.sampled[at:] != sampled)
            stop = at + int(change[0]) if len(change) else len(labels)
            if not sampled:
                stop = min(stop, at + self._room())
            part = labels.take(slice(at, stop))
            if not sampled:
                self._credit(part)
            for rule in self.rules_:
                rule.tell(part)
            at = stop
        self._numbered += int((labels.numbers >= 0).sum())
        self._sampled += int(labels.sampled.sum())
        self._sampled_found += int(labels.positive[labels.sampled].sum())
        self._found += int(labels.positive.sum())

    def _room(self) -> int:
        """How many labels may follow until the rules are ranked again; they are, if that is now."""
        if self._tops is None or self._asked >= self._renewal:
            step = max(1, self._asked // RENEWAL, len(self.pool_) // POOL_SHARE)
            self._tops = [] if self.positives_only else [self._top(rule, 2 * step) for rule in self.rules_]
            self._renewal = self._asked + step
            self._standing = self._yields()
            self._since = {}
        return self._renewal - self._asked

    def _top(self, rule: Learner, k: int) -> Rows:
        free = rule._free(())
        try:
            return rule._rank(min(k, free.count), free).rows if rule._ready() else np.zeros(0, np.int64)
        except ModelUnavailableError:
            return np.zeros(0, np.int64)

    def _credit(self, labels: Labels) -> None:
        if self.positives_only:
            drawn = self._draw(labels.numbers, self._valid_standing())
            credits = drawn[:, None] == np.arange(len(self.rules_))[None]
        else:
            assert self._tops is not None
            credits = np.stack([np.isin(labels.rows, top) for top in self._tops], axis=1)
        self._history.add(credits, labels.positive)
        self._since.update(dict.fromkeys(labels.rows.tolist()))
        self._asked += len(labels)

    def _unfold(self, gone: Labels) -> None:
        self._follow()
        self._last = max((number for number, _, _ in self._told.values()), default=np.iinfo(np.int64).min)
        recent = list(self._since)
        if gone.sampled.any() or self._asked >= self._renewal or not set(gone.rows.tolist()) <= set(recent):
            self._refold()
            return
        # The rules were ranked before the first of these labels, so that nothing else depends on them.
        kept = ~np.isin(np.array(recent, np.int64), gone.rows)
        self._history.keep_of_last(kept)
        self._numbered -= int((gone.numbers >= 0).sum())
        self._found -= int(gone.positive.sum())
        self._since = {row: None for row, keep in zip(recent, kept.tolist(), strict=True) if keep}
        self._asked -= len(gone)
        for rule in self.rules_:
            rule.untell(gone.rows)

    # Choosing.

    def yields(self) -> dict[str, float]:
        """What share of each rule's questions has brought a positive lately, expectations included."""
        means, _ = self._yields()
        return dict(zip(self.names_, means.tolist(), strict=True))

    def _yields(self) -> Yields:
        """The mean yield of each rule, and how many labels it rests on.

        What is expected of a rule falls with the yield of all questions lately: when positives have become rare, a
        rule that has not been asked for long would else seem better than those that have. In sparse pools it counts for
        more, the longer nothing has been found.
        """
        if not self._asked:
            return self._expected.copy(), np.full(len(self.rules_), self._prior)
        credits, outcomes = self._history.credits, self._history.outcomes
        age = np.arange(len(outcomes))[::-1]
        weights = np.exp(-age / (LEAST_MEMORY + MEMORY * len(outcomes)))
        found, best = weights * outcomes, self._expected.max()
        overall = (self._prior * best + found.sum()) / (self._prior + weights.sum())
        expected, prior = self._expected * min(1.0, overall / best), self._prior + self._dryness * self._history.dry
        labels = prior + weights @ credits
        return (prior * expected + found @ credits) / labels, labels

    def _valid_standing(self) -> Yields:
        """The yields that decide.

        Where credit goes by number they hold until the next renewal, so that the draws at the time of
        asking can be made again when the label comes.
        """
        if self.positives_only and self._standing is not None and self._asked < self._renewal:
            return self._standing
        return self._yields()

    def _far_down(self, places: Rows) -> Yields:
        """The yields that decide in each place of a batch: the farther down, the more of what was expected."""
        means, labels = self._valid_standing()
        # As the rules are seen at the first place, the best one included.
        expected = self._expected * (means.max() / self._expected.max())
        more = self._doubt * places[:, None]
        return (means * labels + expected * more) / (labels + more), labels + more

    def _draw(
        self, numbers: Rows, standing: Yields, exploration: float | npt.NDArray[np.float64] | None = None
    ) -> npt.NDArray[np.int64]:
        """Which rule each question goes to; the number of rules stands for a random row, or for looking around."""
        means, labels = standing[0], self._decisiveness * standing[1]
        exploration = self._exploration if exploration is None else exploration
        lots = self._lots(numbers)
        count = len(self.rules_)
        # On the arcsine scale the spread of a share does not depend on the share.
        draws = np.arcsin(np.sqrt(means)) + ndtri(lots[:, 2 : 2 + count]) / (2.0 * np.sqrt(labels))
        draws[:, [not rule._ready() for rule in self.rules_]] = -np.inf
        by_lot = np.minimum((lots[:, 1] * (count + 1)).astype(np.int64), count)
        return np.where(lots[:, 0] < exploration, by_lot, draws.argmax(axis=1))

    def _lots(self, numbers: Rows) -> npt.NDArray[np.float64]:
        """Random numbers for each question: the same for a number, whatever else is asked."""
        lots = np.empty((len(numbers), _LOTS))
        places = np.flatnonzero(np.diff(numbers, prepend=np.iinfo(np.int64).min) != 1)
        for start, stop in zip(places.tolist(), [*places[1:].tolist(), len(numbers)], strict=True):
            stream = np.random.Philox(key=[self.seed_ % 2**64, 2])
            stream.advance(int(numbers[start]) % 2**62 * (_LOTS // 4))
            lots[start:stop] = np.random.Generator(stream).random((stop - start, _LOTS))
        return np.clip(lots, 1e-12, 1 - 1e-12)

    def _rank(self, k: int, free: FreeRows) -> Proposal:
        self._follow()
        places = len(free.held) + np.arange(k)
        numbers = self._numbered + places
        if not self.surveys_:
            return _Interleaved(self, free, k).take(self._draw(numbers, self._valid_standing()))
        depths = places / (len(self._told) + places + 1e-9)
        # What is tried out far down a batch teaches nothing until the batch is through.
        drawn = self._draw(numbers, self._far_down(places), self._exploration * (1.0 - depths))
        drawn[self._lots(numbers)[:, -1] < self._survey_shares(places, depths)] = len(self.rules_)
        return _Interleaved(self, free, k).take(drawn)

    @property
    def surveys_(self) -> bool:
        """Whether it looks around where neither the rules nor chance would; needs a graph, and negatives in it."""
        return not self.positives_only and graph_fits(self.pool_)

    def _survey(self, free: FreeRows, taken: Sequence[int]) -> Survey:
        """Looking around, as if the rows that are held or taken were labelled."""
        ground = self.pool_ if self._balanced is None else self._balanced.pool
        rows = free.without(np.asarray(taken, np.int64)).among(self.exploration_.order())
        looked_at = np.ones(len(self.pool_), bool)
        looked_at[rows] = False
        worth = np.ones(len(rows))
        for rule in self.rules_:
            if isinstance(rule, LocalContrast) and rule._ready():
                worth = (1.0 - rule._nearness(rows)) ** (DENSE_WORTH if self.pool_.kind == "dense" else WORTH)
                break
        return Survey(shared_graph(ground), np.flatnonzero(looked_at), rows, worth)

    def _survey_shares(self, places: Rows, depths: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """How likely each place of a batch is spent on looking around.

        Places deep in a batch, measured by the labels that the rules rest on, are worth little to the rules; unless
        more positives are left than places, by the share of positives in the sample.
        """
        left = self._sampled_found / max(1, self._sampled) * len(self.pool_) - self._found
        return np.where(places < CERTAIN * left, 0.0, depths**2)


class _History:
    """Which rules had the credit for each question, and what came of it, in arrays that grow in place."""

    def __init__(self, rules: int) -> None:
        self._credits = np.zeros((64, rules), bool)
        self._outcomes = np.zeros(64, bool)
        self._count = 0

    @property
    def credits(self) -> Credits:
        return self._credits[: self._count]

    @property
    def outcomes(self) -> npt.NDArray[np.bool_]:
        return self._outcomes[: self._count]

    @property
    def dry(self) -> int:
        """How many questions there have been since the last that found something, or since the first."""
        found = np.flatnonzero(self.outcomes)
        return self._count - 1 - int(found[-1]) if len(found) else self._count

    def add(self, credits: Credits, outcomes: npt.NDArray[np.bool_]) -> None:
        first, self._count = self._count, self._count + len(outcomes)
        while len(self._outcomes) < self._count:
            self._credits = np.concatenate([self._credits, np.zeros_like(self._credits)])
            self._outcomes = np.concatenate([self._outcomes, np.zeros_like(self._outcomes)])
        self._credits[first : self._count], self._outcomes[first : self._count] = credits, outcomes

    def keep_of_last(self, kept: npt.NDArray[np.bool_]) -> None:
        """Of the last questions, as many as there are answers here, keep some."""
        first = self._count - len(kept)
        credits, outcomes = self.credits[first:][kept], self.outcomes[first:][kept]
        self._count = first
        self.add(credits, outcomes)


class _Interleaved:
    """Rows from several rankings, one by one."""

    def __init__(self, auto: Auto, free: FreeRows, k: int) -> None:
        self._auto, self._free, self._k = auto, free, k
        self._lists: dict[int, Proposal | None] = {}
        self._next: dict[int, int] = {}
        self._taken: dict[int, None] = {}
        self._survey: Survey | None = None
        self._yields = auto._yields()[0]

    def take(self, drawn: npt.NDArray[np.int64]) -> Proposal:
        found = [self._next_of(rule) for rule in drawn.tolist()]
        rows = np.array([row for row, _, _, _ in found], np.int64)
        far = np.array([far for _, far, _, _ in found], np.float64)
        keys = np.array([key for _, _, key, _ in found], np.int64)
        near = self._auto.near_
        if near is not None:
            # Also where the rule has not looked for a positive: people see it beside the row.
            beside = near.look_up(rows)
            far = np.where(keys == NO_KEY, beside.distances, far)
            keys = np.where(keys == NO_KEY, beside.sources, keys)
        far = self._auto._apart(rows, keys, far)
        return Proposal(rows, 0, far, keys, reasons=tuple(reason for _, _, _, reason in found))

    def _next_of(self, rule: int) -> tuple[int, float, int, str]:
        """A rule's best row that is not taken yet, with what there is to say about it."""
        if rule == len(self._auto.rules_) and self._auto.surveys_:
            return self._surveyed(), np.nan, NO_KEY, LOOKING_AROUND
        rule = self._usable(rule)
        place, ranking = self._advance(rule), self._lists[rule]
        assert ranking is not None
        row, far, key = int(ranking.rows[place]), float(ranking.distances[place]), int(ranking.nearest[place])
        return row, far, key, self._reason(rule, place)

    def _surveyed(self) -> int:
        """The next row of a survey that knows of all rows taken before it."""
        if self._survey is None:
            self._survey = self._auto._survey(self._free, list(self._taken))
        row = self._survey.next()
        self._taken[row] = None
        return row

    def _usable(self, rule: int) -> int:
        """The rule, or the next one that has an answer; random rows are always to be had."""
        while self._ranking(rule) is None:
            rule = (rule + 1) % (len(self._auto.rules_) + 1)
        return rule

    def _ranking(self, rule: int) -> Proposal | None:
        if rule not in self._lists:
            self._lists[rule], self._next[rule] = self._make(rule), 0
        return self._lists[rule]

    def _make(self, rule: int) -> Proposal | None:
        auto = self._auto
        if rule == len(auto.rules_):
            return Learner._drawn(auto.exploration_.on(self._k, self._free))
        if not auto.rules_[rule]._ready():
            return None
        try:
            return auto.rules_[rule]._rank(self._k, self._free)
        except ModelUnavailableError:
            return None

    def _advance(self, rule: int) -> int:
        """The place of a rule's best row that is not taken yet, which is taken now."""
        ranking = self._lists[rule]
        assert ranking is not None
        place = self._next[rule]
        while int(ranking.rows[place]) in self._taken:
            place += 1
        row = int(ranking.rows[place])
        self._next[rule] = place + 1
        self._taken[row] = None
        if self._survey is not None:
            self._survey.look(row)
        return place

    def _reason(self, rule: int, place: int) -> str:
        if rule == len(self._auto.rules_):
            return "a random row: a share of the questions is kept for exploration"
        return f"{self._auto.names_[rule]}, rank {place + 1}; its yield lately {self._yields[rule]:.0%}".replace(
            "%", " %"
        )
